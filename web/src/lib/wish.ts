// The form of the page What if: a pod by its fields. They are in the address, so that a link has them.
import type { Gpu, GpuLayout, Gpus, Pod } from "../api/types";
import { shortProduct } from "../map/cells";
import { quoted } from "./podtext";

export const needs = ["slice", "gpu", "memory"] as const;
export type Need = (typeof needs)[number];

export interface Wish {
  need: Need;
  /** The resource of a slice: "nvidia.com/mig-1g.10gb". */
  size: string;
  /** Slices or GPUs of the pod. */
  count: number;
  /** GiB of GPU memory, if nos chooses the slice. */
  gib: number;
  namespace: string;
  name: string;
  /** A number, or the name of a PriorityClass: API servers refuse a number unless it is that of the class. */
  priority: string;
  cpu: number;
  /** GiB of the node's memory. */
  ram: number;
}

/** The resource of an instance's profile: of MIG, of an MPS share ("10gb"), of a time slice. */
export function resourceOf(profile: string): string {
  if (profile === "shared") return "nvidia.com/gpu.shared";
  return /^\d+g\./.test(profile) ? `nvidia.com/mig-${profile}` : `nvidia.com/gpu-${profile}`;
}

export const sizeName = (resource: string): string =>
  resource === "nvidia.com/gpu" ? "whole GPU" : resource === "nvidia.com/gpu.shared" ? "time slice" : resource.replace(/^nvidia\.com\/(mig-)?/, "").replace(/^gpu-/, "MPS ");

/** GB of GPU memory by the name; a whole GPU is the largest. */
const gigabytes = (resource: string): number => (resource === "nvidia.com/gpu" ? Infinity : Number(/(\d+)gb/.exec(resource)?.[1] ?? 0));

export interface Size {
  id: string;
  label: string;
  note: string;
}

/** Sizes in use on the cluster's GPUs or asked for by pods, the smallest first; with a model that has it. */
export function sizesOf(gpus: Gpus | undefined, pods: readonly Pick<Pod, "requests">[]): Size[] {
  const models = new Map<string, Set<string>>();
  for (const node of gpus?.nodes ?? []) {
    for (const gpu of node.gpus) {
      for (const { profile } of gpu.instances) {
        if (profile) models.set(resourceOf(profile), (models.get(resourceOf(profile)) ?? new Set()).add(shortProduct(gpu.product)));
      }
    }
  }
  for (const pod of pods) {
    for (const resource of Object.keys(pod.requests)) {
      if (/^nvidia\.com\/(mig-|gpu-|gpu\.shared)/.test(resource) && !models.has(resource)) models.set(resource, new Set());
    }
  }
  return [...models]
    .sort(([a], [b]) => gigabytes(a) - gigabytes(b) || (a < b ? -1 : 1))
    .map(([id, known]) => ({ id, label: sizeName(id), note: [...known].sort().join(", ") }));
}

const most = { count: 64, gib: 4096, cpu: 1024, ram: 65_536 };

function whole(text: string | undefined, least: number, limit: number, otherwise: number): number {
  const value = Math.round(Number(text));
  return text && Number.isFinite(value) ? Math.min(limit, Math.max(least, value)) : otherwise;
}

/** From the address; what it does not have, or has wrong, is as in a usual pod. */
export function wishOf(params: Readonly<Record<string, string>>, sizes: readonly Size[], namespace: string): Wish {
  const usual = sizes.find((each) => each.id.startsWith("nvidia.com/mig-"))?.id ?? sizes[0]?.id ?? "nvidia.com/mig-1g.10gb";
  return {
    need: needs.find((each) => each === params.need) ?? "slice",
    size: params.size && /^nvidia\.com\/[a-z0-9.-]{1,60}$/.test(params.size) ? params.size : usual,
    count: whole(params.count, 1, most.count, 1),
    gib: whole(params.gib, 1, most.gib, 9),
    namespace: params.in ?? namespace,
    name: params.name ?? "try-1",
    priority: params.priority ?? "",
    cpu: whole(params.cpu, 0, most.cpu, 2),
    ram: whole(params.ram, 0, most.ram, 8),
  };
}

export function podOfWish(wish: Wish): string {
  const limits: [string, string][] = [];
  if (wish.need !== "memory") limits.push([wish.need === "gpu" ? "nvidia.com/gpu" : wish.size, String(wish.count)]);
  if (wish.cpu > 0) limits.push(["cpu", String(wish.cpu)]);
  if (wish.ram > 0) limits.push(["memory", `${wish.ram}Gi`]);
  return [
    "apiVersion: v1",
    "kind: Pod",
    "metadata:",
    `  name: ${quoted(wish.name)}`,
    `  namespace: ${quoted(wish.namespace)}`,
    ...(wish.need === "memory" ? ["  annotations:", `    nos.nebuly.com/need-memory: ${wish.gib}Gi`] : []),
    "spec:",
    "  schedulerName: nos-scheduler",
    ...(/^-?\d{1,10}$/.test(wish.priority) ? [`  priority: ${Number(wish.priority)}`] : wish.priority ? [`  priorityClassName: ${quoted(wish.priority)}`] : []),
    "  containers:",
    "  - name: main",
    "    image: nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04",
    ...(limits.length > 0 ? ["    resources:", "      limits:", ...limits.map(([name, value]) => `        ${quoted(name)}: ${quoted(value)}`)] : []),
    "",
  ].join("\n");
}

/** Other sizes worth a question: the next smaller, the next larger, a whole GPU. Fewer for what nos chooses itself. */
export function alternativesTo(wish: Wish, sizes: readonly Size[]): Wish[] {
  if (wish.need === "memory") return [];
  const slice = (id: string): Wish => ({ ...wish, need: "slice", size: id });
  const kind = (id: string): string => id.replace(/\d.*$/, "");
  if (wish.need === "gpu") return sizes.filter((each) => each.id.startsWith("nvidia.com/mig-")).slice(-2).map((each) => slice(each.id));
  const same = sizes.filter((each) => kind(each.id) === kind(wish.size));
  const own = gigabytes(wish.size);
  const smaller = same.filter((each) => gigabytes(each.id) < own).at(-1);
  const larger = same.find((each) => gigabytes(each.id) > own);
  return [...[smaller, larger].flatMap((each) => (each ? [slice(each.id)] : [])), { ...wish, need: "gpu" }];
}

export const wishName = (wish: Wish): string =>
  wish.need === "memory" ? `${wish.gib} GiB of GPU memory` : `${wish.count > 1 ? `${wish.count} × ` : ""}${wish.need === "gpu" ? "whole GPU" : sizeName(wish.size)}`;

export interface Repartition {
  node: string;
  gpu: number;
  make: string[];
  destroy: string[];
}

/** Answers come from outside: only what has the right form. */
export function repartitionsOf(things: readonly unknown[]): Repartition[] {
  const texts = (value: unknown): string[] => (Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : []);
  return things.flatMap((thing) => {
    const { node, gpu, make, destroy } = (thing ?? {}) as Record<string, unknown>;
    return typeof node === "string" && typeof gpu === "number" ? [{ node, gpu, make: texts(make), destroy: texts(destroy) }] : [];
  });
}

const counted = (profiles: readonly string[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const each of profiles) counts[each] = (counts[each] ?? 0) + 1;
  return counts;
};

/** The GPU's layout now, and after the change. */
export function beforeAfter(gpu: Gpu, change: Repartition): { before: GpuLayout; after: GpuLayout } {
  const before = counted(gpu.instances.map((each) => each.profile).filter(Boolean));
  const after = { ...before };
  for (const profile of change.destroy) after[profile] = Math.max(0, (after[profile] ?? 0) - 1);
  for (const profile of change.make) after[profile] = (after[profile] ?? 0) + 1;
  const kept = Object.fromEntries(Object.entries(after).filter(([, many]) => many > 0));
  return { before: { index: gpu.index, profiles: before }, after: { index: gpu.index, profiles: kept } };
}

// The pieces of a GPU from left to right, as in the map, its table and the panel.
import type { Gpu, Holder, Instance, Node } from "../api/types";

export type Kind = "busy" | "idle" | "held" | "free" | "unpartitioned" | "out";

export interface Cell {
  /** Position on the GPU, as fractions of its width. */
  from: number;
  to: number;
  kind: Kind;
  /** "" for an undivided GPU. */
  profile: string;
  holders: Holder[];
  team: string;
  /** null: not measured. */
  utilization: number | null;
  instance: Instance | undefined;
}

/** Below this utilization a slice counts as idle. */
export const idleBelow = 0.05;

export const kindNames: Record<Kind, string> = {
  busy: "in use",
  idle: "allocated, idle",
  held: "allocated, not measured",
  free: "free slice",
  unpartitioned: "not partitioned",
  out: "out of service",
};

/** The quota that a pod counts against, else its namespace. */
export function teamOf(holder: Holder): string {
  const quota = holder.quota ?? "";
  return quota ? quota.replace(/\/quota$/, "") : holder.namespace;
}

function kindOf(gpu: Gpu, holders: Holder[], utilization: number | null): Kind {
  if (gpu.health !== "") return "out";
  if (holders.length === 0) return "free";
  if (utilization === null) return "held";
  return utilization < idleBelow ? "idle" : "busy";
}

const measured = (value: number | undefined): number | null => value ?? null;

function cell(gpu: Gpu, from: number, to: number, holders: Holder[], utilization: number | null, instance?: Instance): Cell {
  const first = holders[0];
  return {
    from,
    to,
    kind: kindOf(gpu, holders, utilization),
    profile: instance?.profile ?? "",
    holders,
    team: first ? teamOf(first) : "",
    utilization,
    instance,
  };
}

/** True if pods take turns on it: a time slice has slots, like an instance. */
const inTurns = (gpu: Gpu): boolean => gpu.sharing_mode === "time slices";

/** True if pods share its memory (MPS): a share has no position, and its slots are GiB. */
export const byMemory = (gpu: Gpu): boolean => gpu.slots > 0 && !gpu.mig && !inTurns(gpu);

/** Its sharing mode as a word; derived from its holders if the server does not report it. */
export function modeText(gpu: Gpu): string {
  if (gpu.sharing_mode) return gpu.sharing_mode;
  if (gpu.instances.length === 0) return gpu.holders.length === 0 ? "free" : gpu.holders.length === 1 ? "whole" : "shared";
  return byMemory(gpu) ? "MPS" : "MIG";
}

/** The name of one of its pieces. */
export function pieceName(gpu: Gpu, cell: Cell): string {
  if (cell.profile === "shared") return "time slice";
  if (cell.profile) return cell.profile;
  if (cell.kind === "unpartitioned") return gpu.slots > 0 ? "" : "not divided";
  return gpu.slots > 0 ? "" : "whole GPU";
}

/** Each share of memory begins at the end of the previous one. */
function placed(gpu: Gpu): Instance[] {
  const instances = [...gpu.instances].sort((a, b) => a.start - b.start);
  if (!byMemory(gpu)) return instances;
  let next = 0;
  return instances.map((each) => ({ ...each, start: (next += Math.max(0, each.size)) - Math.max(0, each.size) }));
}

const known = new WeakMap<Gpu, Cell[]>();

/** Pieces in order; gaps between instances are undivided pieces. Invalid positions are clipped. */
export function cellsOf(gpu: Gpu): Cell[] {
  const cells = known.get(gpu) ?? piecesOf(gpu);
  known.set(gpu, cells);
  return cells;
}

function piecesOf(gpu: Gpu): Cell[] {
  if (gpu.slots <= 0) return sharesOf(gpu);
  const cells: Cell[] = [];
  // MPS shares and time slices have no readings, so the whole GPU's are used.
  const whole = byMemory(gpu) || inTurns(gpu) ? gpu.metrics?.utilization : undefined;
  let at = 0;
  const gap = (to: number): void => {
    if (to > at) {
      const kind = gpu.health === "" ? "unpartitioned" : "out";
      cells.push({ ...cell(gpu, at / gpu.slots, to / gpu.slots, [], null), kind });
    }
  };
  for (const each of placed(gpu)) {
    const start = Math.max(at, Math.min(gpu.slots, each.start));
    const end = Math.min(gpu.slots, each.start + Math.max(0, each.size));
    if (end <= start) continue;
    gap(start);
    const utilization = measured(each.metrics?.utilization ?? whole);
    cells.push(cell(gpu, start / gpu.slots, end / gpu.slots, each.holders, utilization, each));
    at = end;
  }
  gap(gpu.slots);
  return cells;
}

/** An undivided GPU is one piece, or one per pod that shares it. */
function sharesOf(gpu: Gpu): Cell[] {
  const undecided = gpu.sharing_mode === "" && (gpu.switches ?? []).length > 0 && gpu.holders.length === 0;
  if (undecided && gpu.health === "") return [{ ...cell(gpu, 0, 1, [], null), kind: "unpartitioned" }];
  const utilization = measured(gpu.metrics?.utilization);
  const shared = gpu.instances.length > 0 ? gpu.instances : undefined;
  const many = shared?.length ?? Math.max(1, gpu.holders.length);
  return Array.from({ length: many }, (_, place) => {
    const holder = gpu.holders[place];
    const holders = shared ? (shared[place]?.holders ?? []) : holder ? [holder] : [];
    return cell(gpu, place / many, (place + 1) / many, holders, utilization, shared?.[place]);
  });
}

/** No pod holds a part of it, and it works. */
export function isEmpty(gpu: Gpu): boolean {
  return gpu.health === "" && gpu.holders.length === 0 && gpu.instances.every((each) => each.holders.length === 0);
}

/** The use of one node: GPUs in use, and how busy what is held is; null: not measured. */
export interface NodeUse {
  used: number;
  gpus: number;
  busy: number | null;
}

export function useOfNode(node: Node): NodeUse {
  let [used, sum, size] = [0, 0, 0];
  for (const gpu of node.gpus) {
    const held = cellsOf(gpu).filter((each) => each.holders.length > 0);
    if (held.length > 0) used++;
    for (const each of held) {
      if (each.utilization === null) continue;
      sum += each.utilization * (each.to - each.from);
      size += each.to - each.from;
    }
  }
  return { used, gpus: node.gpus.length, busy: size > 0 ? sum / size : null };
}

/** "6/8 · 71 %": GPUs in use, and how busy they are. Without GPUs only the latter. */
export function useText({ used, gpus, busy }: NodeUse): string {
  const percent = busy === null ? "" : `${Math.round(busy * 100)} %`;
  return [gpus > 0 ? `${used}/${gpus}` : "", percent].filter(Boolean).join(" · ");
}

export interface Slots {
  total: number;
  byKind: Record<Kind, number>;
  byTeam: Map<string, number>;
}

/** The amount of GPUs for each kind and each team. */
export function countSlots(nodes: Node[]): Slots {
  const byKind: Record<Kind, number> = { busy: 0, idle: 0, held: 0, free: 0, unpartitioned: 0, out: 0 };
  const byTeam = new Map<string, number>();
  let total = 0;
  for (const node of nodes) {
    for (const gpu of node.gpus) {
      total++;
      for (const each of cellsOf(gpu)) {
        const size = each.to - each.from;
        byKind[each.kind] += size;
        if (each.team) byTeam.set(each.team, (byTeam.get(each.team) ?? 0) + size);
      }
    }
  }
  return { total, byKind, byTeam };
}

/** The product's name without the manufacturer and common words. */
export function shortProduct(product: string): string {
  return product.replace(/^(NVIDIA|Tesla)[ -]+/i, "").replace(/ HBM\w*$/, "");
}

/** Pods that hold the GPU or an instance of it. */
export const holdersOn = (gpu: Gpu): Holder[] => [...gpu.holders, ...gpu.instances.flatMap((each) => each.holders)];

export function holderName(holder: Holder): string {
  return `${holder.namespace}/${holder.pod}`;
}

/** One sentence on a GPU, for screen readers. */
export function describe(node: Node, gpu: Gpu): string {
  const cells = cellsOf(gpu);
  const held = cells.filter((each) => each.holders.length > 0);
  const parts = [`node ${node.node}, GPU ${gpu.index}, ${shortProduct(gpu.product)}`];
  if (gpu.sharing_mode) parts.push(gpu.sharing_mode);
  if (gpu.health) parts.push(`out of service: ${gpu.health}`);
  if (!node.ready) parts.push("node not ready");
  const share = held.reduce((sum, each) => sum + each.to - each.from, 0);
  parts.push(`${Math.round(share * 100)} per cent allocated`);
  for (const each of held.slice(0, 8)) {
    const busy = each.utilization === null ? "" : ` ${Math.round(each.utilization * 100)} per cent busy`;
    parts.push(`${each.profile || "whole"} by ${each.holders.map(holderName).join(" and ")}${busy}`);
  }
  return parts.join("; ");
}

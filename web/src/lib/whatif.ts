// Words for the content of the page What if.
import type { Gpus } from "../api/types";
import { shortProduct } from "../map/cells";

/** Profiles in use on the cluster's GPUs now, with an example each. */
export function profilesOf(gpus: Gpus | undefined): { id: string; label: string; note: string }[] {
  const found = new Map<string, string>();
  for (const node of gpus?.nodes ?? []) {
    for (const gpu of node.gpus) {
      for (const each of gpu.instances) if (each.profile && !found.has(each.profile)) found.set(each.profile, shortProduct(gpu.product));
    }
  }
  return [...found]
    .sort(([a, one], [b, other]) => (one === other ? (a < b ? -1 : 1) : one < other ? -1 : 1))
    .map(([id, note]) => ({ id, label: id, note }));
}

/** Items in an answer are texts or small objects. */
export function wordsOf(thing: unknown): string {
  if (thing === null || typeof thing !== "object") return String(thing);
  const { namespace, name, node, gpu, make, destroy, ...rest } = thing as Record<string, unknown>;
  const list = (value: unknown): string => (Array.isArray(value) ? value.map(wordsOf).join(", ") : wordsOf(value));
  if (typeof name === "string") return typeof namespace === "string" ? `${namespace}/${name}` : name;
  const parts: string[] = [];
  if (node !== undefined) parts.push(`${wordsOf(node)}${gpu === undefined ? "" : ` · GPU ${wordsOf(gpu)}`}`);
  if (make !== undefined && list(make)) parts.push(`create ${list(make)}`);
  if (destroy !== undefined && list(destroy)) parts.push(`destroy ${list(destroy)}`);
  for (const [key, value] of Object.entries(rest)) parts.push(`${key} ${list(value)}`);
  return parts.join(": ").replace(/: (?=destroy)/, ", ");
}

// The GPUs that one namespace holds.
import type { Node, Pod } from "../api/types";
import { cellsOf } from "../map/cells";
import { compareNames } from "./names";
import { busyOf } from "./sort";

export interface Held {
  /** In GPUs: a slice counts by its part of one. */
  gpus: number;
  idle: number;
  nodes: number;
}

const rounded = (value: number): number => Math.round(value * 10) / 10;

/** A piece that pods of several namespaces share counts in equal parts. */
export function heldBy(nodes: readonly Node[], namespace: string): Held {
  const held: Held = { gpus: 0, idle: 0, nodes: 0 };
  for (const node of nodes) {
    let any = false;
    for (const cell of node.gpus.flatMap(cellsOf)) {
      const own = cell.holders.filter((each) => each.namespace === namespace).length;
      if (own === 0) continue;
      const size = ((cell.to - cell.from) * own) / cell.holders.length;
      any = true;
      held.gpus += size;
      if (cell.kind === "idle") held.idle += size;
    }
    if (any) held.nodes++;
  }
  return { gpus: rounded(held.gpus), idle: rounded(held.idle), nodes: held.nodes };
}

/** Pods that have a node, the least busy first; those without a reading last. */
export function runningFirst(pods: readonly Pod[]): Pod[] {
  return pods
    .filter((pod) => pod.state === "running" || pod.state === "starting" || pod.state === "terminating")
    .map((pod) => ({ pod, busy: busyOf(pod) ?? Infinity }))
    .sort((a, b) => (a.busy === b.busy ? compareNames(a.pod.name, b.pod.name) : a.busy - b.busy))
    .map(({ pod }) => pod);
}

// What a decision changes: layouts before and after as counts of profiles.
import type { Decision, GpuLayout } from "../api/types";

/** When it was made, which stays as it goes on. */
export function madeAt({ made, at }: Pick<Decision, "made" | "at">): number {
  return made ?? at;
}

/** When it was done. */
export function doneAt(decision: Decision): number {
  return madeAt(decision) + (decision.took_ms ?? 0);
}

/** The newest first. */
export function byTime(decisions: Decision[]): Decision[] {
  return [...decisions].sort((a, b) => madeAt(b) - madeAt(a));
}

/** A decision comes again as it goes on: the latest word on each, newest first. */
export function withDecision(all: Decision[], next: Decision, most: number): Decision[] {
  const others = all.filter((each) => each.id !== next.id);
  const known = all.find((each) => each.id === next.id);
  if (known && known.at > next.at) return all;  // of who told it before and was heard late
  return byTime([next, ...others]).slice(0, most);
}

export interface Difference {
  profile: string;
  change: number;
}

/** Instances made (positive) and taken away (negative), the largest first. */
export function difference(before: GpuLayout | undefined, after: GpuLayout | undefined): Difference[] {
  const names = new Set([...Object.keys(before?.profiles ?? {}), ...Object.keys(after?.profiles ?? {})]);
  return [...names]
    .map((profile) => ({ profile, change: (after?.profiles[profile] ?? 0) - (before?.profiles[profile] ?? 0) }))
    .filter(({ change }) => change !== 0)
    .sort((a, b) => compute(b.profile) - compute(a.profile) || (a.profile < b.profile ? -1 : 1));
}

/** Compute slices by the name, for the order and the width of what is drawn only. */
export function compute(profile: string): number {
  return Number(/^(\d+)g\./.exec(profile)?.[1] ?? 1);
}

export interface Change {
  node: string;
  index: number;
  before: GpuLayout | undefined;
  after: GpuLayout | undefined;
}

export function changesOf(decision: Decision): Change[] {
  return decision.nodes.flatMap((node) => {
    const indexes = new Set([...node.before, ...node.after].map((each) => each.index));
    return [...indexes].sort((a, b) => a - b).map((index) => ({
      node: node.node,
      index,
      before: node.before.find((each) => each.index === index),
      after: node.after.find((each) => each.index === index),
    }));
  });
}

/** "MIG → time slices" when the GPU is used in another way than before; "" when it is not. */
export function switchOf({ before, after }: Change): string {
  const was = before?.way ?? "";
  const is = after?.way ?? "";
  return was && is && was !== is ? `${was} → ${is}` : "";
}

/** What the whole decision costs. */
export function costOf(decision: Decision): { made: number; destroyed: number } {
  const cost = { made: 0, destroyed: 0 };
  for (const change of changesOf(decision)) {
    for (const { change: many } of difference(change.before, change.after)) {
      if (many > 0) cost.made += many;
      else cost.destroyed -= many;
    }
  }
  return cost;
}

/** Profiles one by one, the largest first: what a strip shows from left to right. */
export function piecesOf(layout: GpuLayout | undefined): string[] {
  return Object.entries(layout?.profiles ?? {})
    .sort(([a], [b]) => compute(b) - compute(a) || (a < b ? -1 : 1))
    .flatMap(([profile, many]) => Array.from({ length: Math.max(0, Math.min(16, many)) }, () => profile));
}

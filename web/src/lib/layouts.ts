// The changes of a decision: layouts before and after as counts of profiles.
import type { Decision, GpuLayout } from "../api/types";

/** The time when it was made, which does not change as it progresses. */
export function madeAt({ made, at }: Pick<Decision, "made" | "at">): number {
  return made ?? at;
}

/** The time when it was completed. */
export function doneAt(decision: Decision): number {
  return madeAt(decision) + (decision.took_ms ?? 0);
}

/** Newest first. */
export function byTime(decisions: Decision[]): Decision[] {
  return [...decisions].sort((a, b) => madeAt(b) - madeAt(a));
}

/** A decision is reported again as it progresses: the latest report of each, newest first. */
export function withDecision(all: Decision[], next: Decision, most: number): Decision[] {
  const others = all.filter((each) => each.id !== next.id);
  const known = all.find((each) => each.id === next.id);
  if (known && known.at > next.at) return all;  // an outdated event, delivered late
  return byTime([next, ...others]).slice(0, most);
}

export interface Difference {
  profile: string;
  change: number;
}

/** Instances created (positive) and destroyed (negative), largest first. */
export function difference(before: GpuLayout | undefined, after: GpuLayout | undefined): Difference[] {
  const names = new Set([...Object.keys(before?.profiles ?? {}), ...Object.keys(after?.profiles ?? {})]);
  return [...names]
    .map((profile) => ({ profile, change: (after?.profiles[profile] ?? 0) - (before?.profiles[profile] ?? 0) }))
    .filter(({ change }) => change !== 0)
    .sort((a, b) => compute(b.profile) - compute(a.profile) || (a.profile < b.profile ? -1 : 1));
}

/** Compute slices parsed from the name, only for the order and width of drawings. */
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

/** "MIG → time slices" if the GPU's sharing mode changes, else "". */
export function switchOf({ before, after }: Change): string {
  const was = before?.sharing_mode ?? before?.way ?? "";
  const is = after?.sharing_mode ?? after?.way ?? "";
  return was && is && was !== is ? `${was} → ${is}` : "";
}

/** The cost of the whole decision. */
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

/** Profiles one by one, largest first: the content of a strip from left to right. */
export function piecesOf(layout: GpuLayout | undefined): string[] {
  return Object.entries(layout?.profiles ?? {})
    .sort(([a], [b]) => compute(b) - compute(a) || (a < b ? -1 : 1))
    .flatMap(([profile, many]) => Array.from({ length: Math.max(0, Math.min(16, many)) }, () => profile));
}

// Moments of the past, and how much happened when.
import type { Decision, HistoryEvent } from "../api/types";
import { madeAt } from "../lib/layouts";
import type { TimeRange } from "../lib/range";

export const grain = 10_000; // milliseconds

/** Moments are rounded so that the same ones are asked for again. */
export function frameOf(range: TimeRange, frames: number): number {
  return Math.max(grain, Math.round((range.to - range.from) / frames / grain) * grain);
}

/** How many events fall into each of `bins` parts of the range; a decision once, when it was made. */
export function histogram(events: HistoryEvent[], range: TimeRange, bins: number): { many: number; decisions: number }[] {
  const all = Array.from({ length: bins }, () => ({ many: 0, decisions: 0 }));
  const span = range.to - range.from;
  const seen = new Set<string>();
  for (const event of events) {
    if (event.kind === "node") continue;  // mostly how much of its CPU is asked for
    const decision = event.kind === "decision" ? (event as unknown as Decision) : undefined;
    if (decision && seen.has(decision.id)) continue;
    if (decision) seen.add(decision.id);
    const bin = all[Math.floor((((decision ? madeAt(decision) : event.at) - range.from) / span) * bins)];
    if (!bin) continue;
    bin.many++;
    if (decision) bin.decisions++;
  }
  return all;
}

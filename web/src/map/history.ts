// Moments of the past, and the number of events over time.
import type { Decision, HistoryEvent } from "../api/types";
import { madeAt } from "../lib/layouts";
import type { TimeRange } from "../lib/range";

export const grain = 10_000; // milliseconds

/** Moments are rounded so that requests can be reused. */
export function frameOf(range: TimeRange, frames: number): number {
  return Math.max(grain, Math.round((range.to - range.from) / frames / grain) * grain);
}

/** Number of events in each of `bins` parts of the range; a decision counts once, at its time. */
export function histogram(events: HistoryEvent[], range: TimeRange, bins: number): { many: number; decisions: number }[] {
  const all = Array.from({ length: bins }, () => ({ many: 0, decisions: 0 }));
  const span = range.to - range.from;
  const seen = new Set<string>();
  for (const event of events) {
    if (event.kind === "node") continue;  // mostly changes of requested CPU
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

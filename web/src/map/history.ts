// Moments of the past, and how much happened when.
import type { HistoryEvent } from "../api/types";
import type { TimeRange } from "../lib/range";

export const grain = 10_000; // milliseconds

/** Moments are rounded so that the same ones are asked for again. */
export function frameOf(range: TimeRange, frames: number): number {
  return Math.max(grain, Math.round((range.to - range.from) / frames / grain) * grain);
}

/** How many events fall into each of `bins` parts of the range. */
export function histogram(events: HistoryEvent[], range: TimeRange, bins: number): { many: number; decisions: number }[] {
  const all = Array.from({ length: bins }, () => ({ many: 0, decisions: 0 }));
  const span = range.to - range.from;
  for (const event of events) {
    const bin = all[Math.floor(((event.at - range.from) / span) * bins)];
    if (!bin) continue;
    bin.many++;
    if (event.kind === "decision") bin.decisions++;
  }
  return all;
}

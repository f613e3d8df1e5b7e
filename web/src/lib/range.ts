// The time range of charts and sliders, from the address: "range=6h", or "from" and "to". Without
// either it is the part of the last six hours that has data.

export const ranges = [
  { id: "15m", label: "15 minutes", ms: 900_000 },
  { id: "1h", label: "1 hour", ms: 3_600_000 },
  { id: "6h", label: "6 hours", ms: 6 * 3_600_000 },
  { id: "24h", label: "24 hours", ms: 24 * 3_600_000 },
  { id: "7d", label: "7 days", ms: 7 * 86_400_000 },
  { id: "30d", label: "30 days", ms: 30 * 86_400_000 },
] as const;

export interface TimeRange {
  from: number;
  to: number;
  /** Follows the clock. */
  moving: boolean;
  id: string;
}

export const automatic = "auto";
/** The longest and shortest automatic ranges. */
export const longestAuto = 6 * 3_600_000;
const shortestAuto = 10 * 60_000;

/**
 * Moving ranges end at `now`, rounded to `step`, so that the same request is not repeated each second. `since`: the
 * first data, 0 if it is not known yet.
 */
export function rangeOf(params: Readonly<Record<string, string>>, now: number, step: number, since = 0): TimeRange {
  const from = Number(params.from);
  const to = Number(params.to);
  if (Number.isFinite(from) && Number.isFinite(to) && from > 0 && to > from) {
    return { from, to, moving: false, id: "custom" };
  }
  const known = ranges.find((each) => each.id === params.range);
  const end = Math.ceil(now / step) * step;
  if (known) return { from: end - known.ms, to: end, moving: true, id: known.id };
  const span = Math.min(longestAuto, Math.max(shortestAuto, now - since));
  return { from: Math.floor((end - span) / step) * step, to: end, moving: true, id: automatic };
}

/** Subdivides time axes at round local times: the step that gives at most `most` marks. */
export function tickStep(span: number, most: number): number {
  const minute = 60_000;
  const steps = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200, 14_400, 43_200];
  for (const step of steps) {
    if (span / (step * minute) <= most) return step * minute;
  }
  return 86_400 * 1000 * 60;
}

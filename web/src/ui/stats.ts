// The data of charts, and statistics of it.
import type { Series } from "../api/types";

export interface Stats {
  min: number | undefined;
  mean: number | undefined;
  max: number | undefined;
  last: number | undefined;
}

/** Over known values; undefined if there are none. */
export function statsOf(series: Series | undefined): Stats {
  const stats: Stats = { min: undefined, mean: undefined, max: undefined, last: undefined };
  let sum = 0;
  let many = 0;
  for (let index = 0; index < (series?.at.length ?? 0); index++) {
    const mean = series?.mean[index];
    if (mean === null || mean === undefined) continue;
    const min = series?.min[index] ?? mean;
    const max = series?.max[index] ?? mean;
    stats.min = stats.min === undefined ? min : Math.min(stats.min, min);
    stats.max = stats.max === undefined ? max : Math.max(stats.max, max);
    stats.last = mean;
    sum += mean;
    many++;
  }
  if (many > 0) stats.mean = sum / many;
  return stats;
}

type Row = (number | null)[];

/** Lines on one time axis: [seconds, mean, min, max, mean, ...]. */
export function tableOf(lines: { series: Series | undefined }[]): Row[] {
  const times = new Set<number>();
  for (const line of lines) for (const at of line.series?.at ?? []) times.add(at);
  const axis = [...times].sort((a, b) => a - b);
  const place = new Map(axis.map((at, index) => [at, index]));
  const rows: Row[] = [axis.map((at) => at / 1000)];
  for (const line of lines) {
    for (const name of ["mean", "min", "max"] as const) {
      const row: Row = axis.map(() => null);
      line.series?.at.forEach((at, index) => {
        row[place.get(at) ?? 0] = line.series?.[name][index] ?? null;
      });
      rows.push(row);
    }
  }
  return rows;
}

/** The widest text of an axis in CSS pixels. */
export function widest(texts: readonly string[], measure: (text: string) => number): number {
  return texts.reduce((most, each) => Math.max(most, measure(each)), 0);
}

/** Missing steps that are bridged: a report that came late is no outage. */
const bridged = 3;

/** Gaps that are outages: in pixels, each of more than the bridged steps. */
export function outages(gaps: [number, number][], pixelsPerStep: number): [number, number][] {
  return gaps.filter(([from, to]) => to - from > (bridged + 1.5) * pixelsPerStep);
}

/** Milliseconds without data between the first and the last value: outages, not reports that came late. */
export function missing(series: Series | undefined): number {
  const known = (series?.at ?? []).filter((_, place) => typeof series?.mean[place] === "number");
  const step = stepOf([{ series }]);
  let sum = 0;
  known.forEach((at, place) => {
    const gap = at - (known[place - 1] ?? at);
    if (gap > (bridged + 1) * step) sum += gap - step;
  });
  return sum;
}

/** Milliseconds between the points of the lines; 0: there are too few. */
export function stepOf(lines: readonly { series: Series | undefined }[]): number {
  const at = lines.find((line) => (line.series?.at.length ?? 0) > 1)?.series?.at;
  return at ? at[1]! - at[0]! : 0;
}

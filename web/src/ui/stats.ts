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

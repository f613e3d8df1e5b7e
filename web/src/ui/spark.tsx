// A line without axes, the height of a row of text. The figures beside it have its meaning.
import type { ReactNode } from "react";
import type { Series } from "../api/types";

const [width, height] = [96, 20];

/** Points of the path; a gap ends a piece of it. `most`: the value at the top. */
export function sparkPath(series: Series | undefined, from: number, to: number, most: number): string {
  let path = "";
  let pen = "M";
  series?.at.forEach((at, place) => {
    const value = series.mean[place];
    if (value === null || value === undefined) {
      // A few late reports are no gap.
      if (series.mean.slice(place, place + 4).every((each) => each === null || each === undefined)) pen = "M";
      return;
    }
    const x = ((at - from) / Math.max(1, to - from)) * width;
    const y = height - 1 - (Math.max(0, Math.min(1, value / (most || 1))) * (height - 2));
    path += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  });
  return path;
}

export function Spark({ series, from, to, most }: { series: Series | undefined; from: number; to: number; most: number }): ReactNode {
  return (
    <svg className="spark" viewBox={`0 0 ${width} ${height}`} width={width} height={height} preserveAspectRatio="none" aria-hidden="true">
      <path d={sparkPath(series, from, to, most)} />
    </svg>
  );
}

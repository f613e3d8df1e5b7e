// A chart over time with its main values: minimum, mean and maximum of each line.
import { useEffect, useLayoutEffect, useRef, useState, type ReactNode } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Series } from "../api/types";
import { clock, date, duration, nothing } from "../lib/format";
import { tickStep } from "../lib/range";
import { setParams } from "../lib/route";
import { useDark } from "../lib/theme";
import { seriesCsv } from "../lib/tables";
import { pictureOf } from "./chartpicture";
import { SaveMenu } from "./save";
import { missing, outages, statsOf, stepOf, tableOf, widest } from "./stats";

export interface Line {
  label: string;
  /** A CSS variable of the page, such as "--series-1", or a colour. */
  colour: string;
  dash?: number[];
  series: Series | undefined;
  /** Shades the area between minimum and maximum. */
  band?: boolean;
  help?: string;
}

export interface Mark {
  at: number;
  failed?: boolean;
}

interface Props {
  title: string;
  lines: Line[];
  from: number;
  to: number;
  write: (value: number | null | undefined) => string;
  /** Allowed steps of the axis, for units without round decimal steps. */
  steps?: number[];
  height?: number;
  /** Fixed scale for fractions, so that charts are comparable. */
  most?: number;
  marks?: Mark[];
  note?: ReactNode;
  /** Only the latest value of each line beside its name, instead of a table. */
  brief?: boolean;
  /** Takes the height that the page leaves, at least `height`. */
  fill?: boolean;
}

const font = "11px system-ui, sans-serif";

const colourOf = (element: Element, colour: string): string =>
  colour.startsWith("--") ? getComputedStyle(element).getPropertyValue(colour).trim() : colour;

const axisTime = (at: number, span: number): string => {
  if (span > 2.5 * 86_400_000) return date(at).slice(5);
  const time = clock(at, at, false);
  return time === "00:00" ? date(at).slice(5) : time;
};

const sizeOf = (element: HTMLElement, { height = 150, fill }: Props): { width: number; height: number } => ({
  width: Math.max(120, element.clientWidth), height: fill ? Math.max(height, element.clientHeight) : height,
});

function optionsOf(element: HTMLElement, latest: () => Props, onCursor: (index: number | null) => void): uPlot.Options {
  const props = latest();
  const css = (name: string): string => colourOf(element, name);
  const gaps: uPlot.Series.GapsRefiner = (plot, _, __, ___, found) => {
    const { min = 0, max = 1 } = plot.scales.x ?? {};
    return outages(found, (plot.bbox.width * stepOf(latest().lines)) / 1000 / Math.max(1, (max ?? 1) - (min ?? 0)));
  };
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  for (const line of props.lines) {
    const stroke = css(line.colour);
    const at = series.length;
    series.push({ stroke, width: 1.5, dash: line.dash, points: { show: false }, spanGaps: false, gaps });
    const edge: uPlot.Series = { stroke: "transparent", width: 0, points: { show: false }, gaps };
    series.push({ ...edge, show: line.band ?? false }, { ...edge, show: line.band ?? false });
    if (line.band) bands.push({ series: [at + 2, at + 1], fill: `${hex(stroke)}26` });
  }
  return {
    ...sizeOf(element, props),
    // At the right room for half a label of time.
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
    scales: {
      x: { time: true, range: () => [props.from / 1000, props.to / 1000] },
      y: { range: (_, __, max) => [0, Math.max(props.most ?? 0, (max || 0) * 1.08) || 1] },
    },
    axes: [
      {
        stroke: css("--muted"),
        font,
        size: 26,
        grid: { stroke: css("--grid"), width: 1 },
        ticks: { show: false },
        splits: (plot, _, min, max) => {
          const span = (max - min) * 1000;
          const step = tickStep(span, Math.max(2, plot.width / 90)) / 1000;
          const offset = new Date(min * 1000).getTimezoneOffset() * 60;
          const first = Math.ceil((min - offset) / step) * step + offset;
          return Array.from({ length: Math.max(0, Math.floor((max - first) / step) + 1) }, (_, each) => first + each * step);
        },
        values: (_, splits) => splits.map((each) => axisTime(each * 1000, props.to - props.from)),
      },
      {
        stroke: css("--muted"),
        font,
        // The widest label decides: "10,000 GB" needs more room than "5 %".
        size: (plot, values) => {
          plot.ctx.font = font;
          return Math.ceil(widest(values ?? [], (text) => plot.ctx.measureText(text).width)) + 14;
        },
        grid: { stroke: css("--grid"), width: 1 },
        ticks: { show: false },
        space: 34,
        ...(props.steps ? { incrs: props.steps } : {}),
        values: (_, splits) => splits.map((each) => props.write(each)),
      },
    ],
    series,
    bands,
    hooks: {
      setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          if (plot.select.width < 6) return;
          const at = (pixel: number): string => String(Math.round(plot.posToVal(pixel, "x") * 1000));
          setParams({ from: at(plot.select.left), to: at(plot.select.left + plot.select.width), range: "" }, "push");
        },
      ],
      draw: [(plot) => drawMarks(plot, latest().marks ?? [], css("--accent"), css("--bad"))],
    },
  };
}

const hex = (colour: string): string => (/^#[0-9a-f]{6}$/i.test(colour) ? colour : "#888888");

function drawMarks(plot: uPlot, marks: Mark[], colour: string, failed: string): void {
  const { ctx, bbox } = plot;
  const size = 4 * window.devicePixelRatio;
  ctx.save();
  const many = marks.length > 60;
  for (const mark of marks) {
    const x = plot.valToPos(mark.at / 1000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.fillStyle = mark.failed ? failed : colour;
    ctx.globalAlpha = mark.failed || !many ? 0.9 : 0.5;
    if (many && !mark.failed) {
      ctx.fillRect(x - size / 8, bbox.top - size, size / 4, size * 1.6);
      continue;
    }
    ctx.beginPath();
    ctx.moveTo(x - size, bbox.top - size);
    ctx.lineTo(x + size, bbox.top - size);
    ctx.lineTo(x, bbox.top + size * 0.7);
    ctx.fill();
  }
  ctx.restore();
}

export function Chart(props: Props): ReactNode {
  const { title, lines, write, note } = props;
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const dark = useDark();
  const [index, setIndex] = useState<number | null>(null);
  const rows = tableOf(lines);
  const latest = useRef({ props, rows });
  latest.current = { props, rows };
  const shape = `${dark} ${lines.map((line) => `${line.label} ${line.colour}`).join("|")} ${props.height} ${props.most}`;

  useLayoutEffect(() => {
    const element = holder.current;
    if (!element) return;
    const made = optionsOf(element, () => latest.current.props, setIndex);
    // The scale reads the latest range on every draw, because the time range advances.
    made.scales!.x!.range = () => [latest.current.props.from / 1000, latest.current.props.to / 1000];
    made.axes![0]!.values = (_, splits) =>
      splits.map((each) => axisTime(each * 1000, latest.current.props.to - latest.current.props.from));
    plot.current = new uPlot(made, latest.current.rows as uPlot.AlignedData, element);
    const observer = new ResizeObserver(() => {
      plot.current?.setSize(sizeOf(element, latest.current.props));
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => plot.current?.setData(rows as uPlot.AlignedData));

  const at = index === null ? undefined : rows[0]?.[index];
  // A line may have gaps of its own: nothing measured is no outage.
  const without = lines.length > 0 ? Math.min(...lines.map((line) => missing(line.series))) : 0;
  const picture = (): HTMLCanvasElement | undefined => {
    const element = holder.current;
    if (!element || !plot.current) return undefined;
    const legend = lines.map((line) => ({ label: line.label, value: write(statsOf(line.series).last), colour: colourOf(element, line.colour), dash: line.dash }));
    const when = `${date(props.from)} ${clock(props.from, props.from, false)} to ${clock(props.to, props.from, false)}`;
    return pictureOf(plot.current, title, when, legend, colourOf(element, "--surface"), colourOf(element, "--text"));
  };
  const gap = without > 0 ? `gaps: no data for ${duration(without / 1000)}` : undefined;
  return (
    <figure className="chart" data-fill={props.fill}>
      <figcaption>
        <span className="chart-title">{title}</span>
        <span className="muted chart-note">{props.brief && at ? clock(at * 1000, props.to, false) : (gap ?? note)}</span>
        <SaveMenu what={`chart ${title}`} picture={picture} csv={() => seriesCsv(lines)} />
      </figcaption>
      <div ref={holder} className="chart-plot" role="img" aria-label={sentence(title, lines, write)} />
      {props.brief ? <BriefLegend lines={lines} rows={rows} index={index} write={write} /> : (
        <table className="chart-legend">
          <thead>
            <tr>
              <th scope="col">
                <span className="hidden">Line</span>
              </th>
              <th scope="col">{at ? clock(at * 1000, props.to, false) : "latest"}</th>
              <th scope="col">min</th>
              <th scope="col">mean</th>
              <th scope="col">max</th>
            </tr>
          </thead>
          <tbody>
            {lines.map((line, place) => {
              const stats = statsOf(line.series);
              const value = index === null ? stats.last : rows[1 + place * 3]?.[index];
              return (
                <tr key={line.label}>
                  <th scope="row" title={line.help}>
                    <Stroke colour={line.colour} dash={line.dash} />
                    {line.label}
                  </th>
                  <td className="strong">{write(value)}</td>
                  <td>{write(stats.min)}</td>
                  <td>{write(stats.mean)}</td>
                  <td>{write(stats.max)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </figure>
  );
}

/** The lines with their values at the cursor, else the latest. */
function BriefLegend({ lines, rows, index, write }: Pick<Props, "lines" | "write"> & { rows: ReturnType<typeof tableOf>; index: number | null }): ReactNode {
  return (
    <ul className="chart-brief">
      {lines.map((line, place) => (
        <li key={line.label} title={line.help}>
          <Stroke colour={line.colour} dash={line.dash} />
          {line.label} <strong>{write(index === null ? statsOf(line.series).last : rows[1 + place * 3]?.[index])}</strong>
        </li>
      ))}
    </ul>
  );
}

function Stroke({ colour, dash }: { colour: string; dash?: number[] }): ReactNode {
  const stroke = colour.startsWith("--") ? `var(${colour})` : colour;
  return (
    <svg className="stroke" width="18" height="8" aria-hidden="true">
      <line x1="0" x2="18" y1="4" y2="4" strokeWidth="2.5" strokeDasharray={dash?.join(" ")} style={{ stroke }} />
    </svg>
  );
}

function sentence(title: string, lines: Line[], write: Props["write"]): string {
  const parts = lines.map((line) => {
    const { min, mean, max } = statsOf(line.series);
    if (mean === undefined) return `${line.label}: ${nothing}`;
    return `${line.label}: mean ${write(mean)}, between ${write(min)} and ${write(max)}`;
  });
  return `${title}. ${parts.join("; ")}`;
}

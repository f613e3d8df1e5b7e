// The time slider: events over time, a choice of any moment, and replay.
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { useNow } from "../lib/data";
import { ago, clock, counted } from "../lib/format";
import type { TimeRange } from "../lib/range";
import { setParams } from "../lib/route";
import { useDark } from "../lib/theme";
import { Choice, IconButton } from "../ui/controls";
import { coloursOf } from "./draw";
import { frameOf, grain, histogram } from "./history";
import type { Past } from "./replay";

interface Props {
  range: TimeRange;
  at: number | undefined;
  /** Events in the range, once loaded. */
  past: Past | undefined;
  /** Frames are loaded already: play as fast as the eye can follow. */
  local: boolean;
  /** The map of that moment is still being loaded. */
  busy: boolean;
  /** The user reaches for it: the past may be loaded. */
  onReach: () => void;
}

/** Frames of a whole replay, and the seconds that it takes. */
const speeds = [
  { id: "240", label: "in 45 s" },
  { id: "120", label: "in 20 s" },
  { id: "48", label: "in 10 s" },
];

const pause = { local: 60, asked: 180 }; // milliseconds between frames

export function TimeBar({ range, at, past, local, busy, onReach }: Props): ReactNode {
  const now = useNow(10_000);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState("120");
  const [drag, setDrag] = useState<number>();
  const end = range.moving ? Math.min(range.to, now) : range.to;
  const wait = local ? pause.local : pause.asked;
  const step = frameOf(range, (Number(speed) * pause.asked) / wait);
  const live = at === undefined && drag === undefined;
  const value = Math.max(range.from, Math.min(drag ?? at ?? end, end));

  const go = (moment: number): void => {
    const next = Math.max(range.from, moment);
    setParams({ at: next >= end && range.moving ? "" : String(Math.round(Math.min(next, end) / grain) * grain) });
  };

  // Schedules the next frame only after the last one was painted and could be seen.
  const ready = playing && !busy;
  useEffect(() => {
    if (!ready) return;
    const timer = setTimeout(() => {
      if (at === undefined || at + step >= end) setPlaying(false);
      go((at ?? end) + step);
    }, wait);
    return () => clearTimeout(timer);
  });

  // While the slider is dragged, the map follows when it rests for a moment.
  useEffect(() => {
    if (drag === undefined) return;
    const timer = setTimeout(() => {
      go(drag);
      setDrag(undefined);
    }, local ? 0 : 80);
    return () => clearTimeout(timer);
  }, [drag]);

  const play = (): void => {
    if (!playing && at === undefined) go(range.from);
    setPlaying(!playing);
  };
  return (
    <section className="timebar" aria-label="Time" onPointerEnter={onReach} onFocus={onReach}>
      <div className="timebar-buttons">
        <IconButton label={playing ? "Stop the replay" : "Replay"} icon={playing ? "pause" : "play"} onPress={play} />
        <IconButton label="A step back" icon="back" onPress={() => go(value - step)} />
        <IconButton label="A step forward" icon="forward" onPress={() => go(value + step)} isDisabled={at === undefined} />
        <Choice label="Length of the replay" value={speed} options={speeds} onChange={setSpeed} />
      </div>
      <div className="slider">
        <div className="slider-times muted" aria-hidden="true">
          {[0, 0.25, 0.5, 0.75, 1].map((part) => (
            <span key={part}>{clock(range.from + part * (end - range.from), end, false)}</span>
          ))}
        </div>
        <Marks range={range} end={end} past={past} />
        <input
          type="range" aria-label="Moment" aria-valuetext={live ? "now" : clock(value, now)}
          min={0} max={Math.max(1, Math.round((end - range.from) / grain))} step={1}
          value={Math.round((value - range.from) / grain)}
          onChange={(event) => {
            setPlaying(false);
            setDrag(range.from + Number(event.target.value) * grain);
          }}
          onKeyDown={(event) => {
            const steps = { PageUp: 10, PageDown: -10 }[event.key];
            if (steps === undefined) return;
            event.preventDefault();
            go(value + steps * step);
          }}
        />
      </div>
      <output className="timebar-at">
        <strong>{live ? "Now" : clock(value, now)}</strong>
        <span className="muted">{live ? clock(end, now, false) : ago(value, now)}</span>
      </output>
    </section>
  );
}

/** Number of changes over time; decisions in the accent colour. */
function Marks({ range, end, past }: { range: TimeRange; end: number; past: Past | undefined }): ReactNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const dark = useDark();
  const [width, setWidth] = useState(0);
  const bins = useMemo(
    () => histogram(past?.events ?? [], { ...range, to: end }, Math.max(1, Math.floor(width / 4))),
    [past, range.from, end, width],
  );
  useLayoutEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || width === 0) return;
    element.width = width * 2;
    element.height = 56;
    context.setTransform(2, 0, 0, 2, 0, 0);
    const colours = coloursOf(element, dark);
    const most = Math.max(1, ...bins.map((bin) => bin.many));
    bins.forEach((bin, place) => {
      const height = Math.ceil((Math.sqrt(bin.many) / Math.sqrt(most)) * 24);
      const decided = bin.many > 0 ? Math.round((bin.decisions / bin.many) * height) : 0;
      context.fillStyle = colours.line;
      context.fillRect(place * 4, 28 - height, 3, height - decided);
      context.fillStyle = colours.accent;
      context.fillRect(place * 4, 28 - decided, 3, decided);
    });
  }, [bins, width, dark]);
  const sum = (of: "many" | "decisions"): number => bins.reduce((all, bin) => all + bin[of], 0);
  return (
    <canvas
      ref={canvas} className="slider-marks" role="img"
      aria-label={`${counted(sum("many"), "change")}, of them ${counted(sum("decisions"), "decision")}`}
    />
  );
}

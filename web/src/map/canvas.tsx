// The map on a canvas of the size of its visible part, however many GPUs there are.
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from "react";
import type { Node } from "../api/types";
import { percent } from "../lib/format";
import { useDark } from "../lib/theme";
import { cellsOf, describe, holderName, kindNames, pieceName, shortProduct, modeText } from "./cells";
import { coloursOf, draw, drawPointers, type By, type Pointers, type Scene } from "./draw";
import { gpuRect, hit, hitFold, layOut, move, type Cursor, type Hit, type Zoom } from "./geometry";
import { pictureOfMap } from "./picture";
import type { TeamMark } from "../lib/palette";

interface Props {
  nodes: Node[];
  /** Of these, drawn as squares. */
  folded: ReadonlySet<Node>;
  /** Of the search field: the first hit is scrolled to. */
  text: string;
  first: Cursor | undefined;
  by: By;
  zoom: Zoom;
  teams: Map<string, TeamMark>;
  team: string;
  pod: string;
  selected: Cursor | undefined;
  staleBefore: number;
  onSelect: (cursor: Cursor | undefined, pod?: string) => void;
  onUnfold: () => void;
  /** Set to a function that draws the whole map. */
  shot: React.RefObject<((title: string) => HTMLCanvasElement | undefined) | undefined>;
}

const padding = 14;
const above = 6; // between the frame and the first section
const below = 12;

export function GpuCanvas({ nodes, folded, text, first, by, zoom, teams, team, pod, selected, staleBefore, onSelect, onUnfold, shot }: Props): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const dark = useDark();
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [cursor, setCursor] = useState<Cursor>();
  const [hover, setHover] = useState<{ hit: Hit; x: number; y: number }>();
  const geometry = useMemo(
    () => layOut(nodes, { width: Math.max(60, size.width - 2 * padding), height: Math.max(120, size.height - above - below) }, zoom, folded),
    [nodes, folded, size.width, size.height, zoom],
  );
  const scene: Scene = { geometry, by, teams, dark, team, pod, text, staleBefore };
  const pointers: Pointers = { cursor, selected, hover: hover && { node: hover.hit.box.node.node, index: hover.hit.gpu.index } };
  const latest = useRef({ scene, pointers });
  latest.current = { scene, pointers };

  useEffect(() => {
    shot.current = (title) => {
      const element = scroller.current;
      if (!element) return undefined;
      const { scene: now } = latest.current;
      return pictureOfMap(now, coloursOf(element, now.dark), getComputedStyle(element).getPropertyValue("--surface").trim(), title);
    };
    return () => {
      shot.current = undefined;
    };
  }, [shot]);

  const frames = useRef({ map: 0, pointers: 0 });
  const paint = useCallback((what: "map" | "pointers") => {
    cancelAnimationFrame(frames.current[what]);
    frames.current[what] = requestAnimationFrame(() => {
      const [element, holder] = [what === "map" ? canvas.current : overlay.current, scroller.current];
      const context = element?.getContext("2d");
      if (!element || !holder || !context) return;
      const ratio = Math.min(2, window.devicePixelRatio || 1);
      const [width, height] = [holder.clientWidth, holder.clientHeight];
      if (element.width !== Math.round(width * ratio)) element.width = Math.round(width * ratio);
      if (element.height !== Math.round(height * ratio)) element.height = Math.round(height * ratio);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      context.translate(padding, 0);
      const { scene: now, pointers: at } = latest.current;
      const [colours, top] = [coloursOf(holder, now.dark), holder.scrollTop - above];
      if (what === "map") draw(context, now, colours, top, height);
      else drawPointers(context, now.geometry, at, colours, top);
    });
  }, []);
  const staleStep = Math.floor(staleBefore / 10_000);
  useEffect(() => paint("map"), [paint, geometry, by, teams, dark, team, pod, text, staleStep, size]);
  // Every render may have moved an outline; the map below it is drawn again only if it changed.
  useEffect(() => paint("pointers"));
  useEffect(() => () => {
    cancelAnimationFrame(frames.current.map);
    cancelAnimationFrame(frames.current.pointers);
  }, []);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const under = (event: React.MouseEvent): Hit | undefined => {
    const element = scroller.current;
    if (!element) return undefined;
    const box = element.getBoundingClientRect();
    return hit(geometry, event.clientX - box.left - padding, event.clientY - box.top + element.scrollTop - above);
  };
  const foldUnder = (event: React.MouseEvent): boolean => {
    const element = scroller.current;
    return element !== null && hitFold(geometry, event.clientY - element.getBoundingClientRect().top + element.scrollTop - above) !== undefined;
  };
  const onPointerMove = (event: React.PointerEvent): void => {
    if (event.pointerType === "touch") return;
    const found = under(event);
    const box = event.currentTarget.getBoundingClientRect();
    setHover(found && { hit: found, x: event.clientX - box.left, y: event.clientY - box.top });
  };
  const choose = (found: Hit | undefined): void => {
    if (!found) return onSelect(undefined);
    const cell = cellsOf(found.gpu).find((each) => found.at >= each.from && found.at < each.to);
    const holder = cell?.holders[0];
    onSelect({ node: found.box.node.node, index: found.gpu.index }, holder && holderName(holder));
  };
  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) {
      event.preventDefault();
      const next = move(geometry, cursor ?? selected, event.key);
      setCursor(next);
      if (next) reveal(next);
    } else if ((event.key === "Enter" || event.key === " ") && cursor) {
      event.preventDefault();
      onSelect(cursor);
    } else if (event.key === "Escape") {
      onSelect(undefined);
    }
  };
  const reveal = (target: Cursor): void => {
    const element = scroller.current;
    const box = geometry.boxes.find((each) => each.node.node === target.node);
    if (!element || !box) return;
    const rect = gpuRect(geometry, box, box.node.gpus.findIndex((each) => each.index === target.index));
    if (rect.y < element.scrollTop + 20) element.scrollTop = Math.max(0, rect.y - 60);
    const bottom = rect.y + rect.height - element.clientHeight + 20;
    if (bottom > element.scrollTop) element.scrollTop = bottom;
  };
  // The first hit of a search may be out of sight; later changes of the map do not scroll.
  useEffect(() => {
    if (text && first) reveal(first);
  }, [text]);
  const spoken = useMemo(() => {
    const node = nodes.find((each) => each.node === cursor?.node);
    const gpu = node?.gpus.find((each) => each.index === cursor?.index);
    return node && gpu ? describe(node, gpu) : "";
  }, [nodes, cursor]);

  return (
    <div className="map-frame">
      <div
        ref={scroller}
        className="map-scroll"
        role="application"
        aria-roledescription="GPU map"
        aria-label={`Map of ${nodes.length} nodes${folded.size > 0 ? `, ${folded.size} of them empty and folded` : ""}. Arrow keys go from GPU to GPU, Enter opens one. The same is in the table.`}
        tabIndex={0}
        onScroll={() => {
          setHover(undefined);
          paint("map");
          paint("pointers");
        }}
        onPointerMove={onPointerMove}
        onPointerLeave={() => setHover(undefined)}
        onClick={(event) => (foldUnder(event) ? onUnfold() : choose(under(event)))}
        onKeyDown={onKeyDown}
        onBlur={() => setCursor(undefined)}
      >
        <div style={{ height: Math.max(size.height, geometry.height + above + below) }}>
          <canvas ref={canvas} className="map-canvas" style={{ width: size.width, height: size.height }} aria-hidden="true" />
          <canvas ref={overlay} className="map-overlay" style={{ width: size.width, height: size.height, marginTop: -size.height }} aria-hidden="true" />
        </div>
      </div>
      <p className="hidden" role="status">
        {spoken}
      </p>
      {hover && <Hint {...hover} width={size.width} height={size.height} />}
    </div>
  );
}

function Hint({ hit: found, x, y, width, height }: { hit: Hit; x: number; y: number; width: number; height: number }): ReactNode {
  const { gpu, box, at } = found;
  const cell = cellsOf(gpu).find((each) => at >= each.from && at < each.to);
  const style = {
    ...(x > width - 300 ? { right: width - x + 16 } : { left: x + 18 }),
    ...(y > height - 160 ? { bottom: height - y + 16 } : { top: y + 18 }),
  };
  return (
    <div className="map-hint" style={style} aria-hidden="true">
      <div className="map-hint-title">
        {box.node.node} · GPU {gpu.index} <span className="muted">{shortProduct(gpu.product)} · {modeText(gpu)}</span>
      </div>
      {gpu.health && <div className="bad-text">{gpu.health}</div>}
      {cell && (
        <>
          <div>
            {pieceName(gpu, cell)} <span className="muted">{kindNames[cell.kind]}</span>
          </div>
          {cell.holders.slice(0, 4).map((holder) => (
            <div key={holderName(holder)} className="ellipsis">
              {holderName(holder)}
            </div>
          ))}
          {cell.holders.length > 0 && (
            <div className="muted">
              {cell.utilization === null ? "utilisation not measured here" : `${percent(cell.utilization)} busy`}
              {cell.team && `, team ${cell.team}`}
            </div>
          )}
        </>
      )}
    </div>
  );
}

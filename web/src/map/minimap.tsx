// A small map of the whole cluster that leads to the large one.
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from "react";
import type { Node } from "../api/types";
import { markTeams } from "../lib/palette";
import { useDark } from "../lib/theme";
import { countSlots } from "./cells";
import { coloursOf, draw, type Scene } from "./draw";
import { foldedNodes, layOut } from "./geometry";

export function MiniMap({ nodes, staleBefore }: { nodes: Node[]; staleBefore: number }): ReactNode {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const dark = useDark();
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const visible = size.width > 0 && size.height > 0;
  const geometry = useMemo(
    () => (visible ? layOut(nodes, size, "fit", foldedNodes(nodes, () => false)) : undefined),
    [nodes, size, visible],
  );
  const step = Math.floor(staleBefore / 10_000);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || !canvas.current || !geometry) return;
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    canvas.current.width = Math.round(size.width * ratio);
    canvas.current.height = Math.round(size.height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const teams = markTeams(countSlots(nodes).byTeam.keys());
    const scene: Scene = { geometry, by: "state", teams, dark, team: "", pod: "", text: "", staleBefore };
    draw(context, scene, coloursOf(canvas.current, dark), 0, size.height);
  }, [geometry, dark, size, step]);
  return (
    <div ref={frame} className="minimap">
      <canvas ref={canvas} aria-hidden="true" style={{ width: size.width, height: size.height }} />
    </div>
  );
}

// Draws the visible part of the map. Colour is never the only mark: idle is hatched, unmeasured is
// dotted, free is an outline, out of service is crossed.
import { inkOn, rampColour, teamColours, type TeamMark } from "../lib/palette";
import { cellsOf, holderName, type Cell, type Kind } from "./cells";
import { gpuRect, type Cursor, type Geometry, type Rect } from "./geometry";

export type By = "team" | "state" | "utilization";

export interface Scene {
  geometry: Geometry;
  by: By;
  teams: Map<string, TeamMark>;
  dark: boolean;
  /** Emphasised items; the rest is dimmed. */
  team: string;
  pod: string;
  hover: Cursor | undefined;
  cursor: Cursor | undefined;
  selected: Cursor | undefined;
  /** Nodes with data older than this time are faded. */
  staleBefore: number;
}

export interface Colours {
  text: string;
  muted: string;
  line: string;
  track: string;
  surface: string;
  accent: string;
  busy: string;
  idle: string;
  held: string;
  out: string;
}

const kinds = {
  light: { busy: "#2f7ebc", idle: "#e3a72f", held: "#8a97a8", out: "#c23b3b" },
  dark: { busy: "#4c9bd8", idle: "#d9a441", held: "#76859a", out: "#e06c6c" },
} as const;

/** The colours of the page, and the state colours that only the map and its legend use. */
export function coloursOf(element: Element, dark: boolean): Colours {
  const style = getComputedStyle(element);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  return {
    text: of("--text"),
    muted: of("--muted"),
    line: of("--line-strong"),
    track: of("--track"),
    surface: of("--surface"),
    accent: of("--accent"),
    ...kinds[dark ? "dark" : "light"],
  };
}

export function teamColour(mark: TeamMark | undefined, dark: boolean): string {
  return teamColours[dark ? "dark" : "light"][mark?.colour ?? 0] ?? "#888888";
}

const sameGpu = (cursor: Cursor | undefined, node: string, index: number): boolean =>
  cursor !== undefined && cursor.node === node && cursor.index === index;

export function draw(context: CanvasRenderingContext2D, scene: Scene, colours: Colours, top: number, height: number): void {
  const { geometry } = scene;
  const roomy = geometry.size.height >= 20;
  context.textBaseline = "middle";
  for (const section of geometry.sections) {
    if (section.y - top < height && section.y - top > -40) {
      context.font = "600 12px system-ui, sans-serif";
      context.fillStyle = colours.text;
      context.fillText(section.title, 0, section.y - top + 13);
      const after = context.measureText(section.title).width + 8;
      context.font = "12px system-ui, sans-serif";
      context.fillStyle = colours.muted;
      context.fillText(`${section.gpus} GPUs`, after, section.y - top + 13);
    }
    for (const box of section.boxes) {
      if (box.y - top > height || box.y + box.height - top < 0) continue;
      const stale = box.node.fresh_at < scene.staleBefore;
      context.globalAlpha = 1;
      context.font = `${roomy ? 12 : geometry.size.height >= 10 ? 11 : 10}px system-ui, sans-serif`;
      context.fillStyle = box.node.ready && !stale ? colours.muted : colours.out;
      const mark = !box.node.ready ? " · not ready" : stale ? " · old" : "";
      context.fillText(fit(context, box.node.node + mark, box.width), box.x, box.y - top + geometry.size.header / 2 - 1);
      box.node.gpus.forEach((gpu, place) => {
        const rect = gpuRect(geometry, box, place);
        rect.y -= top;
        context.globalAlpha = stale ? 0.45 : 1;
        for (const cell of cellsOf(gpu)) drawCell(context, rect, cell, scene, colours, stale ? 0.45 : 1);
        context.globalAlpha = 1;
        outline(context, rect, box.node.node, gpu.index, scene, colours);
      });
    }
  }
  context.globalAlpha = 1;
}

function outline(context: CanvasRenderingContext2D, rect: Rect, node: string, index: number, scene: Scene, colours: Colours): void {
  const selected = sameGpu(scene.selected, node, index);
  const cursor = sameGpu(scene.cursor, node, index);
  if (!selected && !cursor && !sameGpu(scene.hover, node, index)) return;
  context.strokeStyle = selected || cursor ? colours.accent : colours.text;
  context.lineWidth = selected || cursor ? 2 : 1;
  context.strokeRect(rect.x - 1.5, rect.y - 1.5, rect.width + 3, rect.height + 3);
}

function emphasised(cell: Cell, scene: Scene): boolean {
  if (scene.team && cell.team !== scene.team) return false;
  if (scene.pod && !cell.holders.some((each) => holderName(each) === scene.pod)) return false;
  return true;
}

function fillOf(cell: Cell, scene: Scene, colours: Colours): string {
  if (cell.kind === "out") return colours.out;
  if (scene.by === "team") return teamColour(scene.teams.get(cell.team), scene.dark);
  if (scene.by === "utilization") {
    return cell.utilization === null ? colours.held : rampColour(cell.utilization, scene.dark);
  }
  return colours[cell.kind === "idle" ? "idle" : cell.kind === "held" ? "held" : "busy"];
}

function drawCell(
  context: CanvasRenderingContext2D, bar: Rect, cell: Cell, scene: Scene, colours: Colours, alpha: number,
): void {
  const x = Math.round(bar.x + cell.from * bar.width);
  const right = Math.round(bar.x + cell.to * bar.width);
  const rect = { x, y: Math.round(bar.y), width: Math.max(1, right - x - (cell.to < 1 ? 1 : 0)), height: bar.height };
  context.globalAlpha = alpha * (emphasised(cell, scene) ? 1 : 0.16);
  if (cell.kind === "unpartitioned" || cell.kind === "free") {
    context.fillStyle = colours.track;
    context.fillRect(rect.x, rect.y, rect.width, rect.height);
    if (cell.kind === "free") {
      context.strokeStyle = colours.line;
      context.lineWidth = 1;
      context.strokeRect(rect.x + 0.5, rect.y + 0.5, rect.width - 1, rect.height - 1);
    }
    if (cell.kind === "free" && bar.height >= 20) label(context, rect, cell.profile, colours.muted);
    return;
  }
  const fill = fillOf(cell, scene, colours);
  context.fillStyle = fill;
  context.fillRect(rect.x, rect.y, rect.width, rect.height);
  texture(context, rect, patternOf(cell, scene), colours.surface);
  if (bar.height >= 20) {
    const name = cell.holders[0]?.pod ?? "";
    label(context, rect, cell.profile, inkOn(fill), name);
  } else if (bar.height >= 10 && scene.by === "team" && rect.width >= 22 && cell.team) {
    context.font = "600 9px system-ui, sans-serif";
    context.fillStyle = inkOn(fill);
    context.fillText(cell.team.slice(0, rect.width >= 44 ? 8 : 3), rect.x + 3, rect.y + rect.height / 2 + 0.5, rect.width - 5);
  }
}

type Texture = "none" | "hatch" | "dots" | "cross";

function patternOf(cell: Cell, scene: Scene): Texture {
  if (cell.kind === "out") return "cross";
  if (scene.by === "team") return scene.teams.get(cell.team)?.hatch ? "hatch" : "none";
  if (cell.kind === "idle") return "hatch";
  return cell.utilization === null ? "dots" : "none";
}

function texture(context: CanvasRenderingContext2D, rect: Rect, kind: Texture, colour: string): void {
  if (kind === "none") return;
  context.save();
  context.beginPath();
  context.rect(rect.x, rect.y, rect.width, rect.height);
  context.clip();
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  if (kind === "dots") {
    const step = rect.height >= 20 ? 7 : 4;
    for (let y = rect.y + 2; y < rect.y + rect.height; y += step) {
      for (let x = rect.x + 2; x < rect.x + rect.width; x += step) context.rect(x, y, 1, 1);
    }
    context.fill();
  } else {
    const step = kind === "cross" ? 6 : 5;
    for (let x = rect.x - rect.height; x < rect.x + rect.width; x += step) {
      context.moveTo(x, rect.y + rect.height);
      context.lineTo(x + rect.height, rect.y);
      if (kind === "cross") {
        context.moveTo(x, rect.y);
        context.lineTo(x + rect.height, rect.y + rect.height);
      }
    }
    context.stroke();
  }
  context.restore();
}

/** The profile, whole or not at all (except "1g" of "1g.5gb"), and as much of the name as fits. */
function label(context: CanvasRenderingContext2D, rect: Rect, profile: string, ink: string, name = ""): void {
  if (rect.width < 20) return;
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = ink;
  const [middle, room] = [rect.y + rect.height / 2 + 0.5, rect.width - 8];
  const whole = context.measureText(profile).width <= room;
  const shown = whole ? profile : (profile.split(".")[0] ?? "");
  context.fillText(shown, rect.x + 4, middle);
  const after = shown ? context.measureText(shown).width + 7 : 0;
  if (whole && room - after > 18) context.fillText(fit(context, name, room - after), rect.x + 4 + after, middle);
}

/** As much of the text as fits; external names can have any length. */
export function fit(context: Pick<CanvasRenderingContext2D, "measureText">, text: string, width: number): string {
  let shown = text.slice(0, 120);
  if (context.measureText(shown).width <= width) return shown;
  while (shown.length > 1 && context.measureText(`${shown}…`).width > width) shown = shown.slice(0, -1);
  return shown.length > 1 ? `${shown}…` : "";
}

/** For the legend: the same style as on the map. */
export function swatchOf(kind: Kind, colours: Colours): { fill: string; texture: Texture; outlined: boolean } {
  if (kind === "free") return { fill: colours.track, texture: "none", outlined: true };
  if (kind === "unpartitioned") return { fill: colours.track, texture: "none", outlined: false };
  if (kind === "out") return { fill: colours.out, texture: "cross", outlined: false };
  return { fill: colours[kind], texture: kind === "idle" ? "hatch" : kind === "held" ? "dots" : "none", outlined: false };
}

export function drawSwatch(
  context: CanvasRenderingContext2D, rect: Rect, swatch: { fill: string; texture: Texture; outlined: boolean }, colours: Colours,
): void {
  context.fillStyle = swatch.fill;
  context.fillRect(rect.x, rect.y, rect.width, rect.height);
  texture(context, rect, swatch.texture, colours.surface);
  if (!swatch.outlined) return;
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.strokeRect(rect.x + 0.5, rect.y + 0.5, rect.width - 1, rect.height - 1);
}

// Draws the visible part of the map. Colour is never the only mark: idle is hatched, unmeasured is
// dotted, free is an outline, out of service is crossed.
import { counted } from "../lib/format";
import { inkOn, rampColour, teamColours, type TeamMark } from "../lib/palette";
import { cellsOf, holderName, useOfNode, useText, type Cell, type Kind } from "./cells";
import { isMeant } from "./find";
import { foldRect, gpuRect, type Box, type Cursor, type Fold, type Geometry, type Rect } from "./geometry";

export type By = "team" | "state" | "utilization";

export interface Scene {
  geometry: Geometry;
  by: By;
  teams: Map<string, TeamMark>;
  dark: boolean;
  /** Emphasised items; the rest is dimmed. */
  team: string;
  pod: string;
  /** Of the search field, in small letters. */
  text: string;
  /** Nodes with data older than this time are faded. */
  staleBefore: number;
}

/** GPUs with an outline; drawn above the map. */
export interface Pointers {
  hover: Cursor | undefined;
  cursor: Cursor | undefined;
  selected: Cursor | undefined;
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

const sans = "system-ui, sans-serif";

export function draw(context: CanvasRenderingContext2D, scene: Scene, colours: Colours, top: number, height: number): void {
  const { geometry } = scene;
  context.textBaseline = "middle";
  for (const section of geometry.sections) {
    if (section.y - top < height && section.y - top > -40) {
      context.globalAlpha = 1;
      context.font = `600 12px ${sans}`;
      context.fillStyle = colours.text;
      context.fillText(section.title, 0, section.y - top + 13);
      const after = context.measureText(section.title).width + 8;
      context.font = `12px ${sans}`;
      context.fillStyle = colours.muted;
      context.fillText(counted(section.gpus, "GPU"), after, section.y - top + 13);
    }
    for (const box of section.boxes) {
      if (box.y - top > height || box.y + box.height - top < 0) continue;
      const stale = box.node.fresh_at < scene.staleBefore;
      const alpha = stale ? 0.45 : 1;
      context.globalAlpha = 1;
      title(context, box, scene, colours, top, stale);
      box.node.gpus.forEach((gpu, place) => {
        const rect = gpuRect(geometry, box, place);
        rect.y -= top;
        for (const cell of cellsOf(gpu)) {
          drawCell(context, rect, cell, scene, colours, alpha * (emphasised(box.node.node, cell, scene) ? 1 : 0.16));
        }
      });
    }
    if (section.fold && section.fold.y - top < height) drawFold(context, section.fold, colours, top);
  }
  context.globalAlpha = 1;
}

/** The node's name, and at the right its figures if both have room. */
function title(context: CanvasRenderingContext2D, box: Box, scene: Scene, colours: Colours, top: number, stale: boolean): void {
  const { header, height } = scene.geometry.size;
  if (header < 10) return;
  const y = box.y - top + header / 2 - 1;
  context.font = `${height >= 20 ? 12 : height >= 9 ? 11 : height >= 6 ? 10 : 9}px ${sans}`;
  const mark = !box.node.ready ? " · not ready" : stale ? " · old" : "";
  const name = box.node.node + mark;
  const use = useOfNode(box.node);
  const room = box.width - context.measureText(name).width - 8;
  const figures = [useText(use), useText({ ...use, gpus: 0 })].find((text) => context.measureText(text).width <= room);
  context.fillStyle = box.node.ready && !stale ? colours.text : colours.out;
  context.fillText(fit(context, name, box.width), box.x, y);
  if (!figures) return;
  context.fillStyle = colours.muted;
  context.fillText(figures, box.x + box.width - context.measureText(figures).width, y);
}

function drawFold(context: CanvasRenderingContext2D, fold: Fold, colours: Colours, top: number): void {
  context.globalAlpha = 1;
  context.font = `12px ${sans}`;
  context.fillStyle = colours.muted;
  context.fillText(`${counted(fold.nodes.length, "empty node")}, ${counted(fold.gpus, "GPU")}`, 0, fold.y - top + 10);
  fold.nodes.forEach((_, place) => {
    const rect = foldRect(fold, place);
    context.fillStyle = colours.track;
    context.fillRect(rect.x, rect.y - top, rect.width, rect.height);
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.strokeRect(rect.x + 0.5, rect.y - top + 0.5, rect.width - 1, rect.height - 1);
  });
}

/** Outlines of the GPUs that the pointer, the keyboard and the address are at. */
export function drawPointers(context: CanvasRenderingContext2D, geometry: Geometry, at: Pointers, colours: Colours, top: number): void {
  const outline = (cursor: Cursor | undefined, strong: boolean): void => {
    const box = cursor && geometry.boxes.find((each) => each.node.node === cursor.node);
    const place = box?.node.gpus.findIndex((each) => each.index === cursor?.index) ?? -1;
    if (!box || place < 0) return;
    const rect = gpuRect(geometry, box, place);
    context.strokeStyle = strong ? colours.accent : colours.text;
    context.lineWidth = strong ? 2 : 1;
    context.strokeRect(rect.x - 1.5, rect.y - top - 1.5, rect.width + 3, rect.height + 3);
  };
  outline(at.hover, false);
  outline(at.selected, true);
  outline(at.cursor, true);
}

function emphasised(node: string, cell: Cell, scene: Scene): boolean {
  if (!isMeant(node, cell, scene.text)) return false;
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
  context.globalAlpha = alpha;
  if (cell.kind === "unpartitioned" || cell.kind === "free") {
    context.fillStyle = colours.track;
    context.fillRect(rect.x, rect.y, rect.width, rect.height);
    if (cell.kind === "free") {
      context.strokeStyle = colours.line;
      context.lineWidth = 1;
      context.strokeRect(rect.x + 0.5, rect.y + 0.5, rect.width - 1, rect.height - 1);
    }
    if (cell.kind === "free" && bar.height >= 18) label(context, rect, cell.profile, colours.muted);
    return;
  }
  const fill = fillOf(cell, scene, colours);
  context.fillStyle = fill;
  context.fillRect(rect.x, rect.y, rect.width, rect.height);
  if (bar.height >= 4) texture(context, rect, patternOf(cell, scene), colours.surface);
  if (bar.height >= 44) {
    lines(context, rect, cell, inkOn(fill), patternOf(cell, scene) !== "none");
  } else if (bar.height >= 18) {
    label(context, rect, cell.profile, inkOn(fill), cell.holders[0]?.pod ?? "");
  } else if (bar.height >= 10 && scene.by === "team" && cell.team) {
    // Whole or not at all: three letters of a name say nothing.
    context.font = `600 9px ${sans}`;
    context.fillStyle = inkOn(fill);
    if (context.measureText(cell.team).width <= rect.width - 6) context.fillText(cell.team, rect.x + 3, rect.y + rect.height / 2 + 0.5);
  }
}

/** The words on a large piece: what, whose, how busy; over a texture on a plate. */
function lines(context: CanvasRenderingContext2D, rect: Rect, cell: Cell, ink: string, textured: boolean): void {
  const holder = cell.holders[0];
  const more = cell.holders.length > 1 ? ` +${cell.holders.length - 1}` : "";
  const busy = cell.utilization === null ? "not measured" : `${Math.round(cell.utilization * 100)} % busy`;
  const all = [holder ? holder.pod + more : cell.profile, holder ? holder.namespace : "", [cell.profile, holder ? busy : ""].filter(Boolean).join(" · ")];
  const shown = all.filter(Boolean).slice(0, Math.floor((rect.height - 8) / 15));
  context.fillStyle = ink;
  const first = rect.y + rect.height / 2 - ((shown.length - 1) * 15) / 2;
  shown.forEach((text, line) => {
    context.font = `${line === 0 ? "600 12px" : "11px"} ${sans}`;
    const words = fit(context, text, rect.width - 12);
    if (textured) plate(context, { x: rect.x + 4, y: first + line * 15 - 8, width: context.measureText(words).width + 6, height: 16 }, ink);
    context.fillText(words, rect.x + 7, first + line * 15 + 0.5);
  });
}

/** A quiet ground for words on a hatched piece: the opposite of the ink, half transparent. */
function plate(context: CanvasRenderingContext2D, rect: Rect, ink: string): void {
  const [alpha, fill] = [context.globalAlpha, context.fillStyle];
  if (rect.width <= 6) return;
  context.globalAlpha = alpha * 0.7;
  context.fillStyle = ink === "#ffffff" ? "#000000" : "#ffffff";
  context.fillRect(rect.x, rect.y, rect.width, rect.height);
  context.globalAlpha = alpha;
  context.fillStyle = fill;
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

// The positions of everything on the map. Nodes of one product form a section, in columns that fill
// the width; empty nodes may be folded into small squares. "fit": as large as the area allows.
import type { Gpu, Node } from "../api/types";
import { isEmpty, shortProduct } from "./cells";

export type Zoom = "fit" | "s" | "m" | "l";

export interface Size {
  bar: number; // minimum width of a GPU
  height: number;
  gap: number;
  header: number;
  column: number; // gap between nodes
  row: number;
}

const sizes: Record<Exclude<Zoom, "fit">, Size> = {
  s: { bar: 64, height: 6, gap: 2, header: 14, column: 12, row: 10 },
  m: { bar: 108, height: 10, gap: 3, header: 17, column: 18, row: 14 },
  l: { bar: 216, height: 21, gap: 4, header: 20, column: 24, row: 18 },
};

/** Heights of a GPU in pixels. Slots of a lower one cannot be distinguished, a higher one shows no more. */
const [least, most] = [2, 150];
/** Below this height node names have no room. */
const named = 4.5;

/** The sizes for a height of one GPU, between those above and beyond them. */
export function sizeFor(height: number): Size {
  const between = (small: number, large: number): number => Math.min(large, Math.max(small, small + ((large - small) * (height - 3)) / 22));
  return {
    bar: Math.min(560, height * 9),
    height,
    gap: Math.max(1, Math.min(8, height * 0.2)),
    header: height < named ? 3 : between(12, 22),
    column: between(5, 26),
    row: between(3, 20),
  };
}

const sectionHeader = 28;
const square = { size: 11, gap: 3, header: 22 };
/** A map of fewer nodes shows all of them: there is room. */
const foldFrom = 9;

export interface Box {
  node: Node;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Empty nodes that are drawn as squares. */
export interface Fold {
  nodes: Node[];
  gpus: number;
  y: number;
  height: number;
  columns: number;
}

export interface Section {
  title: string;
  gpus: number;
  y: number;
  boxes: Box[];
  columns: number;
  fold: Fold | undefined;
}

export interface Geometry {
  size: Size;
  sections: Section[];
  /** All boxes in reading order. */
  boxes: Box[];
  width: number;
  height: number;
}

export interface Area {
  width: number;
  /** Only of use for "fit". */
  height: number;
}

interface Group {
  title: string;
  gpus: number;
  shown: Node[];
  folded: Node[];
}

const gpusOf = (members: readonly Node[]): number => members.reduce((sum, node) => sum + node.gpus.length, 0);

function groupsOf(nodes: Node[], folds: (node: Node) => boolean): Group[] {
  const groups = new Map<string, Group>();
  for (const node of nodes) {
    const title = node.gpus[0] ? shortProduct(node.gpus[0].product) : "no GPU";
    const group = groups.get(title) ?? { title, gpus: 0, shown: [], folded: [] };
    groups.set(title, group);
    group.gpus += node.gpus.length;
    (folds(node) ? group.folded : group.shown).push(node);
  }
  return [...groups.values()].sort((a, b) => b.gpus - a.gpus || (a.title < b.title ? -1 : 1));
}

/** Nodes that no pod uses, of a map large enough; none if that is every node. `keep`: never folded. */
export function foldedNodes(nodes: Node[], keep: (node: Node) => boolean): Set<Node> {
  if (nodes.length < foldFrom) return new Set();
  const empty = nodes.filter((node) => node.ready && node.gpus.length > 0 && node.gpus.every(isEmpty) && !keep(node));
  return new Set(empty.length < nodes.length ? empty : []);
}

export function layOut(nodes: Node[], area: Area, zoom: Zoom, folded: ReadonlySet<Node> = new Set()): Geometry {
  const groups = groupsOf(nodes, (node) => folded.has(node));
  if (zoom !== "fit") return positions(groups, area.width, sizes[zoom]);
  const widest = Math.max(1, ...groups.map((group) => group.shown.length));
  let best = fitted(groups, area, widest);
  // Few nodes beside each other leave a wide area empty below: fewer columns fill it.
  for (let columns = Math.min(widest, 12) - 1; columns >= 1 && best.height < 0.8 * area.height; columns--) {
    const other = fitted(groups, area, columns);
    if (other.height > best.height && other.height <= area.height) best = other;
  }
  return best;
}

/** The largest GPUs with which all has room. The height of the whole grows with theirs, but for jumps where a column fits more or less. */
function fitted(groups: Group[], area: Area, columns: number): Geometry {
  const place = (height: number): Geometry => positions(groups, area.width, sizeFor(height), columns);
  let [low, high] = [least, most];
  while (high - low > 0.25) {
    const middle = (low + high) / 2;
    if (place(middle).height <= area.height) low = middle;
    else high = middle;
  }
  return place(low);
}

/** `spread`: at most so many columns, and each section is as wide as the area, with equally long rows. */
function positions(groups: Group[], width: number, size: Size, spread?: number): Geometry {
  const possible = Math.max(1, Math.min(spread ?? Infinity, Math.floor((width + size.column) / (size.bar + size.column))));
  const sections: Section[] = [];
  let y = 0;
  for (const { title, gpus, shown, folded } of groups) {
    const rows = Math.ceil(shown.length / possible);
    const columns = spread !== undefined && rows > 0 ? Math.ceil(shown.length / rows) : possible;
    const bar = (width - size.column * (columns - 1)) / columns;
    const section: Section = { title, gpus, y, boxes: [], columns, fold: undefined };
    y += sectionHeader;
    for (let first = 0; first < shown.length; first += columns) {
      const row = shown.slice(first, first + columns);
      const tallest = Math.max(...row.map((node) => node.gpus.length));
      row.forEach((node, column) => {
        const height = size.header + node.gpus.length * (size.height + size.gap);
        section.boxes.push({ node, x: column * (bar + size.column), y, width: bar, height });
      });
      y += size.header + tallest * (size.height + size.gap) + size.row;
    }
    if (folded.length > 0) {
      const across = Math.max(1, Math.floor((width + square.gap) / (square.size + square.gap)));
      const height = square.header + Math.ceil(folded.length / across) * (square.size + square.gap);
      section.fold = { nodes: folded, gpus: gpusOf(folded), y, height, columns: across };
      y += height + 10;
    }
    sections.push(section);
  }
  return { size, sections, boxes: sections.flatMap((each) => each.boxes), width, height: y };
}

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export function gpuRect(geometry: Geometry, box: Box, place: number): Rect {
  const { size } = geometry;
  return { x: box.x, y: box.y + size.header + place * (size.height + size.gap), width: box.width, height: size.height };
}

export function foldRect(fold: Fold, place: number): Rect {
  const step = square.size + square.gap;
  return {
    x: (place % fold.columns) * step, y: fold.y + square.header + Math.floor(place / fold.columns) * step,
    width: square.size, height: square.size,
  };
}

export interface Hit {
  box: Box;
  gpu: Gpu;
  /** Position on the GPU, as a fraction of its width. */
  at: number;
}

/** The item at a point of the whole map. Gaps belong to the GPU above them. */
export function hit(geometry: Geometry, x: number, y: number): Hit | undefined {
  const { size } = geometry;
  const box = geometry.boxes.find((each) => x >= each.x && x < each.x + each.width && y >= each.y && y < each.y + each.height);
  if (!box) return undefined;
  const place = Math.floor((y - box.y - size.header) / (size.height + size.gap));
  const gpu = place >= 0 ? box.node.gpus[place] : undefined;
  return gpu ? { box, gpu, at: (x - box.x) / box.width } : undefined;
}

/** The folded nodes at a height of the whole map. */
export function hitFold(geometry: Geometry, y: number): Fold | undefined {
  return geometry.sections.map((each) => each.fold).find((fold) => fold && y >= fold.y && y < fold.y + fold.height);
}

export interface Cursor {
  node: string;
  index: number;
}

/** The target of an arrow key from a GPU: up and down within a node and beyond, left and right to neighbours. */
export function move(geometry: Geometry, cursor: Cursor | undefined, key: string): Cursor | undefined {
  const { boxes } = geometry;
  const at = boxes.findIndex((each) => each.node.node === cursor?.node);
  const box = boxes[at];
  const cursorOf = (target: Box | undefined, place: number): Cursor | undefined => {
    const gpu = target?.node.gpus[Math.max(0, Math.min(place, target.node.gpus.length - 1))];
    return target && gpu ? { node: target.node.node, index: gpu.index } : cursor;
  };
  if (!box) return cursorOf(boxes[0], 0);
  const place = box.node.gpus.findIndex((each) => each.index === cursor?.index);
  const below = (step: 1 | -1): Box | undefined => {
    const others = step > 0 ? boxes.slice(at + 1) : boxes.slice(0, at).reverse();
    return others.find((each) => each.y !== box.y && Math.abs(each.x - box.x) < each.width / 2);
  };
  switch (key) {
    case "ArrowDown":
      return place + 1 < box.node.gpus.length ? cursorOf(box, place + 1) : cursorOf(below(1), 0);
    case "ArrowUp":
      return place > 0 ? cursorOf(box, place - 1) : cursorOf(below(-1), Number.MAX_SAFE_INTEGER);
    case "ArrowRight":
      return cursorOf(boxes[at + 1], place);
    case "ArrowLeft":
      return cursorOf(boxes[at - 1], place);
    case "Home":
      return cursorOf(boxes[0], 0);
    case "End":
      return cursorOf(boxes.at(-1), Number.MAX_SAFE_INTEGER);
  }
  return cursor;
}

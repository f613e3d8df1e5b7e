// The positions of everything on the map. Nodes of one product form a group, in columns that fill
// the width.
import type { Gpu, Node } from "../api/types";
import { shortProduct } from "./cells";

export type Zoom = "s" | "m" | "l";

interface Size {
  bar: number; // minimum width of a GPU
  height: number;
  gap: number;
  header: number;
  column: number; // gap between nodes
  row: number;
}

const sizes: Record<Zoom, Size> = {
  s: { bar: 64, height: 6, gap: 2, header: 14, column: 12, row: 10 },
  m: { bar: 108, height: 10, gap: 3, header: 17, column: 18, row: 14 },
  l: { bar: 216, height: 21, gap: 4, header: 20, column: 24, row: 18 },
};

const sectionHeader = 28;

export interface Box {
  node: Node;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Section {
  title: string;
  gpus: number;
  y: number;
  boxes: Box[];
  columns: number;
}

export interface Geometry {
  size: Size;
  sections: Section[];
  /** All boxes in reading order. */
  boxes: Box[];
  height: number;
}

export function layOut(nodes: Node[], width: number, zoom: Zoom): Geometry {
  const size = sizes[zoom];
  const groups = new Map<string, Node[]>();
  for (const node of nodes) {
    const title = node.gpus[0] ? shortProduct(node.gpus[0].product) : "no GPU";
    const group = groups.get(title);
    if (group) group.push(node);
    else groups.set(title, [node]);
  }
  const columns = Math.max(1, Math.floor((width + size.column) / (size.bar + size.column)));
  const bar = (width - size.column * (columns - 1)) / columns;
  const sections: Section[] = [];
  let y = 0;
  const gpusOf = (members: Node[]): number => members.reduce((sum, node) => sum + node.gpus.length, 0);
  const ordered = [...groups].sort((a, b) => gpusOf(b[1]) - gpusOf(a[1]) || (a[0] < b[0] ? -1 : 1));
  for (const [title, members] of ordered) {
    const gpus = gpusOf(members);
    const section: Section = { title, gpus, y, boxes: [], columns };
    y += sectionHeader;
    for (let first = 0; first < members.length; first += columns) {
      const row = members.slice(first, first + columns);
      const most = Math.max(...row.map((node) => node.gpus.length));
      row.forEach((node, column) => {
        const height = size.header + node.gpus.length * (size.height + size.gap);
        section.boxes.push({ node, x: column * (bar + size.column), y, width: bar, height });
      });
      y += size.header + most * (size.height + size.gap) + size.row;
    }
    sections.push(section);
  }
  return { size, sections, boxes: sections.flatMap((each) => each.boxes), height: y };
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

// The nodes and GPUs selected by the address and the search field.
import type { Gpu, Node } from "../api/types";
import { cellsOf, holderName, holdersOn, type Cell } from "./cells";
import type { Cursor } from "./geometry";

/** "node/3", or undefined for anything else. */
export function cursorOf(text: string | undefined): Cursor | undefined {
  const at = text?.lastIndexOf("/") ?? -1;
  if (!text || at < 1) return undefined;
  const index = Number(text.slice(at + 1));
  return Number.isInteger(index) ? { node: text.slice(0, at), index } : undefined;
}

/** Nodes with GPUs of the product; "": all. */
export function ofProduct(nodes: Node[], product: string): Node[] {
  return product === "" ? nodes : nodes.filter((node) => node.gpus.some((gpu) => gpu.product === product));
}

/** Nodes whose name or holders contain the text, of one product if one is chosen. */
export function filterNodes(nodes: Node[], text: string, product: string): Node[] {
  const wanted = text.trim().toLowerCase();
  const holds = (gpu: Gpu): boolean =>
    holdersOn(gpu).some((holder) => holderName(holder).toLowerCase().includes(wanted));
  return ofProduct(nodes, product).filter(
    (node) => wanted === "" || node.node.toLowerCase().includes(wanted) || node.gpus.some(holds),
  );
}

/** True if the search text means this piece: by its node, a pod that holds it, or its profile. `text`: in small letters. */
export function isMeant(node: string, cell: Pick<Cell, "profile" | "holders">, text: string): boolean {
  return (
    text === "" || node.toLowerCase().includes(text) || cell.profile.toLowerCase() === text ||
    cell.holders.some((holder) => holderName(holder).toLowerCase().includes(text))
  );
}

export interface Found {
  nodes: number;
  pods: number;
  /** The first GPU of them. */
  first: Cursor | undefined;
}

/** What the search text means on the map. */
export function findOnMap(nodes: Node[], query: string): Found {
  const text = query.trim().toLowerCase();
  const pods = new Set<string>();
  const found: Found = { nodes: 0, pods: 0, first: undefined };
  if (text === "") return found;
  for (const node of nodes) {
    const own = node.node.toLowerCase().includes(text);
    let any = own;
    for (const gpu of node.gpus) {
      const cells = own ? [] : cellsOf(gpu).filter((cell) => isMeant("", cell, text));
      for (const cell of cells) for (const holder of cell.holders) pods.add(holderName(holder));
      any ||= cells.length > 0;
      if (own || cells.length > 0) found.first ??= { node: node.node, index: gpu.index };
    }
    if (any) found.nodes++;
  }
  return { ...found, pods: pods.size };
}

// The nodes and GPUs selected by the address and the search field.
import type { Gpu, Node } from "../api/types";
import { holderName } from "./cells";
import type { Cursor } from "./geometry";

/** "node/3", or undefined for anything else. */
export function cursorOf(text: string | undefined): Cursor | undefined {
  const at = text?.lastIndexOf("/") ?? -1;
  if (!text || at < 1) return undefined;
  const index = Number(text.slice(at + 1));
  return Number.isInteger(index) ? { node: text.slice(0, at), index } : undefined;
}

/** Nodes whose name or holders contain the text, of one product if one is chosen. */
export function filterNodes(nodes: Node[], text: string, product: string): Node[] {
  const wanted = text.trim().toLowerCase();
  const holds = (gpu: Gpu): boolean =>
    [...gpu.holders, ...gpu.instances.flatMap((each) => each.holders)].some((holder) =>
      holderName(holder).toLowerCase().includes(wanted),
    );
  return nodes.filter(
    (node) =>
      (product === "" || node.gpus.some((gpu) => gpu.product === product)) &&
      (wanted === "" || node.node.toLowerCase().includes(wanted) || node.gpus.some(holds)),
  );
}

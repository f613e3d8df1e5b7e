// Values derived from node pools: words for their GPUs and states, sums.
import type { Pool } from "../api/types";
import { clock, nothing } from "./format";

const whole = (value: number | undefined): number => (typeof value === "number" && value > 0 ? value : 0);

/** "8 × A100-80GB" */
export function gpuOf({ gpu }: Pool): string {
  const kind = gpu?.model || gpu?.product;
  return gpu?.count && kind ? `${gpu.count} × ${kind}` : nothing;
}

export function modeOf({ gpu }: Pool): string {
  if (!gpu?.count) return nothing;
  return !gpu.partitioning || gpu.partitioning === "none" ? "whole" : gpu.partitioning;
}

export type Tone = "good" | "warn" | "bad" | "muted";

/** A closed pool may have reopened by now: the server does not report that. */
export function stateOf(pool: Pool, now: number): { words: string; tone: Tone } {
  const until = pool.closed_until ?? 0;
  switch (pool.state) {
    case "ready":
      return { words: "ready", tone: pool.why ? "warn" : "good" };
    case "closed":
      return { words: until > now ? `closed until ${clock(until, now, false)}` : "was closed", tone: "warn" };
    case "no template":
      return { words: pool.state, tone: "warn" };
    case "failing":
    case "invalid":
      return { words: pool.state, tone: "bad" };
    default:
      return { words: "unknown", tone: "muted" };
  }
}

/** Its nodes by state, as shares of its maximum or actual number. */
export function barOf(pool: Pool): { nodes: number; going: number; coming: number; min: number } {
  const [nodes, going, coming, min] = [whole(pool.nodes), whole(pool.going), whole(pool.coming), whole(pool.min)];
  const most = Math.max(1, whole(pool.max), nodes + going + coming, min);
  return { nodes: nodes / most, going: going / most, coming: coming / most, min: min / most };
}

/** Per hour, of all its nodes; null: the price is unknown. */
export function costOf(pool: Pool): number | null {
  const price = whole(pool.price);
  return price > 0 ? price * (whole(pool.nodes) + whole(pool.going)) : null;
}

export function sumOf(pools: readonly Pool[]): { nodes: number; coming: number; going: number; cost: number | null } {
  const sum = (value: (pool: Pool) => number | undefined): number => pools.reduce((all, each) => all + whole(value(each)), 0);
  const costs = pools.map(costOf).filter((each) => each !== null);
  return {
    nodes: sum((each) => each.nodes),
    coming: sum((each) => each.coming),
    going: sum((each) => each.going),
    cost: costs.length > 0 ? costs.reduce((all, each) => all + each, 0) : null,
  };
}

const money = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 3 });

/** In the pools' common currency. */
export function price(value: number | null | undefined): string {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? money.format(value) : nothing;
}

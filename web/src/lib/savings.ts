// Texts for the figures of GET savings.
import type { Alternative, Savings, Spread } from "../api/types";
import { micros, sum } from "./costs";
import { duration } from "./format";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const some = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

const number = (value: number): string => (value < 100 ? some : whole).format(value);

/** "240", or "240 (231 to 252)" if the replays differ. */
export function spreadText(spread: Spread): string {
  const [low, middle, high] = [number(spread.low), number(spread.middle), number(spread.high)];
  return low === high ? middle : `${middle} (${low} to ${high})`;
}

export function moneySpread(spread: Spread<string> | null): string {
  if (!spread) return "";
  const [low, middle, high] = [spread.low, spread.middle, spread.high].map((each) => sum(micros(each)));
  return low === high ? (middle ?? "") : `${middle} (${low} to ${high})`;
}

export interface SavingsRow {
  name: string;
  waiting: string;
  started: string;
  gpus: string;
  /** Money, or GPU hours where GPUs have no price. */
  saved: string;
  /** The most common layouts. */
  layouts: string;
}

const names: Record<Alternative["name"], string> = { whole: "Whole GPUs", static: "Static layouts" };
const layoutsShown = 3;

export function savingsRows(data: Savings): SavingsRow[] {
  const row = (each: Alternative): SavingsRow => {
    const more = each.enough ? "" : "over ";
    return {
      name: names[each.name], waiting: spreadText(each.waiting_hours), started: spreadText(each.started), gpus: more + spreadText(each.gpus),
      saved: more + (each.saved ? moneySpread(each.saved) : `${spreadText(each.saved_gpu_hours)} GPU hours`),
      layouts: each.name === "static" ? each.layouts.slice(0, layoutsShown).map(({ layout, gpus }) => `${gpus} × ${layout}`).join(", ") : "",
    };
  };
  return [
    { name: "As it was", waiting: number(data.waiting_hours), started: whole.format(data.started), gpus: number(data.gpus), saved: "", layouts: "" },
    ...data.alternatives.map(row),
  ];
}

/** "half of the pods that started waited at most 12 s, 95 % at most 4 min". */
export const waitsText = (data: Savings): string =>
  `half of the pods that started waited at most ${duration(Math.ceil(data.median_wait_ms / 1000))}, 95 % at most ${duration(Math.ceil(data.p95_wait_ms / 1000))}`;

// Links that show another user the same: the address has page, filters and order; the cluster and the moment are added.
import { costSpan } from "./costs";
import { format, type Page, type Route } from "./route";

/** Pages that show a moment, and those that show a range of time. */
const atMoment: readonly Page[] = ["map", "workloads", "quotas", "pools"];
const overRange: readonly Page[] = ["overview", "map", "decisions", "quotas"];

export const canFix = (page: Page): boolean => atMoment.includes(page) || overRange.includes(page) || page === "cost";

/** Moments are rounded so that requests can be reused. */
const grain = 10_000;

/** `fixed`: the range that is shown now, so that the link shows it for ever; undefined: the link follows the time. */
export function sharedHash({ page, params }: Route, cluster: string, fixed: { from: number; to: number; now: number } | undefined): string {
  const more: Record<string, string> = { ...params, cluster };
  if (fixed && overRange.includes(page)) {
    more.range = "";
    more.from = String(Math.round(fixed.from));
    more.to = String(Math.round(fixed.to));
  }
  if (fixed && atMoment.includes(page) && !params.at) more.at = String(Math.floor(fixed.now / grain) * grain);
  // Not the month in which a reader opens it.
  if (fixed && page === "cost" && !params.span) more.span = costSpan("", fixed.now).month ?? "";
  return format({ page, params: more });
}

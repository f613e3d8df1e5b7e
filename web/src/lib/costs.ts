// Costs of GPUs: amounts in integers, so that parts add up to the whole; periods; kinds of waste.
import type { Cost, CostAmounts, CostBy, CostCategory, CostRow } from "../api/types";
import { costCategories } from "../api/types";
import { nothing } from "./format";

/** Integers of millionths, exact below nine billion units; null for an unknown amount. */
export function micros(amount: string | null | undefined): number | null {
  const found = /^(\d+)\.(\d{6})$/.exec(amount ?? "");
  return found ? Number(found[1]) * 1_000_000 + Number(found[2]) : null;
}

const cent = 10_000;
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const exact = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** "12,345", "9.50", "<0.01": without the currency, which heads a column. */
export function sum(amount: number | null | undefined): string {
  if (amount === null || amount === undefined) return nothing;
  if (amount > 0 && amount < 5_000) return "<0.01";
  return (amount < 999.995e6 ? exact : whole).format(amount / 1e6);
}

export const money = (amount: number | null | undefined, currency: string): string =>
  amount === null || amount === undefined ? nothing : `${sum(amount)} ${currency}`;

/** "12,345.68": with cents however large it is, for parts that add up. */
export const cents = (amount: number | null | undefined): string =>
  amount === null || amount === undefined ? nothing : exact.format(Math.round(amount / cent) / 100);

const some = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

/** GPU hours: of a few also their parts. */
export function hours(amount: string): string {
  const value = (micros(amount) ?? 0) / 1e6;
  return (value < 99.5 ? some : whole).format(value);
}

export type CostPartId = CostCategory | "others";

export interface CostPart {
  id: CostPartId;
  label: string;
  /** In millionths. */
  cost: number;
  help: string;
}

const about: Record<CostPartId, { label: string; help: string }> = {
  used: { label: "Used", help: "Held by pods, for the share of the time with work on it." },
  idle: { label: "Held, idle", help: "Held by pods, for the share of the time without work on it." },
  unknown: { label: "Held, not measured", help: "Held by pods on GPUs that do not report how busy slices are." },
  free: { label: "Free", help: "In a slice without a pod, or a whole GPU without one." },
  unpartitioned: { label: "Not partitioned", help: "In no slice." },
  fragmented: { label: "Locked", help: "Free, and of no use for pending pods beside the slices in use." },
  stranded: { label: "Stranded", help: "Free on a node that cannot take a pod: not ready, cordoned, without CPU or memory, or on a broken GPU." },
  not_reported: { label: "Not reported", help: "On nodes that reported nothing: their use is unknown." },
  others: { label: "Not visible to you", help: "Pods of other namespaces, and what no pod has." },
};

export const labelOf = (id: CostPartId): string => about[id].label;

/** Parts that add up to the cost; those of zero are left out. */
export function costParts(amounts: CostAmounts): CostPart[] {
  const parts: CostPart[] = [];
  let rest = micros(amounts.cost) ?? 0;
  for (const id of costCategories) {
    const cost = micros(amounts.categories[id]) ?? 0;
    rest -= cost;
    if (cost > 0) parts.push({ id, cost, ...about[id] });
  }
  if (rest > 0) parts.push({ id: "others", cost: rest, ...about.others });
  return parts;
}

/** Parts in whole cents that add up to the cost in whole cents: each is rounded together with those before it. */
export function centParts(amounts: CostAmounts): CostPart[] {
  let [exactly, shown] = [0, 0];
  return costParts(amounts).flatMap((part) => {
    exactly += part.cost;
    const cost = Math.round(exactly / cent) * cent - shown;
    shown += cost;
    return cost > 0 ? [{ ...part, cost }] : [];
  });
}

/** GPUs were reported in the time, and there are prices. */
export const hasCosts = (costs: Cost | undefined): costs is Cost => costs !== undefined && costs.configured && micros(costs.total.gpu_hours) !== 0;

const amountOf = (amounts: CostAmounts, ...ids: CostCategory[]): number =>
  ids.reduce((all, id) => all + (micros(amounts.categories[id]) ?? 0), 0);

export const usedOf = (amounts: CostAmounts): number => amountOf(amounts, "used");
export const idleOf = (amounts: CostAmounts): number => amountOf(amounts, "idle");
export const lostOf = (amounts: CostAmounts): number => amountOf(amounts, "free", "unpartitioned", "fragmented", "stranded", "not_reported");

/** A part of the whole; null if either is unknown. */
export function shareOf(part: number | null, all: number | null): number | null {
  return part === null || all === null || all === 0 ? null : part / all;
}

/** A GPU hour with work on it, in millionths: the price of the hours around it included. */
export function workedHour(amounts: CostAmounts): number | null {
  const [cost, used, time, unpriced] = [micros(amounts.cost), usedOf(amounts), micros(amounts.gpu_hours), micros(amounts.unpriced_gpu_hours)];
  if (!cost || !time || unpriced !== 0 || used === 0) return null;
  return (cost * cost) / used / (time / 1e6);
}

export type WasteId = "free" | "locked" | "stranded" | "idle" | "silent";

export interface Waste {
  id: WasteId;
  name: string;
  what: string;
  /** In the period, and in an hour at present. */
  cost: number;
  hourly: number;
}

/** The kinds of waste, each of GPU time that no other one has. `hourly`: costs at present, in an hour. */
export function wastesOf(period: CostAmounts, hourly: (category: CostCategory) => number): Waste[] {
  const of = (id: WasteId, name: string, what: string, ...categories: CostCategory[]): Waste => ({
    id, name, what, cost: amountOf(period, ...categories), hourly: categories.reduce((all, each) => all + hourly(each), 0),
  });
  return [
    of("free", "Reclaimable now", "free slices and GPUs, whether partitioned or not", "free", "unpartitioned"),
    of("locked", "Locked", "free, and of no use for the sizes that wait", "fragmented"),
    of("stranded", "Stranded", "free on nodes that cannot take a pod", "stranded"),
    of("idle", "Idle while held", "held by pods that do not compute", "idle"),
    of("silent", "Not reported", "on nodes whose agents are silent", "not_reported"),
  ].filter((each) => each.id !== "silent" || each.cost > 0 || each.hourly > 0);
}

/** Costs in an hour at present, from those of a time just past. */
export function hourlyOf(recent: Cost | undefined, since: number): (category: CostCategory) => number {
  const length = recent ? recent.to - Math.max(recent.from, since) : 0;
  return (category) => (recent && length > 0 ? ((micros(recent.total.categories[category]) ?? 0) * 3_600_000) / length : 0);
}

/** A row's name where it is not that of an object. */
export function rowName(row: CostRow, by: CostBy): string {
  switch (row.kind) {
    case "unallocated":
      return "no pod";
    case "none":
      return `without a ${by === "workload" ? "job" : by}`;
    case "others":
      return "not visible to you";
    case "rest":
      return "further rows";
    default:
      return row.name;
  }
}

const day = 86_400_000;

export interface CostSpan {
  /** The parameter of the address. */
  id: string;
  from: number;
  to: number;
  /** "2026-11", if it is a month. */
  month?: string;
  /** It ends now. */
  moving: boolean;
}

const monthName = (at: number): string => new Date(at).toISOString().slice(0, 7);
export const dateName = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** The month before or after. */
export function besideMonth(name: string, by: number): string {
  const [year = 0, month = 1] = name.split("-").map(Number);
  return monthName(Date.UTC(year, month - 1 + by, 1));
}

const beginOf = (name: string): number => {
  const [year = 0, month = 1] = name.split("-").map(Number);
  return Date.UTC(year, month - 1, 1);
};

/** "November 2026" */
export const monthTitle = (name: string): string =>
  new Date(beginOf(name)).toLocaleDateString("en", { month: "long", year: "numeric", timeZone: "UTC" });

const lengths = new Map([["24h", day], ["7d", 7 * day], ["30d", 30 * day]]);

/** The time of the address: "" is this month, "2026-10", "7d", or dates: "2026-11-03..2026-11-09". All in UTC. */
export function costSpan(text: string | undefined, now: number): CostSpan {
  const ended = (from: number, to: number): { from: number; to: number; moving: boolean } => ({ from, to: Math.min(to, now), moving: to > now });
  const length = lengths.get(text ?? "");
  if (text && length) return { id: text, from: now - length, to: now, moving: true };
  const dates = /^(\d{4}-\d{2}-\d{2})\.\.(\d{4}-\d{2}-\d{2})$/.exec(text ?? "");
  if (dates) {
    const [from, last] = [Date.parse(`${dates[1]}T00:00:00Z`), Date.parse(`${dates[2]}T00:00:00Z`)];
    if (from <= last && from < now && last - from < 400 * day) return { id: text ?? "", ...ended(from, last + day) };
  }
  const current = monthName(now);
  const month = /^\d{4}-(0[1-9]|1[0-2])$/.test(text ?? "") && (text ?? "") < current ? (text ?? "") : current;
  return { id: month === current ? "" : month, month, ...ended(beginOf(month), beginOf(besideMonth(month, 1))) };
}

/** Names of the days of a month, also of those to come. */
export function daysOf(month: string): string[] {
  const [from, to] = [beginOf(month), beginOf(besideMonth(month, 1))];
  return Array.from({ length: Math.round((to - from) / day) }, (_, at) => dateName(from + at * day));
}

/** Names of hours from one on, at least so many that a young history is not one wide column. */
export function hoursOf(names: readonly string[], least = 12): string[] {
  const first = Date.parse(names[0]?.replace("Z", ":00Z") ?? "");
  if (Number.isNaN(first) || names.length >= least) return [...names];
  return Array.from({ length: least }, (_, at) => `${new Date(first + at * 3_600_000).toISOString().slice(0, 13)}:00Z`);
}

/** Hours for two days and less, else days. */
export const stepOf = (span: Pick<CostSpan, "from" | "to">): "hour" | "day" => (span.to - span.from <= 2 * day ? "hour" : "day");

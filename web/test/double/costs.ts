// Costs of the simulated cluster: every GPU and hour divided into parts that add up to its price.
// The simulated day stands for the days before it; on weekends less is used.
import type { Cost, CostAmounts, CostBy, CostCategory, CostForecast, CostRow, Gpu, Savings, Spread } from "../../src/api/types";
import { costCategories } from "../../src/api/types";
import type { Answers } from "./answers";
import { hash } from "./random";

const hour = 3_600_000;
const day = 24 * hour;

export type Prices = "all" | "some" | "none";

/** Of a GPU for an hour, in millionths. */
const prices: Record<string, number> = {
  "NVIDIA A100-SXM4-40GB": 2_100_000, "NVIDIA H100 80GB HBM3": 3_950_000, "NVIDIA A30": 780_000, "Tesla T4": 350_000,
};

interface Part {
  ns: string;
  pod: string;
  job: string;
  quota: string;
  model: string;
  pool: string;
  category: CostCategory;
  borrowed: boolean;
  cost: number;
  time: number;
  unpriced: number;
}

const text = (amount: number): string => `${Math.floor(amount / 1e6)}.${String(amount % 1e6).padStart(6, "0")}`;

export class Costs {
  prices: Prices = "all";
  private readonly ofHours = new Map<string, Part[]>();

  constructor(private readonly answers: Answers) {}

  /** When history begins. */
  get begin(): number {
    return Math.floor((this.answers.cluster.base - 40 * day) / day) * day + 9 * hour;
  }

  /** Parts of an hour; only hours of the simulated day are computed. */
  private hourOf(at: number): Part[] {
    const { base } = this.answers.cluster;
    const like = at >= base - day ? at : base - day + ((((at - base) % day) + day) % day);
    const weekend = [0, 6].includes(new Date(at).getUTCDay());
    const key = `${like}|${weekend}|${this.prices}`;
    const known = this.ofHours.get(key);
    if (known) return known;
    const parts = new Map<string, Part>();
    for (const node of this.answers.cluster.nodes) {
      const moment = Math.min(like, this.answers.now);
      const { gpus, ready } = this.answers.node(node, moment);
      for (const gpu of gpus) this.split(gpu, node.name.replace(/-\d+$/, ""), ready, weekend, moment, parts);
    }
    const all = [...parts.values()];
    this.ofHours.set(key, all);
    return all;
  }

  private split(gpu: Gpu, pool: string, ready: boolean, weekend: boolean, at: number, parts: Map<string, Part>): void {
    const slots = gpu.slots || 1;
    const model = gpu.product;
    const priced = this.prices === "all" || (this.prices === "some" && !model.startsWith("Tesla"));
    const price = priced ? (prices[model] ?? 0) : 0;
    let [left, time] = [price, 1_000_000];
    const add = (share: number, category: CostCategory, holder?: { namespace: string; pod: string; quota?: string }): void => {
      const cost = Math.min(left, Math.round(price * share));
      const took = Math.min(time, Math.round(1_000_000 * share));
      left -= cost;
      time -= took;
      const pod = holder && this.answers.podOf(holder.namespace, holder.pod);
      const known = pod && this.answers.pod(pod, at);
      const part: Part = {
        ns: holder?.namespace ?? "", pod: holder?.pod ?? "", job: known?.job ? `${known.job.kind}/${known.job.name}` : "", quota: known?.quota ?? "",
        model, pool, category, borrowed: known?.capacity === "over-quota", cost, time: took, unpriced: priced ? 0 : took,
      };
      const key = [part.ns, part.pod, model, pool, category].join("\n");
      const same = parts.get(key);
      if (same) {
        same.cost += cost;
        same.time += took;
        same.unpriced += part.unpriced;
      } else parts.set(key, part);
    };
    let held = 0;
    const hold = (size: number, holders: Gpu["holders"], busy: number | undefined): void => {
      held += size;
      for (const holder of holders) {
        const share = size / slots / holders.length;
        const used = busy === undefined ? 0 : busy * (weekend ? 0.8 : 1);
        if (busy === undefined) add(share, "unknown", holder);
        else {
          add(share * used, "used", holder);
          add(share * (1 - used), "idle", holder);
        }
      }
    };
    for (const each of gpu.instances) if (each.holders.length > 0) hold(each.size, each.holders, each.metrics?.utilization);
    if (gpu.holders.length > 0) hold(slots, gpu.holders, gpu.metrics?.utilization);
    const slices = gpu.instances.filter((each) => each.holders.length === 0).reduce((all, each) => all + each.size, 0);
    if (!ready) add(1, "not_reported");
    else if (gpu.health) add(1, "stranded");
    else {
      // Slots in no slice of a GPU that is nearly full are of use to nobody.
      if (held > slots / 2) add(1, "fragmented");
      add(gpu.slots === 0 ? 1 : slices / slots, "free");
      if (gpu.slots > 0) add(1, "unpartitioned");
    }
  }

  /** Of a whole day before the simulated one. */
  private dayOf(at: number): Part[] {
    const key = `day|${[0, 6].includes(new Date(at).getUTCDay())}|${this.prices}`;
    const known = this.ofHours.get(key);
    if (known) return known;
    const sums = new Map<string, Part>();
    for (let time = at; time < at + day; time += hour) {
      for (const part of this.hourOf(time)) {
        const name = [part.ns, part.pod, part.model, part.pool, part.category].join("\n");
        const same = sums.get(name);
        if (!same) sums.set(name, { ...part });
        else {
          same.cost += part.cost;
          same.time += part.time;
          same.unpriced += part.unpriced;
        }
      }
    }
    const all = [...sums.values()];
    this.ofHours.set(key, all);
    return all;
  }

  /** Parts of a time, and how much of each: whole days and hours, but for the first and the last one. */
  private *between(from: number, to: number, hourly: boolean): Generator<{ at: number; share: number; parts: Part[] }> {
    const end = Math.min(to, this.answers.now);
    for (let at = Math.max(from, this.begin); at < end; ) {
      if (!hourly && at % day === 0 && at + day <= Math.min(end, this.answers.cluster.base - day)) {
        yield { at, share: this.fleetOf(at), parts: this.dayOf(at) };
        at += day;
        continue;
      }
      const next = Math.min(end, Math.floor(at / hour) * hour + hour);
      yield { at, share: ((next - at) / hour) * this.fleetOf(at), parts: this.hourOf(Math.floor(at / hour) * hour) };
      at = next;
    }
  }

  /** The fleet is not the same every day. */
  private fleetOf(at: number): number {
    return 1 + ((hash(String(Math.floor(at / day))) % 100) - 50) / 1500;
  }

  private rowOf(part: Part, by: CostBy, at: number): Pick<CostRow, "kind" | "namespace" | "name"> {
    const none = { kind: "none", namespace: "", name: "" } as const;
    if (by === "model") return { kind: by, namespace: "", name: part.model };
    if (by === "category") return { kind: by, namespace: "", name: part.category };
    if (by === "pool") return { kind: by, namespace: "", name: part.pool };
    if (by === "day") return { kind: by, namespace: "", name: new Date(at).toISOString().slice(0, 10) };
    if (by === "hour") return { kind: by, namespace: "", name: `${new Date(at).toISOString().slice(0, 13)}:00Z` };
    if (!part.pod) return { kind: "unallocated", namespace: "", name: "" };
    if (by === "namespace") return { kind: by, namespace: part.ns, name: part.ns };
    if (by === "quota") return part.quota ? { kind: by, namespace: "", name: part.quota } : none;
    if (part.job && (by === "job" || by === "workload")) return { kind: "job", namespace: part.ns, name: part.job };
    return by === "job" ? none : { kind: "pod", namespace: part.ns, name: part.pod };
  }

  cost(query: URLSearchParams, namespaces: string[] | null): Cost {
    const to = Math.min(Number(query.get("to")) || this.answers.now, this.answers.now);
    const from = Number(query.get("from")) || to - day;
    const by = (query.get("by") ?? "namespace") as CostBy;
    const only = query.get("namespace") ?? "";
    const rows = new Map<string, Sums>();
    const total = new Sums();
    const byTime = by === "day" || by === "hour";
    for (const { at, share, parts } of this.between(from, to, by === "hour")) {
      for (const part of parts) {
        const seen = (namespaces === null || namespaces.includes(part.ns)) && (!only || part.ns === only);
        if (!seen && only) continue;
        const row = seen || byTime ? this.rowOf(part, by, at) : ({ kind: "others", namespace: "", name: "" } as const);
        const key = [row.kind, row.namespace, row.name].join("\n");
        const sums = rows.get(key) ?? new Sums(row);
        rows.set(key, sums);
        for (const each of [sums, total]) each.add(part, share, seen);
      }
    }
    const limit = Number(query.get("limit")) || 1000;
    const sort = query.get("sort") as CostCategory | null;
    const order = (each: Sums): number => (sort ? each.categories[sort] : each.cost);
    const all = byTime ? [...rows.values()] : [...rows.values()].sort((a, b) => order(b) - order(a));
    const rest = new Sums({ kind: "rest", namespace: "", name: "" });
    for (const each of all.slice(limit)) rest.join(each);
    return {
      cluster: "prod", from, to, by, ...this.head(),
      rows: [...all.slice(0, limit), ...(all.length > limit ? [rest] : [])].map((each) => each.row()), total: total.amounts(),
    };
  }

  private head(): { configured: boolean; currency: string; note: string } {
    const configured = this.prices !== "none";
    return { configured, currency: configured ? "EUR" : "", note: configured ? "list prices of 2026, without tax" : "" };
  }

  csv(query: URLSearchParams, namespaces: string[] | null): string {
    const { rows, total, currency } = this.cost(query, namespaces);
    const line = (kind: string, namespace: string, name: string, each: CostAmounts): string =>
      [kind, namespace, name, each.cost ?? "", currency, each.gpu_hours, each.unpriced_gpu_hours, each.borrowed, ...costCategories.map((one) => each.categories[one])].join(",");
    return [
      `kind,namespace,name,cost,currency,gpu_hours,unpriced_gpu_hours,borrowed,${costCategories.join(",")}`,
      ...rows.map((row) => line(row.kind, row.namespace, row.name, row)), line("total", "", "", total), "",
    ].join("\r\n");
  }

  savings(query: URLSearchParams): Savings {
    const { now } = this.answers;
    const to = Math.min(Number(query.get("to")) || now, now);
    const from = Math.max(this.begin, Number(query.get("from")) || to - 7 * day);
    const bill = this.cost(new URLSearchParams({ from: String(from), to: String(to), by: "category" }), null).total;
    const gpus = Math.round(Number(bill.gpu_hours) / Math.max(1e-9, (to - from) / hour));
    return savingsOf(bill, gpus, 420, { cluster: "prod", from, to, currency: this.head().currency });
  }

  forecast(query: URLSearchParams, namespaces: string[] | null): CostForecast {
    const { now } = this.answers;
    const month = query.get("month") || new Date(now).toISOString().slice(0, 7);
    const [year = 0, number = 1] = month.split("-").map(Number);
    const [from, to] = [Date.UTC(year, number - 1, 1), Date.UTC(year, number, 1)];
    const costOf = (begin: number, end: number): CostAmounts =>
      this.cost(new URLSearchParams({ from: String(begin), to: String(end), by: "category", namespace: query.get("namespace") ?? "" }), namespaces).total;
    const soFar = costOf(from, Math.min(to, now));
    const value = (amounts: CostAmounts): number => Math.round(Number(amounts.cost) * 1e6);
    const end = Math.floor(now / hour) * hour;
    const days = Array.from({ length: 14 }, (_, back) => value(costOf(end - (14 - back) * day, end - (13 - back) * day)));
    const mean = days.reduce((all, each) => all + each, 0) / days.length;
    const spread = Math.sqrt(days.reduce((all, each) => all + (each - mean) ** 2, 0) / (days.length - 1));
    const left = Math.max(0, to - now) / day;
    const margin = 1.35 * spread * Math.sqrt(left * (1 + left / days.length));
    const at = (amount: number): string => text(Math.round(value(soFar) + amount));
    return {
      cluster: "prod", month, from, to, now, counted_from: Math.max(from, Math.min(this.begin, now)), ...this.head(), so_far: soFar,
      forecast: left > 0 ? { cost: at(mean * left), low: at(mean * left - margin), high: at(mean * left + margin), confidence: 0.8, per_day: text(Math.round(mean)), days: 14 } : null,
      why: left > 0 ? "" : "the month has ended",
    };
  }
}

/** As a busy cluster would have: three and a half times as many whole GPUs. */
function savingsOf(bill: CostAmounts, gpus: number, pods: number, head: { cluster: string; from: number; to: number; currency: string }): Savings {
  const gpuHours = Number(bill.gpu_hours);
  const cost = bill.cost === null ? null : Number(bill.cost);
  const spread = (middle: number, part: number): Spread => ({ low: Math.round(middle * (1 - part)), middle: Math.round(middle), high: Math.round(middle * (1 + part)) });
  const alternative = (name: "whole" | "static", factor: number, part: number): Savings["alternatives"][number] => {
    const need = spread(gpus * factor, part);
    const of = (all: number, number: number): number => Math.max(0, (all * number) / gpus - all);
    const money = (number: number): string => text(Math.round(of(cost ?? 0, number) * 1e6));
    return {
      name, waiting_hours: spread(pods * factor, part), started: spread(pods / factor, part / 4), gpus: need, enough: true,
      saved_gpu_hours: { low: of(gpuHours, need.low), middle: of(gpuHours, need.middle), high: of(gpuHours, need.high) },
      saved: cost === null ? null : { low: money(need.low), middle: money(need.middle), high: money(need.high) },
      layouts: name === "whole" ? [{ layout: "whole", gpus }] : [{ layout: "7x1g.10gb", gpus: Math.round(gpus / 2) }, { layout: "3g.40gb 2x2g.20gb", gpus: Math.floor(gpus / 2) }],
    };
  };
  return {
    ...head, gpus, gpu_hours: gpuHours, pods, started: pods - 12, waiting_hours: pods / 20, median_wait_ms: 9_000, p95_wait_ms: 840_000, unknown_runs: 12, left_out: 3,
    replays: 7, cost: bill.cost, decisions: [{ type: "plan", count: 214, victims: 0 }, { type: "reclaim", count: 9, victims: 11 }],
    alternatives: gpus === 0 ? [] : [alternative("whole", 3.5, 0.02), alternative("static", 1.3, 0.08)],
  };
}

class Sums {
  cost = 0;
  private time = 0;
  private unpriced = 0;
  private borrowed = 0;
  readonly categories = Object.fromEntries(costCategories.map((each) => [each, 0])) as Record<CostCategory, number>;

  constructor(private readonly about: Pick<CostRow, "kind" | "namespace" | "name"> = { kind: "rest", namespace: "", name: "" }) {}

  /** The same rounding for a row and the total, so that rows add up. */
  add(part: Part, share: number, seen: boolean): void {
    const cost = Math.round(part.cost * share);
    this.cost += cost;
    this.time += Math.round(part.time * share);
    this.unpriced += Math.round(part.unpriced * share);
    if (!seen) return;
    if (part.borrowed) this.borrowed += cost;
    this.categories[part.category] += cost;
  }

  join(other: Sums): void {
    this.cost += other.cost;
    this.time += other.time;
    this.unpriced += other.unpriced;
    this.borrowed += other.borrowed;
    for (const each of costCategories) this.categories[each] += other.categories[each];
  }

  amounts(): CostAmounts {
    return {
      cost: this.time > 0 && this.time === this.unpriced ? null : text(this.cost), gpu_hours: text(this.time), unpriced_gpu_hours: text(this.unpriced),
      borrowed: text(this.borrowed),
      categories: Object.fromEntries(costCategories.map((each) => [each, text(this.categories[each])])) as Record<CostCategory, string>,
    };
  }

  row(): CostRow {
    return { ...this.about, ...this.amounts() };
  }
}

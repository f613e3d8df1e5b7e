// The answers of the telemetry API (docs/telemetry.md). Times are milliseconds since the epoch,
// fractions 0..1, memory MiB, power W, temperature degrees Celsius, clocks MHz.

export interface Session {
  user: string;
  sandbox: boolean;
  clusters: string[];
  can: { submit: boolean; what_if?: boolean; all_namespaces: boolean };
  /** Address for signing out of this browser's session, if it has one. */
  sign_out?: string;
  /** null: every namespace. */
  namespaces: string[] | null;
  /** Number of further namespaces not yet checked against the user's rights. */
  unasked_namespaces?: number;
  now: number;
  version: string;
}

export interface Overview {
  at: number;
  fresh_at: number;
  gpus: number;
  slots: number;
  /** Shares of all slots. null if not measurable. */
  allocated: number;
  used: number | null;
  idle: number | null;
  free: number;
  /** Free, but no layout beside the pods in use gives it to what waits. */
  fragmented: number;
  stranded: number;
  /** A part of `free`: on GPUs that no pod uses; this and the following are missing in older servers. */
  empty?: number;
  empty_gpus?: number;
  empty_nodes?: number;
  /** Share of all slots that pods hold and that are measured; missing in older servers. */
  measured?: number;
  pods: Partial<Record<PodState, number>>;
  seconds_to_slice: number | null;
  nodes: number;
  stale_nodes: number;
  /** `memory`: of one GPU, MiB. */
  models: { product: string; gpus: number; allocated: number; memory?: number }[];
}

export interface Holder {
  namespace: string;
  pod: string;
  container?: string;
  quota?: string;
}

export type Metrics = Record<string, number>;

export interface Instance {
  id: number;
  instance: string;
  profile: string;
  start: number;
  size: number;
  holders: Holder[];
  metrics?: Metrics;
  unmeasured?: Record<string, string>;
}

export type SharingMode = "MIG" | "MPS" | "time slices" | "whole";

export interface Gpu {
  index: number;
  gpu: string;
  product: string;
  memory: number;
  /** Units of placements and time slices: memory slots; for MPS shares: GiB; 0: the GPU is not divided. */
  slots: number;
  mig: boolean;
  /** Empty, or the reason why the GPU cannot be used. */
  health: string;
  /** Its sharing mode; "" while it is empty. Older servers omit it. */
  sharing_mode?: SharingMode | "";
  /** Other possible sharing modes. */
  switches?: SharingMode[];
  instances: Instance[];
  holders: Holder[];
  metrics?: Metrics;
  unmeasured?: Record<string, string>;
}

export interface Node {
  node: string;
  mode: string;
  fresh_at: number;
  ready: boolean;
  /** Missing in older servers. */
  schedulable?: boolean;
  gpus: Gpu[];
}

export interface Gpus {
  at: number;
  fresh_at: number;
  nodes: Node[];
}

export const podStates = [
  "pending",
  "starting",
  "running",
  "succeeded",
  "failed",
  "terminating",
] as const;
export type PodState = (typeof podStates)[number];

export interface Slice {
  node: string;
  gpu: number;
  profile: string;
  start: number;
  instance: string;
  utilization: number | null;
  memory_used: number | null;
}

export interface Pod {
  uid: string;
  namespace: string;
  name: string;
  owner?: { kind: string; name: string };
  /** The top owner of the pod. */
  job?: { kind: string; name: string };
  node: string;
  state: PodState;
  reason: string;
  message: string;
  requests: Record<string, number>;
  priority: number;
  quota: string;
  capacity: "in-quota" | "over-quota" | "";
  created: number;
  scheduled: number;
  started: number;
  finished: number;
  slices: Slice[];
  /** Expected start time; null: unknown. */
  estimate: number | null;
  /** Source of the estimate: "plan", "reclaim" or "history"; or the reason why it is unknown. */
  estimate_by: string;
  why: string;
  /** Absent in answers of older servers. */
  explanation?: Explanation;
}

/** Why a pod waits or where it runs, in the sentences of `nos explain`. */
export interface Explanation {
  headline: string;
  cause: string;
  in_the_way: string[];
  /** The best first. */
  actions: { text: string; brings: string }[];
  /** Expected start of a pending pod; null: unknown. */
  eta: number | null;
  /** Source of `eta`, or why it is unknown. */
  eta_reason: string;
  /** The pods that could evict a running pod. */
  evictable_by: string;
}

/** An alert that fires now. */
export interface Alert {
  name: string;
  /** Empty: it is about the cluster. */
  namespace: string;
  severity: string;
  summary: string;
  description: string;
  /** Of its expression in Prometheus; empty: unknown. */
  url: string;
  /** 0: unknown. */
  since: number;
  labels: Record<string, string>;
}

export interface Workloads {
  at: number;
  total: number;
  pods: Pod[];
  next: string | null;
}

export interface Job {
  id: string;
  namespace: string;
  type: string;
  name: string;
  queue?: string;
  state?: "suspended" | "queued" | "pending" | "running" | "succeeded" | "failed";
  /** Reason why it is pending, or has failed. */
  why?: string;
  pods?: Partial<Record<PodState, number>>;
  /** Pods that have succeeded, including deleted ones. */
  completions?: number;
  created?: number;
  started?: number;
  /** 0: not finished. */
  finished?: number;
  /** Number of pods that must succeed; this and the following only for Jobs. */
  wanted?: number;
  parallelism?: number;
  suspended?: boolean;
  /** GPUs and slices of all its pods together. */
  requests?: Record<string, number>;
  /** Its state in Kueue. */
  admission?: { state: string; cluster_queue?: string; reason?: string; message?: string };
}

export interface Queue {
  id: string;
  namespace?: string;
  type?: "LocalQueue" | "ClusterQueue";
  name: string;
  jobs?: number;
  pods?: { waiting: number; admitted: number };
  /** Kueue's own counts. */
  workloads?: { pending: number; reserving: number; admitted: number };
  active?: boolean;
  why?: string;
  cluster_queue?: string;
}

export interface Jobs {
  total: number;
  jobs: Job[];
  queues: Queue[];
}

export interface ClusterEvent {
  at: number;
  /** Number of occurrences. */
  count?: number;
  kind?: string;
  type?: string;
  reason?: string;
  message?: string;
}

export interface PodDetail extends Pod {
  events: ClusterEvent[];
  decisions: string[];
}

export interface GpuLayout {
  index: number;
  profiles: Record<string, number>;
  /** The GPU's sharing mode in this layout; "" if it is empty. */
  sharing_mode?: SharingMode | "";
  /** The old name of sharing_mode, in records of older versions. */
  way?: SharingMode | "";
}

export interface PodName {
  namespace: string;
  name: string;
}

/** The texts of one decision, composed by the server. */
export interface DecisionTexts {
  /** The beginning of `sentence` that names pods; may be empty. */
  subject: string;
  sentence: string;
  reason: string;
  /** Slices: "2 × 2g.20gb, 3g.40gb"; empty for none. */
  created: string;
  destroyed: string;
}

/** Decisions that belong together, as one sentence, composed by the server. */
export interface Story {
  /** Of its earliest decision. */
  id: string;
  type: Decision["type"];
  outcome: Decision["state"];
  /** When its earliest and its latest decision were made. */
  from: number;
  at: number;
  took_ms: number | null;
  pods: PodName[];
  victims: PodName[];
  nodes: string[];
  created: Record<string, number>;
  destroyed: Record<string, number>;
  /** The beginning of `sentence` that names pods; may be empty. */
  subject: string;
  sentence: string;
  reason: string;
  /** Ids, the earliest first; at most 100. */
  decisions: string[];
  /** Number of those that the lists leave out. */
  more_pods?: number;
  more_victims?: number;
  more_nodes?: number;
  more_decisions?: number;
}

export interface Stories {
  stories: Story[];
  next: string | null;
}

export interface Decision {
  /** Time of the latest report: a decision is reported again as it progresses. */
  at: number;
  /** Time of the decision; older servers omit it. */
  made?: number;
  id: string;
  type: "plan" | "preemption" | "reclaim" | "move" | "scale";
  summary: string;
  /** The node of an eviction or of scaling. */
  node?: string;
  nodes: { node: string; before: GpuLayout[]; after: GpuLayout[] }[];
  pods: PodName[];
  victims: PodName[];
  /** "superseded": a later decision replaced the plan. */
  state: "planned" | "applied" | "failed" | "superseded";
  /** Only for a finished decision, if known. */
  took_ms?: number;
  why: string;
  story: DecisionTexts;
}

export interface QuotaAmounts {
  min: number;
  max?: number;
  used: number;
  guaranteed: number;
  borrowed: number;
  lent: number;
}

export interface Quota {
  type: "ElasticQuota" | "CompositeElasticQuota";
  namespace: string;
  name: string;
  namespaces: string[];
  resources: Record<string, QuotaAmounts>;
}

export interface Pool {
  id: string;
  name: string;
  /** The GPUs of one node; `count` 0: none. */
  gpu?: { model?: string; product?: string; count?: number; partitioning?: "none" | "mig" | "mps" | "hybrid" };
  /** Nodes without those being removed. */
  nodes?: number;
  coming?: number;
  going?: number;
  wanted?: number;
  min?: number;
  max?: number;
  /** Price of a node per hour, in any currency; 0: unknown. */
  price?: number;
  /** Number of consecutive failures to provision nodes. */
  failures?: number;
  state?: "ready" | "closed" | "failing" | "invalid" | "no template" | "unknown";
  /** Only for a closed pool. */
  closed_until?: number;
  why?: string;
}

/** Amounts are decimal texts with six digits after the point: "12.500000". */
export interface CostAmounts {
  /** null: no GPU of it has a price. */
  cost: string | null;
  gpu_hours: string;
  unpriced_gpu_hours: string;
  /** Of pods over their quotas. */
  borrowed: string;
  categories: Record<CostCategory, string>;
}

export const costCategories = ["used", "idle", "unknown", "free", "unpartitioned", "fragmented", "stranded", "not_reported"] as const;
export type CostCategory = (typeof costCategories)[number];

export type CostBy = "namespace" | "quota" | "job" | "pod" | "model" | "category" | "pool" | "workload" | "day" | "hour";

export interface CostRow extends CostAmounts {
  /** What it is about, or: no pod has it, nothing of that kind, not visible, beyond the limit. */
  kind: Exclude<CostBy, "workload"> | "unallocated" | "none" | "others" | "rest";
  namespace: string;
  name: string;
}

export interface Cost {
  cluster: string;
  from: number;
  to: number;
  by: CostBy;
  /** false: the server has no prices. */
  configured: boolean;
  currency: string;
  note: string;
  rows: CostRow[];
  total: CostAmounts;
}

export interface CostForecast {
  cluster: string;
  /** In UTC, as "from" and "to". */
  month: string;
  from: number;
  to: number;
  now: number;
  /** Later than `from` if history begins in the month. */
  counted_from: number;
  configured: boolean;
  currency: string;
  note: string;
  so_far: CostAmounts;
  forecast: { cost: string; low: string; high: string; confidence: number; per_day: string; days: number } | null;
  /** Reason why there is no forecast. */
  why: string;
}

/** Over several replays: the smallest, median and largest result. */
export interface Spread<T = number> {
  low: T;
  middle: T;
  high: T;
}

export interface Alternative {
  name: "whole" | "static";
  waiting_hours: Spread;
  started: Spread;
  gpus: Spread;
  /** false: even `gpus` are too few. */
  enough: boolean;
  saved_gpu_hours: Spread;
  saved: Spread<string> | null;
  layouts: { layout: string; gpus: number }[];
}

/** The pods of a time on GPUs that are never repartitioned. */
export interface Savings {
  cluster: string;
  from: number;
  to: number;
  gpus: number;
  gpu_hours: number;
  pods: number;
  started: number;
  waiting_hours: number;
  median_wait_ms: number;
  p95_wait_ms: number;
  unknown_runs: number;
  left_out: number;
  replays: number;
  currency: string;
  cost: string | null;
  decisions: { type: string; count: number; victims: number }[];
  /** Empty: there were no GPUs or no pods. */
  alternatives: Alternative[];
}

export interface Series {
  subject: string | Record<string, string>;
  at: number[];
  mean: (number | null)[];
  min: (number | null)[];
  max: (number | null)[];
}

export interface SeriesAnswer {
  metric: string;
  unit: string;
  step: number;
  series: Series[];
}

export interface HistoryEvent {
  at: number;
  kind: string;
  [field: string]: unknown;
}

/** The layout of a node from that time on. */
export interface LayoutEvent extends HistoryEvent {
  kind: "layout";
  node: string;
  mode: string;
  gpus: Gpu[];
}

export interface WhatIf {
  fits: boolean;
  node?: string;
  would_partition: unknown[];
  would_evict: unknown[];
  text: string;
  steps: unknown[];
  explanation?: Explanation;
}

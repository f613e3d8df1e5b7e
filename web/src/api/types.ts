// The answers of the telemetry API (docs/telemetry.md). Times are milliseconds since the epoch,
// fractions 0..1, memory MiB, power W, temperature degrees Celsius, clocks MHz.

export interface Session {
  user: string;
  sandbox: boolean;
  clusters: string[];
  can: { submit: boolean; what_if?: boolean; all_namespaces: boolean };
  /** Where this browser's session is ended, if it has one. */
  sign_out?: string;
  /** null: every namespace. */
  namespaces: string[] | null;
  /** How many further ones there are of which nobody has said yet whether they are the user's. */
  unasked_namespaces?: number;
  now: number;
  version: string;
}

export interface Overview {
  at: number;
  fresh_at: number;
  gpus: number;
  slots: number;
  /** Shares of all slots. null where it cannot be measured. */
  allocated: number;
  used: number | null;
  idle: number | null;
  free: number;
  fragmented: number;
  stranded: number;
  pods: Partial<Record<PodState, number>>;
  seconds_to_slice: number | null;
  nodes: number;
  stale_nodes: number;
  models: { product: string; gpus: number; allocated: number }[];
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

export type Way = "MIG" | "MPS" | "time slices" | "whole";

export interface Gpu {
  index: number;
  gpu: string;
  product: string;
  memory: number;
  /** Memory slots that placements, and time slices, count in; GiB for MPS shares; 0: the GPU is not divided. */
  slots: number;
  mig: boolean;
  /** Empty, or why the GPU cannot be used. */
  health: string;
  /** In which way it is used; "" while nothing is on it. Servers before this do not say. */
  way?: Way | "";
  /** What else it may become. */
  switches?: Way[];
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
  /** Who made it in the end. */
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
  /** When it is expected to start; null: unknown. */
  estimate: number | null;
  /** What says so: "plan", "reclaim" or "history"; or why nobody knows. */
  estimate_by: string;
  why: string;
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
  /** Why it waits, or has failed. */
  why?: string;
  pods?: Partial<Record<PodState, number>>;
  /** Pods that have succeeded, also those that are gone. */
  completions?: number;
  created?: number;
  started?: number;
  /** 0: it goes on. */
  finished?: number;
  /** Pods that have to succeed; as the following, of Jobs alone. */
  wanted?: number;
  parallelism?: number;
  suspended?: boolean;
  /** GPUs and slices of all its pods at once. */
  requests?: Record<string, number>;
  /** Where it stands with Kueue. */
  admission?: { state: string; cluster_queue?: string; reason?: string; message?: string };
}

export interface Queue {
  id: string;
  namespace?: string;
  type?: "LocalQueue" | "ClusterQueue";
  name: string;
  jobs?: number;
  pods?: { waiting: number; admitted: number };
  /** As Kueue counts them. */
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
  /** How often it has happened. */
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
  /** In which way the GPU is used so; "" for nothing on it. */
  way?: Way | "";
}

export interface PodName {
  namespace: string;
  name: string;
}

export interface Decision {
  /** When it was told last: it comes again as it goes on. */
  at: number;
  /** When it was made; servers before this did not say. */
  made?: number;
  id: string;
  type: "plan" | "cut" | "preemption" | "reclaim" | "move" | "scale";
  summary: string;
  nodes: { node: string; before: GpuLayout[]; after: GpuLayout[] }[];
  pods: PodName[];
  victims: PodName[];
  state: "planned" | "applied" | "failed";
  /** Of one that is done, if anybody knows. */
  took_ms?: number;
  why: string;
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
  /** Of one node; `count` 0: none. */
  gpu?: { model?: string; product?: string; count?: number; partitioning?: "none" | "mig" | "mps" | "hybrid" };
  /** That stay; on their way out are others. */
  nodes?: number;
  coming?: number;
  going?: number;
  wanted?: number;
  min?: number;
  max?: number;
  /** Of a node for an hour, in any currency; 0: not told. */
  price?: number;
  /** Times in a row that nodes did not come. */
  failures?: number;
  state?: "ready" | "closed" | "failing" | "invalid" | "no template" | "unknown";
  /** Of a closed one. */
  closed_until?: number;
  why?: string;
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

/** How a node was cut from then on. */
export interface LayoutEvent extends HistoryEvent {
  kind: "layout";
  node: string;
  mode: string;
  gpus: Gpu[];
}

export interface WhatIf {
  fits: boolean;
  node?: string;
  would_cut: unknown[];
  would_evict: unknown[];
  text: string;
  steps: unknown[];
}

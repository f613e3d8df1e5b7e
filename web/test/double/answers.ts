// The API's answers, computed from the simulated cluster.
import { accounting, utilization, type Shares, type SimCluster, type SimGpu, type SimNode, type SimPod } from "./cluster";
import { teams } from "./hardware";
import { hash, noise } from "./random";
import { splitRemedy } from "../../src/lib/pods";
import type {
  Alert, Explanation,
  Gpu, HistoryEvent, Instance, Job, Jobs, Metrics, Node, Overview, Pod, PodDetail, PodState, Pool, Quota, SeriesAnswer, Slice, WhatIf,
} from "../../src/api/types";

const interval = 10_000;

/** The simulation steps in half minutes; readings change in between. */
export class Answers {
  constructor(
    readonly cluster: SimCluster,
    public now: number,
  ) {}

  private freshAt(node: SimNode): number {
    return node.silentSince || Math.floor(this.now / interval) * interval;
  }

  overview(): Overview {
    const last = this.cluster.shares.at(-1)!;
    const gpus = this.cluster.nodes.flatMap((node) => node.gpus);
    const products = [...new Set(this.cluster.nodes.map((node) => node.model))];
    const empty = gpus.filter((gpu) => !gpu.health && gpu.node.ready && heldSlots(gpu) === 0);
    const slots = gpus.reduce((sum, gpu) => sum + (gpu.node.model.slots || 1), 0);
    return {
      at: this.now,
      fresh_at: Math.floor(this.now / interval) * interval,
      gpus: gpus.length,
      slots,
      empty: Math.min(last.free, empty.reduce((sum, gpu) => sum + (gpu.node.model.slots || 1), 0) / slots),
      empty_gpus: empty.length,
      empty_nodes: this.cluster.nodes.filter((node) => node.gpus.every((gpu) => empty.includes(gpu))).length,
      allocated: last.allocated, measured: last.used === null ? 0 : last.allocated, used: last.used, idle: last.idle,
      free: last.free, fragmented: last.fragmented, stranded: last.stranded,
      pods: this.podCounts(),
      seconds_to_slice: last.seconds_to_slice,
      nodes: this.cluster.nodes.length,
      stale_nodes: this.cluster.nodes.filter((node) => node.silentSince).length,
      models: products.map((model) => {
        const mine = gpus.filter((gpu) => gpu.node.model === model);
        const held = mine.reduce((sum, gpu) => sum + heldSlots(gpu), 0);
        return { product: model.product, gpus: mine.length, allocated: held / (mine.length * (model.slots || 1)), memory: model.memory };
      }),
    };
  }

  private podCounts(): Partial<Record<PodState, number>> {
    const counts: Partial<Record<PodState, number>> = {};
    for (const pod of this.recent(this.now)) counts[pod.state] = (counts[pod.state] ?? 0) + 1;
    return counts;
  }

  node(node: SimNode, at = this.now, namespace = ""): Node {
    return {
      node: node.name,
      mode: node.model.slots > 0 ? "mig" : "",
      fresh_at: Math.min(this.freshAt(node), Math.floor(at / interval) * interval),
      ready: node.ready || at < node.silentSince,
      schedulable: true,
      gpus: node.gpus.map((gpu) => this.gpu(gpu, at, namespace)),
    };
  }

  private gpu(gpu: SimGpu, at: number, namespace: string): Gpu {
    const { model } = gpu.node;
    const layout = gpu.past.findLast((each) => each.at <= at) ?? gpu.past[0]!;
    const visible = (each: { namespace: string }): boolean => namespace === "" || each.namespace === namespace;
    const instances = layout.instances.map((each) => ({ ...this.instance(gpu, each, at), holders: each.holders.filter(visible) }));
    const holders = layout.pod
      ? [{ namespace: layout.pod.namespace, pod: layout.pod.name, container: "main", quota: layout.pod.team.quota }].filter(visible)
      : [];
    const sum = (name: string): number => instances.reduce((total, each) => total + (each.metrics[name] ?? 0), 0);
    const size = model.slots || 1;
    let busy = instances.reduce((total, each) => total + (each.metrics.utilization ?? 0) * each.size, 0) / size;
    if (layout.pod) busy = utilization(layout.pod, at) ?? 0;
    const key = hash(gpu.uuid);
    const metrics: Metrics = {
      memory_used: Math.round(layout.pod ? 9000 + 900 * noise(key, at) : sum("memory_used") + 480),
      memory_total: model.memory,
      power: Math.round(model.power * (0.16 + 0.7 * busy) + 4 * noise(key, at)),
      power_limit: model.power,
      temperature: Math.round(31 + 38 * busy + 2 * noise(key + 1, at)),
      sm_clock: busy > 0.02 ? 1410 : 210,
    };
    const unmeasured: Record<string, string> = {};
    if (model.measured) metrics.utilization = busy;
    else unmeasured.utilization = "The driver gives no utilisation of a GPU of this architecture while it is partitioned.";
    return {
      index: gpu.index, gpu: gpu.uuid, product: model.product, memory: model.memory, slots: model.slots,
      mig: model.slots > 0, health: gpu.health, instances, holders, metrics, unmeasured,
      sharing_mode: instances.length > 0 ? "MIG" : layout.pod ? "whole" : "", switches: [],
    };
  }

  private instance(gpu: SimGpu, instance: Instance, at: number): Instance & { metrics: Metrics } {
    const { model } = gpu.node;
    const total = model.profiles.find((each) => each.name === instance.profile)?.memory ?? 0;
    const holder = instance.holders[0];
    const pod = holder && this.podOf(holder.namespace, holder.pod);
    const metrics: Metrics = { memory_total: total, memory_used: pod ? this.memoryOf(pod, total, at) : 0 };
    const busy = pod ? utilization(pod, at) : 0;
    if (model.measured) metrics.utilization = busy ?? 0;
    const unmeasured: Record<string, string> = model.measured
      ? {}
      : { utilization: "Needs DCGM: the driver alone gives no utilisation of instances of this architecture." };
    return { ...instance, metrics, unmeasured };
  }

  private memoryOf(pod: SimPod, total: number, at: number): number {
    return Math.round(total * (0.35 + (pod.key % 50) / 100 + 0.03 * noise(pod.key, at)));
  }

  private readonly names = new Map<string, SimPod>();
  podOf(namespace: string, name: string): SimPod | undefined {
    if (this.names.size !== this.cluster.pods.length) {
      for (const pod of this.cluster.pods) this.names.set(`${pod.namespace}/${pod.name}`, pod);
    }
    return this.names.get(`${namespace}/${name}`);
  }

  /** Existing pods, and those that ended in the hour before. */
  recent(at: number): SimPod[] {
    return this.cluster.pods.filter((pod) => pod.created <= at && (!pod.finished || pod.finished > at - 3_600_000));
  }

  pod(pod: SimPod, at = this.now): Pod {
    const state: PodState =
      at >= this.now ? pod.state : pod.finished && pod.finished <= at ? pod.state : pod.started && pod.started <= at ? "running" : "pending";
    const placed = pod.gpu && pod.started <= at;
    const slices: Slice[] = [];
    if (placed && state === "running") {
      const total = pod.model.profiles.find((each) => each.name === pod.profile)?.memory ?? 15360;
      slices.push({
        node: pod.gpu!.node.name, gpu: pod.gpu!.index, profile: pod.profile === "gpu" ? "" : pod.profile,
        start: Math.max(0, pod.start), instance: pod.instance,
        utilization: utilization(pod, at), memory_used: this.memoryOf(pod, total, at),
      });
    }
    return {
      uid: pod.uid, namespace: pod.namespace, name: pod.name, ...(pod.owner ? { owner: pod.owner, job: pod.owner } : {}),
      node: placed ? pod.gpu!.node.name : "", state,
      reason: state === "pending" ? pod.reason : state === "failed" ? "Preempted" : "",
      message: state === "pending" ? pod.why : state === "failed" ? "its slice went back to the quota that it was borrowed from" : "",
      requests: {
        [pod.profile === "gpu" ? "nvidia.com/gpu" : `nvidia.com/mig-${pod.profile}`]: 1, cpu: pod.cpu, memory: pod.memory,
      },
      priority: pod.priority, quota: pod.team.quota, capacity: !pod.team.quota || !placed ? "" : pod.over ? "over-quota" : "in-quota",
      created: pod.created, scheduled: placed ? pod.started - 4000 : 0, started: placed ? pod.started : 0,
      finished: state === "succeeded" || state === "failed" ? pod.finished : 0,
      slices, ...this.estimateOf(pod, state),
      why: state === "pending" ? pod.why : "", explanation: this.explain(pod, state),
    };
  }

  /** In the sentences of the server. */
  private explain(pod: SimPod, state: PodState): Explanation {
    const name = `${pod.namespace}/${pod.name}`;
    if (state !== "pending") {
      return { headline: `${name} ${state === "running" ? "runs" : `is ${state}`}`, cause: "", in_the_way: [], actions: [], eta: null, eta_reason: "none: it is not pending",
        evictable_by: state === "running" ? `pods with a priority above ${pod.priority}` : "" };
    }
    const { reason, remedy } = splitRemedy(pod.why);
    const { estimate, estimate_by } = this.estimateOf(pod, state);
    return { headline: `${name} waits for ${pod.profile}`, cause: reason, in_the_way: [], actions: remedy ? [{ text: remedy, brings: "it then fits there" }] : [],
      eta: estimate, eta_reason: estimate_by, evictable_by: "" };
  }

  /** Alerts that fire now. */
  alerts(): { at: number; configured: boolean; alerts: Alert[] } {
    return { at: this.now, configured: true, alerts: [{
      name: "NosPodsPendingLong", namespace: "", severity: "warning", summary: "Pods wait for more than an hour", description: "",
      url: "https://prometheus.example/graph", since: this.now - 1_200_000, labels: { alertname: "NosPodsPendingLong", severity: "warning" },
    }] };
  }

  private estimateOf(pod: SimPod, state: PodState): { estimate: number | null; estimate_by: string } {
    if (state !== "pending") return { estimate: null, estimate_by: "" };
    const estimate = pod.reason === "QuotaExceeded" ? null : this.estimate(pod);
    return { estimate, estimate_by: estimate === null ? "no history" : "history" };
  }

  private estimate(pod: SimPod): number | null {
    const ends = this.cluster.pods
      .filter((each) => each.state === "running" && each.model === pod.model && each.profile === pod.profile)
      .map((each) => each.ends)
      .sort((a, b) => a - b);
    return ends[0] === undefined ? null : Math.round(ends[0]);
  }

  workloads(query: URLSearchParams): { at: number; total: number; pods: Pod[]; next: string | null } {
    const at = Number(query.get("at")) || this.now;
    const [namespace, state, text] = [query.get("namespace") ?? "", query.get("state") ?? "", (query.get("q") ?? "").toLowerCase()];
    const job = query.get("job") ?? "";
    const limit = Math.min(1000, Number(query.get("limit")) || 100);
    const order: PodState[] = ["pending", "starting", "terminating", "running", "failed", "succeeded"];
    const all = this.recent(at)
      .map((pod) => this.pod(pod, at))
      .filter((pod) => (!namespace || pod.namespace === namespace) && (!state || pod.state === state))
      .filter((pod) => !job || `${pod.job?.kind}/${pod.job?.name}` === job)
      .filter((pod) => !text || `${pod.namespace}/${pod.name} ${pod.node} ${Object.keys(pod.requests).join(" ")}`.toLowerCase().includes(text))
      .sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || a.created - b.created || (a.uid < b.uid ? -1 : 1));
    const after = Number(query.get("after")) || 0;
    const pods = all.slice(after, after + limit);
    return { at, total: all.length, pods, next: after + limit < all.length ? String(after + limit) : null };
  }

  jobs(query: URLSearchParams): Jobs {
    const at = Number(query.get("at")) || this.now;
    const jobs = new Map<string, Job>();
    for (const each of this.recent(at)) {
      const pod = this.pod(each, at);
      if (!pod.job || (query.get("namespace") && pod.namespace !== query.get("namespace"))) continue;
      const id = `${pod.namespace}/${pod.job.kind}/${pod.job.name}`;
      const job = jobs.get(id) ?? {
        id, namespace: pod.namespace, type: pod.job.kind, name: pod.job.name, queue: "", pods: {}, completions: 0,
        created: pod.created, started: 0, finished: 0,
      };
      job.pods = { ...job.pods, [pod.state]: (job.pods?.[pod.state] ?? 0) + 1 };
      if (pod.started) job.started = Math.min(job.started || pod.started, pod.started);
      jobs.set(id, job);
    }
    const team = "vision";
    const told = [...jobs.values()];
    if (!query.get("namespace") || query.get("namespace") === team) {
      told.push({
        id: `${team}/Job/nightly`, namespace: team, type: "Job", name: "nightly", queue: "gpus", state: "queued",
        why: "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/mig-3g.20gb in flavor a100, 4 more needed",
        pods: {}, completions: 0, created: at - 600_000, started: 0, finished: 0, wanted: 8, parallelism: 4, suspended: true,
        requests: { "nvidia.com/mig-3g.20gb": 4 }, admission: { state: "pending", cluster_queue: "research", reason: "Pending" },
      });
    }
    return {
      total: told.length, jobs: told,
      queues: [{
        id: `LocalQueue/${team}/gpus`, namespace: team, type: "LocalQueue", name: "gpus", jobs: 0, pods: { waiting: 0, admitted: 0 },
        workloads: { pending: 1, reserving: 0, admitted: 2 }, active: true, why: "", cluster_queue: "research",
      }],
    };
  }

  workload(namespace: string, name: string): PodDetail | undefined {
    const pod = this.podOf(namespace, name);
    if (!pod) return undefined;
    const events = [{ at: pod.created, kind: "event", type: "Normal", reason: "Created", message: `created by ${pod.owner?.kind ?? "user"}` }];
    if (pod.why) events.push({ at: pod.created + 1000, kind: "event", type: "Warning", reason: "FailedScheduling", message: pod.why });
    if (pod.started) {
      events.push({ at: pod.started - 4000, kind: "event", type: "Normal", reason: "Scheduled", message: `assigned ${namespace}/${name} to ${pod.gpu!.node.name}` });
      events.push({ at: pod.started, kind: "event", type: "Normal", reason: "Started", message: "started container main" });
    }
    const decisions = this.cluster.decisions
      .filter((each) => [...each.pods, ...each.victims].some((one) => one.namespace === namespace && one.name === name))
      .map((each) => each.id);
    return { ...this.pod(pod), events, decisions };
  }

  quotas(at = this.now): Quota[] {
    const entry = this.cluster.quotaUse.findLast((each) => each.at <= at) ?? this.cluster.quotaUse.at(-1);
    return teams
      .filter((team) => team.quota)
      .map((team) => {
        const used = entry?.used.get(team.namespace) ?? 0;
        return {
          type: "ElasticQuota", namespace: team.namespace, name: "quota", namespaces: [team.namespace],
          resources: {
            "nos.nebuly.com/gpu-memory": {
              min: team.min, ...(team.max === undefined ? {} : { max: team.max }), used, guaranteed: team.min,
              borrowed: Math.max(0, used - team.min), lent: Math.max(0, team.min - used) * 0.6,
            },
          },
        };
      });
  }

  pools(at = this.now): { pools: Pool[] } {
    const of = (prefix: string): number => this.cluster.nodes.filter((node) => node.name.startsWith(`${prefix}-`)).length;
    const pool = (name: string, model: string, price: number, more: Partial<Pool>): Pool => ({
      id: name, name, gpu: { model, product: "", count: 8, partitioning: "mig" }, nodes: of(name), coming: 0, going: 0,
      wanted: of(name), min: 0, max: 20, price, failures: 0, state: "ready", why: "", ...more,
    });
    return {
      pools: [
        pool("a100", "A100-40GB", 12.25, { min: 4, coming: 2, wanted: of("a100") + 2 }),
        pool("h100", "H100-80GB", 31.5, { going: 1 }),
        pool("a30", "A30", 4.2, { state: "failing", why: "the server could not find machinedeployments.cluster.x-k8s.io a30" }),
        pool("a100-spot", "A100-40GB", 3.75, {
          state: "closed", closed_until: at + 240_000, failures: 2,
          why: "Pausing requests for Nodes: requested Nodes did not arrive (2 times in a row)",
        }),
        pool("l4", "", 0, { max: 0, state: "invalid", why: "spec.max: must be at least min (3)", gpu: { count: 0 } }),
        pool("t4-new", "T4", 0.9, { state: "unknown", why: "no autoscaler has looked at it", gpu: { model: "T4", count: 1, partitioning: "none" } }),
      ],
    };
  }

  history(query: URLSearchParams): { events: HistoryEvent[]; next: string | null } {
    const [from, to] = [Number(query.get("from")), Number(query.get("to")) || this.now];
    const limit = Math.min(10_000, Number(query.get("limit")) || 500);
    const wants = (kind: string): boolean => query.getAll("kind").length === 0 || query.getAll("kind").includes(kind);
    const events: { at: number; make: () => HistoryEvent }[] = [];
    for (const node of wants("layout") ? this.cluster.nodes : []) {
      for (const at of new Set(node.gpus.flatMap((gpu) => gpu.past.map((layout) => layout.at)))) {
        if (at >= from && at < to) events.push({ at, make: () => this.layout(node, at) });
      }
    }
    for (const each of wants("decision") ? this.cluster.decisions : []) {
      if (each.at >= from && each.at < to) events.push({ at: each.at, make: () => ({ kind: "decision", ...each }) });
    }
    events.sort((a, b) => b.at - a.at);
    const after = Number(query.get("after")) || 0;
    const page = events.slice(after, after + limit).map((each) => each.make());
    return { events: page, next: after + limit < events.length ? String(after + limit) : null };
  }

  /** Like an agent's report: without readings, and without quotas. */
  private layout(node: SimNode, at: number): HistoryEvent {
    const gpus = this.node(node, at).gpus.map(({ metrics: _, unmeasured: __, ...gpu }) => ({
      ...gpu,
      instances: gpu.instances.map(({ metrics: ___, ...each }) => each),
    }));
    return { at, kind: "layout", node: node.name, mode: node.model.slots > 0 ? "mig" : "", gpus };
  }

  series(query: URLSearchParams): SeriesAnswer {
    const metric = query.get("metric") ?? "";
    const [from, to] = [Number(query.get("from")), Math.min(Number(query.get("to")), this.now)];
    const points = Math.min(2000, Math.max(2, Number(query.get("points")) || 300));
    const step = Math.max(interval, Math.ceil((Number(query.get("to")) - from) / points / interval) * interval);
    const unit = metric.startsWith("memory_") ? "MiB" : metric.startsWith("power") ? "W" : metric === "temperature" ? "celsius"
      : metric === "seconds_to_slice" ? "s" : metric.startsWith("pods_") ? "pods"
      : query.getAll("subject").some((each) => /^(composite-)?quota\//.test(each)) ? "GB" : "fraction";
    return {
      metric, unit, step,
      series: query.getAll("subject").map((subject) => {
        const at: number[] = [], mean: (number | null)[] = [], min: (number | null)[] = [], max: (number | null)[] = [];
        for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
          const parts = [0, 0.25, 0.5, 0.75].map((part) => this.sample(subject, metric, time + part * step));
          const known = parts.filter((each): each is number => each !== null);
          at.push(time);
          mean.push(known.length ? known.reduce((a, b) => a + b, 0) / known.length : null);
          min.push(known.length ? Math.min(...known) : null);
          max.push(known.length ? Math.max(...known) : null);
        }
        return { subject: { id: subject, kind: subject.split("/")[0]! }, at, mean, min, max };
      }),
    };
  }

  private sample(subject: string, metric: string, at: number): number | null {
    const [kind, one = "", two = ""] = subject.split("/");
    if (at > this.now) return null;
    if (kind === "cluster") return this.share(metric as keyof Shares, at);
    if (kind === "quota") return this.quotaSample(one, metric, at);
    if (kind === "pod") {
      const pod = this.podOf(one, two);
      if (!pod?.started || at < pod.started || (pod.finished && at > pod.finished)) return null;
      if (metric === "utilization") return utilization(pod, at);
      return metric === "memory_used" ? this.memoryOf(pod, 9000, at) : null;
    }
    const gpu = this.cluster.nodes.flatMap((node) => node.gpus).find((each) => each.uuid === one);
    if (kind !== "gpu" || !gpu || at < this.cluster.shares[0]!.at) return null;
    return this.gpu(gpu, at, "").metrics?.[metric] ?? null;
  }

  /** Long trends without details exist for the time before the simulated day. */
  private share(metric: keyof Shares, at: number): number | null {
    const { shares } = this.cluster;
    const first = shares[0]!;
    if (at >= first.at) return shares[Math.min(shares.length - 1, Math.floor((at - first.at) / accounting))]![metric];
    const last = shares[Math.floor(((at / accounting) % shares.length + shares.length) % shares.length)]![metric];
    const days = (first.at - at) / 86_400_000;
    return Math.max(0, last * (1 - days * (metric === "fragmented" || metric === "seconds_to_slice" ? -0.03 : 0.006)));
  }

  private quotaSample(namespace: string, metric: string, at: number): number | null {
    const first = this.cluster.quotaUse[0]!.at;
    const entry = this.cluster.quotaUse[Math.floor((at - first) / 240_000)];
    const team = teams.find((each) => each.namespace === namespace);
    if (!entry || !team) return null;
    const used = entry.used.get(namespace) ?? 0;
    if (metric === "used") return used;
    if (metric === "borrowed") return Math.max(0, used - team.min);
    if (metric === "lent") return Math.max(0, team.min - used) * 0.6;
    return metric === "min" || metric === "guaranteed" ? team.min : null;
  }

  whatIf(text: string): WhatIf | { error: string } {
    const wanted = /nvidia\.com\/mig-([0-9]g\.[0-9]+gb)/.exec(text)?.[1];
    if (!/kind["']?:\s*["']?Pod/.test(text)) return { error: "the text is not a Pod: it has no line `kind: Pod`; paste one pod, as YAML or JSON" };
    const whole = this.cluster.nodes.find((each) => each.model.slots === 0);
    if (!wanted && whole && /nvidia\.com\/gpu["']?:/.test(text)) {
      return { fits: true, node: whole.name, would_partition: [], would_evict: [], steps: [], text: `it fits on node ${whole.name}`, explanation: { headline: "it fits", cause: "", in_the_way: [], actions: [], eta: null, eta_reason: "usually within seconds", evictable_by: "" } };
    }
    if (!wanted) return { error: "the pod asks for no GPU; add a limit such as nvidia.com/mig-1g.10gb: 1" };
    const node = this.cluster.nodes.find((each) => each.ready && each.model.profiles.some((one) => one.name === wanted));
    const gpu = node?.gpus.find((each) => !each.health);
    if (!node || !gpu) {
      return {
        fits: false, would_partition: [], would_evict: [], steps: ["looked at every node", `no GPU here has the profile ${wanted}`, "remedy: ask for a profile that the cluster's GPUs have"],
        text: `it waits: 0/${this.cluster.nodes.length} nodes are available\n${this.cluster.nodes.length} of ${this.cluster.nodes.length}      no GPU can be partitioned for ${wanted}\nremedy        ask for a profile that the cluster's GPUs have`,
        explanation: { headline: "it asks for a profile that no GPU here offers", cause: "", in_the_way: [], actions: [{ text: "ask for a profile that the cluster's GPUs have", brings: "a GPU can then be partitioned for it" }], eta: null, eta_reason: "none", evictable_by: "" },
      };
    }
    const evicts = wanted.startsWith("7g");
    const victim = this.cluster.pods.find((pod) => pod.state === "running" && pod.model === node.model);
    return {
      fits: true, node: node.name,
      would_partition: evicts ? [] : [{ node: node.name, gpu: gpu.index, make: [wanted], destroy: [node.model.profiles[1]!.name] }],
      would_evict: evicts && victim ? [{ namespace: victim.namespace, name: victim.name }] : [],
      steps: ["7 profiles of the pod's own node pool looked at", `chosen: ${node.name}, least room lost`],
      text: `it fits on node ${node.name}, GPU ${gpu.index}\nto create     ${wanted} at slot 0; free instances give way: ${node.model.profiles[1]!.name}\nnearest       node ${node.name}`,
      explanation: { headline: "it fits", cause: "", in_the_way: [], actions: [], eta: null, eta_reason: "usually within seconds", evictable_by: "" },
    };
  }
}

function heldSlots(gpu: SimGpu): number {
  if (gpu.pod) return 1;
  return gpu.instances.reduce((sum, each) => sum + (each.holders.length > 0 ? each.size : 0), 0);
}


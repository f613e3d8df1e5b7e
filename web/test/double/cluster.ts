// A cluster that advances in steps of half a minute: pods arrive, GPUs are partitioned for them,
// pods end. It keeps its past. Simple on purpose: it replaces the server at the HTTP boundary and
// plans nothing well.
import { generator, hash, noise } from "./random";
import { gpusPerNode, models, teams, type Model, type Profile, type Team } from "./hardware";
import type { Decision, DecisionTexts, GpuLayout, Instance, PodState } from "../../src/api/types";

export const tick = 30_000;
/** Interval for recomputing shares and reasons. */
export const accounting = 120_000;
const hour = 3_600_000;

export interface SimPod {
  uid: string;
  /** The hash of the uid. */
  key: number;
  team: Team;
  namespace: string;
  name: string;
  owner?: { kind: string; name: string };
  model: Model;
  profile: string; // "gpu": a whole GPU
  cpu: number;
  memory: number;
  priority: number;
  created: number;
  started: number;
  ends: number;
  finished: number;
  lasts: number;
  state: PodState;
  over: boolean;
  gpu?: SimGpu;
  start: number;
  instance: string;
  why: string;
  reason: string;
}

export interface Layout {
  at: number;
  instances: Instance[];
}

export interface SimGpu {
  uuid: string;
  node: SimNode;
  index: number;
  health: string;
  instances: Instance[];
  pod?: SimPod;
  past: (Layout & { pod?: SimPod })[];
}

export interface SimNode {
  name: string;
  model: Model;
  gpus: SimGpu[];
  ready: boolean;
  /** The last report, if it is not the latest. */
  silentSince: number;
}

export interface Shares {
  at: number;
  allocated: number;
  used: number;
  idle: number;
  free: number;
  fragmented: number;
  stranded: number;
  pods_pending: number;
  pods_running: number;
  seconds_to_slice: number;
}

export interface Changes {
  nodes: Set<SimNode>;
  pods: Set<SimPod>;
  decisions: Decision[];
}

const uuid = (kind: string, text: string): string => {
  const digits = [0, 1, 2, 3].map((part) => hash(`${part}${text}`).toString(16).padStart(8, "0")).join("");
  return `${kind}-${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`;
};

const keyOf = (pod: { namespace: string; name: string }): string => `${pod.namespace}/${pod.name}`;

/** Much simpler than the server's, and of the same shape. */
function textsOf(decision: Decision): DecisionTexts {
  const subject = keyOf(decision.victims[0] ?? decision.pods[0] ?? { namespace: "nobody", name: "at-all" });
  const where = decision.nodes[0]?.node ?? "";
  const sentence = decision.victims.length > 0 ? `${subject} was evicted from ${where} for ${decision.pods.map(keyOf).join(", ")}`
    : decision.state === "failed" ? `${subject} got nothing: repartitioning failed on ${where}` : `${subject} got slices on ${where}`;
  return { subject, sentence, reason: decision.why, created: "slices", destroyed: "" };
}

export class SimCluster {
  now: number;
  readonly nodes: SimNode[] = [];
  readonly pods: SimPod[] = [];
  readonly decisions: Decision[] = [];
  readonly shares: Shares[] = [];
  readonly quotaUse: { at: number; used: Map<string, number> }[] = [];
  private readonly random: () => number;
  private readonly live = new Set<SimPod>();
  private serial = 0;
  private due = 0;
  private readonly used = new Map<Team, number>();
  /** For each model and profile: the running pod that ends first, looked up once per step. */
  private next = new Map<string, SimPod>();
  /** Models and profiles without capacity in this step. */
  private readonly full = new Set<string>();

  constructor(
    readonly base: number,
    private readonly size = 1,
    seed = 7,
  ) {
    this.random = generator(seed);
    this.now = base - 24 * hour;
    this.addNodes();
    while (this.now < base) this.step();
    this.silence();
  }

  private addNodes(): void {
    for (const model of models) {
      const count = Math.round(model.nodes * this.size);
      for (let number = 1; number <= count; number++) {
        const name = `${model.prefix}-${String(number).padStart(2, "0")}`;
        const node: SimNode = { name, model, gpus: [], ready: true, silentSince: 0 };
        for (let index = 0; index < gpusPerNode; index++) {
          node.gpus.push({
            uuid: uuid("GPU", `${name}${index}`), node, index, health: "", instances: [],
            past: [{ at: 0, instances: [] }],
          });
        }
        this.nodes.push(node);
      }
    }
    const sick = this.nodes[4]?.gpus[6];
    if (sick) sick.health = "Xid 79: the GPU has fallen off the bus; drain the node and restart it";
  }

  /** One node stops reporting four minutes before the present. */
  private silence(): void {
    const silent = this.nodes[21];
    if (silent) {
      silent.silentSince = this.base - 4 * 60_000;
      silent.ready = false;
      this.boards.clear();
    }
  }

  /** Advances to a moment; returns the changes. */
  advance(to: number): Changes {
    const changes: Changes = { nodes: new Set(), pods: new Set(), decisions: [] };
    while (this.now + tick <= to) this.step(changes);
    return changes;
  }

  private step(changes?: Changes): void {
    this.now += tick;
    for (const pod of [...this.live]) {
      if (pod.state === "running" && pod.ends <= this.now) this.end(pod, "succeeded", changes);
    }
    this.arrivals(changes);
    const before = new Map<SimGpu, GpuLayout>();
    const served: SimPod[] = [];
    const waiting = [...this.live].filter((pod) => pod.state === "pending");
    waiting.sort((a, b) => b.priority - a.priority || a.created - b.created);
    this.full.clear();
    for (const pod of waiting) {
      if (this.full.has(kindOf(pod))) continue;
      if (!this.place(pod, before)) this.full.add(kindOf(pod));
      else {
        served.push(pod);
        changes?.pods.add(pod);
        changes?.nodes.add(pod.gpu!.node);
      }
    }
    if (before.size > 0) this.decide("plan", before, served, [], changes);
    this.reclaim(changes);
    if (this.now % accounting !== 0) return;
    this.findNext();
    for (const pod of waiting) this.explain(pod);
    this.account();
  }

  private arrivals(changes?: Changes): void {
    const hours = new Date(this.now).getUTCHours() + new Date(this.now).getUTCMinutes() / 60;
    const daily = 0.75 + 0.5 * Math.max(0, Math.sin(((hours - 6) / 14) * Math.PI));
    this.due += 2.42 * this.size * daily;
    while (this.due > 1) {
      this.due -= 1 + this.random() * 0.6 - 0.3;
      const pod = this.arrive();
      changes?.pods.add(pod);
    }
  }

  private pick<T>(all: readonly T[]): T {
    return all[Math.floor(this.random() * all.length)]!;
  }

  private arrive(): SimPod {
    let at = this.random() * teams.reduce((sum, team) => sum + team.weight, 0);
    const team = teams.find((each) => (at -= each.weight) < 0) ?? teams[0]!;
    const dice = this.random();
    const model = models[team.namespace === "notebooks" ? 0 : dice < 0.46 ? 0 : dice < 0.78 ? 1 : dice < 0.96 ? 2 : 3]!;
    const profile = this.profileFor(model, team);
    const job = this.pick(team.jobs);
    const number = ++this.serial;
    const suffix = hash(`p${number}`).toString(36).slice(0, 5);
    const owner = job === "triton" ? undefined : { kind: job === "jupyter" ? "StatefulSet" : "Job", name: `${job}-${1 + (number % 40)}` };
    const uid = uuid("pod", `${number}`);
    const pod: SimPod = {
      uid, key: hash(uid), team, namespace: team.namespace,
      name: owner ? `${owner.name}-${suffix}` : `${job}-${suffix}`,
      ...(owner ? { owner } : {}), model, profile,
      cpu: profile.startsWith("1g") ? 4 : 12, memory: profile.startsWith("1g") ? 16384 : 65536,
      priority: this.random() < 0.08 ? 1000 : 0,
      created: this.now - Math.floor(this.random() * tick), started: 0, ends: 0, finished: 0,
      lasts: (0.15 + -Math.log(1 - this.random()) * 2.6) * hour,
      state: "pending", over: false, start: -1, instance: "", why: "", reason: "",
    };
    this.pods.push(pod);
    this.live.add(pod);
    this.explain(pod);
    return pod;
  }

  private profileFor(model: Model, team: Team): string {
    if (model.slots === 0) return "gpu";
    const dice = this.random();
    if (team.namespace === "notebooks") return model.profiles[dice < 0.8 ? 0 : 1]!.name;
    const last = model.profiles.length - 1;
    return model.profiles[dice < 0.38 ? 0 : dice < 0.7 ? 1 : dice < 0.93 ? Math.min(2, last) : last]!.name;
  }

  /** A free instance, else a position without held instances in the way; remembers the layouts before. */
  private place(pod: SimPod, before: Map<SimGpu, GpuLayout>): boolean {
    const profile = pod.model.profiles.find((each) => each.name === pod.profile);
    const gpus = this.gpusOf(pod.model);
    if (!profile) {
      const gpu = gpus.find((each) => !each.pod);
      if (gpu) this.start(pod, gpu, undefined);
      return gpu !== undefined;
    }
    for (const gpu of gpus) {
      const free = gpu.instances.find((each) => each.profile === profile.name && each.holders.length === 0);
      if (free) {
        this.start(pod, gpu, free);
        return true;
      }
    }
    for (const gpu of gpus) {
      const start = this.startFor(gpu, profile);
      if (start === undefined) continue;
      if (!before.has(gpu)) before.set(gpu, layoutOf(gpu));
      this.start(pod, gpu, this.partition(gpu, profile, start));
      return true;
    }
    return false;
  }

  private readonly boards = new Map<Model, SimGpu[]>();
  private gpusOf(model: Model): SimGpu[] {
    const known = this.boards.get(model);
    if (known) return known;
    const all = this.nodes.filter((node) => node.model === model && node.ready).flatMap((node) => node.gpus);
    const usable = all.filter((gpu) => !gpu.health);
    this.boards.set(model, usable);
    return usable;
  }

  private startFor(gpu: SimGpu, profile: Profile): number | undefined {
    const held = gpu.instances.filter((each) => each.holders.length > 0);
    return profile.starts.find((start) =>
      held.every((each) => each.start >= start + profile.size || each.start + each.size <= start),
    );
  }

  private partition(gpu: SimGpu, profile: Profile, start: number): Instance {
    const id = 1 + Math.max(0, ...gpu.instances.map((each) => each.id));
    const made: Instance = {
      id, profile: profile.name, start, size: profile.size, holders: [],
      instance: uuid("MIG", `${gpu.uuid}${this.now}${start}`),
    };
    gpu.instances = gpu.instances.filter((each) => each.start >= start + profile.size || each.start + each.size <= start);
    gpu.instances = [...gpu.instances, made].sort((a, b) => a.start - b.start);
    return made;
  }

  private start(pod: SimPod, gpu: SimGpu, instance: Instance | undefined): void {
    pod.gpu = gpu;
    pod.state = "running";
    pod.started = this.now;
    pod.ends = this.now + pod.lasts;
    const holder = { namespace: pod.namespace, pod: pod.name, container: "main", quota: pod.team.quota };
    if (instance) {
      pod.start = instance.start;
      pod.instance = instance.instance;
      gpu.instances = gpu.instances.map((each) => (each === instance ? { ...each, holders: [holder] } : each));
    } else gpu.pod = pod;
    this.remember(gpu);
    this.used.set(pod.team, this.usedBy(pod.team) + gigabytes(pod));
    pod.over = this.usedBy(pod.team) > pod.team.min;
  }

  end(pod: SimPod, state: PodState, changes?: Changes): void {
    pod.state = state;
    pod.finished = this.now;
    this.live.delete(pod);
    const gpu = pod.gpu;
    changes?.pods.add(pod);
    if (!gpu) return;
    changes?.nodes.add(gpu.node);
    this.used.set(pod.team, this.usedBy(pod.team) - gigabytes(pod));
    if (gpu.pod === pod) delete gpu.pod;
    gpu.instances = gpu.instances.map((each) => (each.instance === pod.instance ? { ...each, holders: [] } : each));
    this.remember(gpu);
  }

  private remember(gpu: SimGpu): void {
    gpu.past.push({ at: this.now, instances: gpu.instances, ...(gpu.pod ? { pod: gpu.pod } : {}) });
  }

  usedBy(team: Team): number {
    return this.used.get(team) ?? 0;
  }

  /** Occasionally a team reclaims its guarantee. */
  private reclaim(changes?: Changes): void {
    if (Math.floor(this.now / tick) % 40 !== 0) return;
    const waiting = [...this.live].find(
      (pod) => pod.state === "pending" && pod.team.min > 0 && this.usedBy(pod.team) + gigabytes(pod) <= pod.team.min,
    );
    if (!waiting || waiting.profile === "gpu") return;
    const victim = [...this.live].find(
      (pod) => pod.over && pod.state === "running" && pod.profile === waiting.profile && pod.model === waiting.model,
    );
    if (!victim?.gpu) return;
    const before = new Map([[victim.gpu, layoutOf(victim.gpu)]]);
    this.end(victim, "failed", changes);
    victim.reason = "Preempted";
    this.place(waiting, before);
    changes?.pods.add(waiting);
    this.decide("reclaim", before, [waiting], [victim], changes);
  }

  private decide(
    type: Decision["type"], before: Map<SimGpu, GpuLayout>, served: SimPod[], victims: SimPod[], changes?: Changes,
  ): void {
    const nodes = new Map<string, { node: string; before: GpuLayout[]; after: GpuLayout[] }>();
    for (const [gpu, layout] of before) {
      const entry = nodes.get(gpu.node.name) ?? { node: gpu.node.name, before: [], after: [] };
      entry.before.push(layout);
      entry.after.push(layoutOf(gpu));
      nodes.set(gpu.node.name, entry);
      changes?.nodes.add(gpu.node);
    }
    const name = (pod: SimPod): { namespace: string; name: string } => ({ namespace: pod.namespace, name: pod.name });
    const repartitioned = served.filter((pod) => pod.gpu && before.has(pod.gpu));
    const many = (amount: number, word: string): string => `${amount} ${word}${amount === 1 ? "" : "s"}`;
    const decision: Decision = {
      at: this.now, made: this.now, id: `d-${this.decisions.length + 1}`, type,
      summary: type === "reclaim"
        ? `${victims[0]!.team.namespace} gives back ${victims[0]!.profile} to ${served[0]!.team.namespace}`
        : `${many(before.size, "GPU")} repartitioned for ${many(repartitioned.length, "pod")}`,
      nodes: [...nodes.values()], pods: repartitioned.map(name), victims: victims.map(name),
      state: this.decisions.length % 41 === 17 ? "failed" : "applied",
      took_ms: 900 + Math.floor(this.random() * 5200),
      why: type === "reclaim"
        ? `${served[0]!.team.quota} uses less than its min and ${victims[0]!.team.quota} borrows; the youngest borrowed pod of that size goes`
        : "no free instance has the profile; the layout that leaves most room for what is asked for most",
      story: { subject: "", sentence: "", reason: "", created: "", destroyed: "" },
    };
    decision.story = textsOf(decision);
    this.decisions.push(decision);
    changes?.decisions.push(decision);
  }

  private explain(pod: SimPod): void {
    if (pod.state !== "pending") return;
    const held = this.usedBy(pod.team);
    pod.reason = "Unschedulable";
    if (pod.team.max !== undefined && held + gigabytes(pod) > pod.team.max) {
      pod.reason = "QuotaExceeded";
      pod.why = `quota ${pod.team.quota} is at its max: uses ${held} of ${pod.team.max} GB. Remedy: wait for the end of a pod of ${pod.namespace}, or raise max to ${held + gigabytes(pod)}.`;
      return;
    }
    const nodes = this.nodes.filter((node) => node.model === pod.model).length;
    const what = pod.profile === "gpu" ? "nvidia.com/gpu" : `nvidia.com/mig-${pod.profile}`;
    const next = this.next.get(kindOf(pod));
    pod.why = `0/${this.nodes.length} nodes are available: ${nodes} Insufficient ${what}, ${this.nodes.length - nodes} node(s) have another GPU. Remedy: ${
      next ? `wait for the end of ${next.namespace}/${next.name} on node ${next.gpu!.node.name}.` : `add a node with ${pod.model.product}.`
    }`;
  }

  private findNext(): void {
    this.next = new Map();
    for (const pod of this.live) {
      if (pod.state !== "running") continue;
      const other = this.next.get(kindOf(pod));
      if (!other || pod.ends < other.ends) this.next.set(kindOf(pod), pod);
    }
  }

  private account(): void {
    const held = this.heldShares(this.now);
    const pending = [...this.live].filter((pod) => pod.state === "pending").length;
    const waits = this.pods.slice(-400).filter((pod) => pod.started > this.now - hour).map((pod) => (pod.started - pod.created) / 1000);
    waits.sort((a, b) => a - b);
    const free = 1 - held.allocated - 0.004;
    const fragmented = Math.min(free * 0.45, 0.004 + pending * 0.0016);
    const stranded = Math.max(0, Math.min(free - fragmented, 0.012 + 0.01 * noise(91, this.now)));
    this.shares.push({
      at: this.now, ...held, fragmented, stranded, free: free - fragmented - stranded,
      pods_pending: pending, pods_running: this.live.size - pending,
      seconds_to_slice: waits[Math.floor(waits.length / 2)] ?? 0,
    });
    if (this.now % 240_000 === 0) {
      this.quotaUse.push({ at: this.now, used: new Map(teams.map((team) => [team.namespace, this.usedBy(team)])) });
    }
  }

  private heldShares(at: number): { allocated: number; used: number; idle: number } {
    let slots = 0, allocated = 0, used = 0, idle = 0;
    for (const node of this.nodes) slots += node.gpus.length * (node.model.slots || 1);
    for (const pod of this.live) {
      if (pod.state !== "running") continue;
      const size = pod.model.profiles.find((each) => each.name === pod.profile)?.size ?? 1;
      const busy = utilization(pod, at) ?? 0.5;
      allocated += size;
      used += size * busy;
      if (busy < 0.05) idle += size;
    }
    return { allocated: allocated / slots, used: used / slots, idle: idle / slots };
  }
}

export function gigabytes(pod: SimPod): number {
  return pod.profile === "gpu" ? 15 : Number(/\.(\d+)gb/.exec(pod.profile)?.[1] ?? 0);
}

const kindOf = (pod: SimPod): string => `${pod.model.prefix} ${pod.profile}`;

export function layoutOf(gpu: SimGpu): GpuLayout {
  const profiles: Record<string, number> = {};
  for (const each of gpu.instances) profiles[each.profile] = (profiles[each.profile] ?? 0) + 1;
  return { index: gpu.index, profiles };
}

/** The load of a pod's device; null if the GPU does not report it. */
export function utilization(pod: SimPod, at: number): number | null {
  if (!pod.model.measured) return null;
  const { key } = pod;
  if (pod.team.namespace === "notebooks" && key % 10 < 6) return Math.max(0, 0.012 + 0.01 * noise(key, at));
  const level = pod.name.startsWith("triton") || pod.name.startsWith("embed") ? 0.42 : 0.6 + (key % 30) / 100;
  return Math.max(0, Math.min(1, level + 0.1 * noise(key, at)));
}

// Pending pods grouped by what waits and why: one line for each job and cause.
import type { Pod } from "../api/types";
import { request } from "./format";
import { splitRemedy, stem } from "./pods";

export type CauseKind = "gated" | "quota" | "partitioning" | "nodes" | "new" | "other";

export interface Cause {
  kind: CauseKind;
  /** In a few words. */
  title: string;
  /** In the scheduler's words, without the remedy; may be empty. */
  reason: string;
  remedy: string;
  /** The same for pods that wait for the same reason, whatever the numbers and names in it. */
  key: string;
}

const titles: Record<CauseKind, string> = {
  gated: "Scheduling gates",
  quota: "Quota",
  partitioning: "Repartitioning",
  nodes: "No node fits",
  new: "Not evaluated yet",
  other: "Other",
};

/** Kubernetes' words about all nodes, before the reasons. */
const preamble = /^\d+\/\d+ nodes are available: /;

export function causeOf(pod: Pod): Cause {
  const { reason: whole, remedy } = splitRemedy(pod.why || pod.message);
  const reason = whole.replace(preamble, "");
  const kind = kindOf(pod, whole);
  return { kind, title: titles[kind], reason, remedy, key: `${kind} ${normalised(reason)}` };
}

function kindOf(pod: Pod, text: string): CauseKind {
  if (pod.reason === "SchedulingGated") return "gated";
  if (text === "") return "new";
  if (/\bquota\b/i.test(pod.reason) || /\b(quota|ElasticQuota)\b/.test(text)) return "quota";
  if (/being (re)?partitioned|(re)?partitioning GPUs|nos is creating/i.test(text)) return "partitioning";
  return preamble.test(text) ? "nodes" : "other";
}

/** True if no capacity would help it, as the server says: it is not the fault of a quota or of the cluster's use. */
export const isHeld = (pod: Pod): boolean => causeOf(pod).kind === "gated" || pod.estimate_by.startsWith("no node of the cluster");

/** Without numbers and without names of objects ("team/train-3"), which differ between pods of one job. */
function normalised(text: string): string {
  return text.replace(/\b[a-z0-9.-]+\/[a-z0-9.-]+\b/g, "/").replace(/\d+/g, "#").slice(0, 160);
}

/** GPUs and slices that it asks for: "2 × 1g.10gb". */
export function wantedOf(pod: Pick<Pod, "requests">): string {
  return Object.entries(pod.requests)
    .filter(([resource]) => resource.includes("/"))
    .map(([resource, amount]) => request(resource, amount))
    .join(", ");
}

export interface WaitGroup {
  key: string;
  namespace: string;
  /** The job's name; of pods without a job their name, or what their names have in common: "study-*". */
  name: string;
  /** "Job/train"; empty: pods without a job. */
  job: string;
  wanted: string;
  cause: Cause;
  /** The one that waits longest first. */
  pods: Pod[];
  /** When the first of them was created. */
  since: number;
  /** The first expected start; null: unknown. */
  estimate: number | null;
  estimateBy: string;
}

/** By job and cause, the longest wait first. */
export function groupWaiting(pods: readonly Pod[]): WaitGroup[] {
  const groups = new Map<string, WaitGroup>();
  for (const pod of pods) {
    if (pod.state !== "pending") continue;
    const maker = pod.job ?? pod.owner;
    const job = maker ? `${maker.kind}/${maker.name}` : "";
    const cause = causeOf(pod);
    const wanted = wantedOf(pod);
    const key = `${pod.namespace}/${job || stem(pod.name)}|${wanted}|${cause.key}`;
    const group = groups.get(key);
    if (group) {
      group.pods.push(pod);
      continue;
    }
    groups.set(key, {
      key, namespace: pod.namespace, name: maker?.name ?? pod.name, job, wanted, cause, pods: [pod], since: pod.created,
      estimate: null, estimateBy: "",
    });
  }
  return [...groups.values()].map(finished).sort((a, b) => a.since - b.since || (a.key < b.key ? -1 : 1));
}

function finished(group: WaitGroup): WaitGroup {
  const pods = [...group.pods].sort((a, b) => a.created - b.created || (a.uid < b.uid ? -1 : 1));
  const first = pods[0]!;
  const known = pods.filter((each) => each.estimate !== null).sort((a, b) => a.estimate! - b.estimate!)[0];
  // A gate does not say when it opens, whatever an older server believes.
  const estimate = group.cause.kind === "gated" ? null : (known?.estimate ?? null);
  const name = group.job === "" && pods.length > 1 ? `${stem(first.name)}-*` : group.name;
  return { ...group, name, pods, cause: causeOf(first), since: first.created, estimate, estimateBy: (known ?? first).estimate_by };
}

export interface CauseGroup {
  cause: Cause;
  wanted: string;
  pods: Pod[];
  since: number;
}

/** By cause and size alone, the longest wait first. */
export function groupCauses(pods: readonly Pod[]): CauseGroup[] {
  const groups = new Map<string, CauseGroup>();
  for (const each of groupWaiting(pods)) {
    const key = `${each.cause.key}|${each.wanted}`;
    const group = groups.get(key);
    if (group) group.pods.push(...each.pods);
    else groups.set(key, { cause: each.cause, wanted: each.wanted, pods: [...each.pods], since: each.since });
  }
  return [...groups.values()];
}

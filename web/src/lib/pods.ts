// Building blocks of lists of pods.
import { podStates, type Job, type Pod, type PodState } from "../api/types";
import { count, duration, request } from "./format";

/** The reason and, separately, the remedy: "... Remedy: ...". */
export function splitRemedy(why: string): { reason: string; remedy: string } {
  const at = why.search(/\bRemedy:\s*/i);
  if (at < 0) return { reason: why.trim(), remedy: "" };
  return { reason: why.slice(0, at).trim(), remedy: why.slice(at).replace(/^Remedy:\s*/i, "").trim() };
}

/** "train-7" of "train-7-x2b4q": the name without its last part, if one is left. */
export function stem(name: string): string {
  const at = name.lastIndexOf("-");
  return at > 0 ? name.slice(0, at) : name;
}

/** Replaces changed pods in place. Returns whether the list itself may have changed. */
export function mergePods(pods: Pod[], changed: Pod[], removed: string[]): { pods: Pod[]; other: boolean } {
  const byUid = new Map(changed.map((pod) => [pod.uid, pod]));
  const gone = new Set(removed);
  let other = false;
  const merged = pods.map((pod) => {
    const next = byUid.get(pod.uid);
    byUid.delete(pod.uid);
    if (gone.has(pod.uid)) other = true;
    if (!next) return pod;
    if (next.state !== pod.state) other = true;
    return { ...pod, ...next };
  });
  return { pods: merged, other: other || byUid.size > 0 };
}

export interface Group {
  key: string;
  kind: string;
  title: string;
  summary: string;
  pods: Pod[];
  /** Only for a job without pods. */
  state?: string;
  /** Reason why it is pending, or has failed. */
  why?: string;
  /** Filter for a list of its pods alone; undefined: pods without a job. */
  only?: { ns: string; job: string };
}

const mostWaiting = 200;

/**
 * Groups pods by their top owner; pending jobs without pods first, pods without a job last. The record of a job
 * counts all its pods. `shows`: filter for jobs without pods.
 */
export function groupPods(pods: Pod[], byJob: boolean, jobs: Job[] = [], now = 0, shows: (job: Job) => boolean = () => true): Group[] {
  if (!byJob) return [{ key: "all", kind: "", title: "", summary: "", pods }];
  const told = new Map(jobs.map((job) => [`${job.namespace}/${job.type}/${job.name}`, job]));
  const groups = new Map<string, Pod[]>();
  for (const pod of pods) {
    const maker = pod.job ?? pod.owner;
    const key = maker ? `${pod.namespace}/${maker.kind}/${maker.name}` : "";
    const group = groups.get(key);
    if (group) group.push(pod);
    else groups.set(key, [pod]);
  }
  const alone = groups.get("");
  groups.delete("");
  const made = [...groups].map(([key, members]): Group => {
    const [ns = "", kind = "", name = ""] = key.split("/");
    const job = told.get(key);
    return {
      key, kind, title: `${ns}/${name}`, summary: summaryOf(members, job, now), why: job?.why, pods: members,
      only: { ns, job: `${kind}/${name}` },
    };
  });
  const waiting = jobs
    .filter((job) => !job.finished && Object.keys(job.pods ?? {}).length === 0)
    .filter((job) => !groups.has(`${job.namespace}/${job.type}/${job.name}`) && shows(job))
    .slice(0, mostWaiting)
    .map((job): Group => ({
      key: job.id, kind: job.type, title: `${job.namespace}/${job.name}`, summary: summaryOf([], job, now), pods: [],
      state: job.state, why: job.why,
    }));
  if (alone) made.push({ key: "alone", kind: "", title: "Pods of their own", summary: statesText(countStates(alone)), pods: alone });
  return [...waiting, ...made];
}

/** True if the page's filters accept a job without pods. */
export function isWanted(job: Job, filter: { state: string; job: string; q: string }): boolean {
  if (filter.state && filter.state !== "pending") return false;
  if (filter.job && filter.job !== `${job.type}/${job.name}`) return false;
  const text = filter.q.toLowerCase();
  return [job.name, job.namespace, job.queue ?? "", ...Object.keys(job.requests ?? {})].some((each) => each.toLowerCase().includes(text));
}

function countStates(pods: Pod[]): Partial<Record<PodState, number>> {
  const counts: Partial<Record<PodState, number>> = {};
  for (const pod of pods) counts[pod.state] = (counts[pod.state] ?? 0) + 1;
  return counts;
}

const statesText = (counts: Partial<Record<PodState, number>>): string =>
  podStates.filter((state) => (counts[state] ?? 0) > 0).map((state) => `${counts[state]} ${state}`).join(", ");

function summaryOf(pods: Pod[], job: Job | undefined, now: number): string {
  const parts = [statesText(job?.pods ?? countStates(pods))];
  if (job?.wanted) parts.push(`${count(job.completions ?? 0)} of ${count(job.wanted)} done`);
  const wanted = pods.length === 0 ? Object.entries(job?.requests ?? {}) : [];
  if (wanted.length > 0) parts.push(`asks for ${wanted.map(([resource, amount]) => request(resource, amount)).join(", ")}`);
  if (job?.started) parts.push(`${job.finished ? "ran" : "runs"} ${duration(((job.finished || now) - job.started) / 1000)}`);
  if (job?.queue) parts.push(`queue ${job.queue}${job.admission?.cluster_queue ? ` of ${job.admission.cluster_queue}` : ""}`);
  return parts.filter(Boolean).join(" · ");
}

/** MiB in all its slices; null if not measured. */
export function memoryOf(pod: Pod): number | null {
  const known = pod.slices.map((each) => each.memory_used).filter((each): each is number => each !== null);
  return known.length > 0 ? known.reduce((sum, each) => sum + each, 0) : null;
}

// A pod's way from its creation to its end: what happened when, and how long each part took.
import type { ClusterEvent, Decision, PodDetail } from "../api/types";
import { changesOf, difference, doneAt, madeAt } from "./layouts";
import { isHeld } from "./waiting";

export type StepKind = "created" | "gated" | "why" | "nominated" | "slice" | "bound" | "running" | "ended" | "evicted" | "other";

export interface Step {
  at: number;
  kind: StepKind;
  title: string;
  detail: string;
  /** Occurrences; `at` is the time of the latest one. */
  count: number;
  warning: boolean;
  /** The decision that a link opens. */
  decision: string;
}

/** The order of steps of one moment. */
const order: readonly StepKind[] = ["created", "gated", "why", "nominated", "slice", "bound", "other", "running", "evicted", "ended"];

/** Kubernetes' and nos's reasons of Events. */
const reasons: Record<string, { kind: StepKind; title: string }> = {
  SchedulingGated: { kind: "gated", title: "Waits for scheduling gates" },
  FailedScheduling: { kind: "why", title: "Not schedulable" },
  SliceNotPlanned: { kind: "why", title: "No slice planned" },
  SliceReservationExpired: { kind: "why", title: "Reservation expired" },
  SlicePlanned: { kind: "nominated", title: "Slice planned" },
  Nominated: { kind: "nominated", title: "Nominated" },
  NodesComing: { kind: "nominated", title: "Nodes requested" },
  MadeRoom: { kind: "nominated", title: "Other pods moved for it" },
  Scheduled: { kind: "bound", title: "Bound" },
  Started: { kind: "running", title: "Running" },
  Preempted: { kind: "evicted", title: "Evicted" },
  Evicted: { kind: "evicted", title: "Evicted" },
  MovedAway: { kind: "evicted", title: "Moved" },
};

const step = (kind: StepKind, at: number, title: string, detail = "", more: Partial<Step> = {}): Step =>
  ({ kind, at, title, detail, count: 1, warning: false, decision: "", ...more });

function ofEvent(event: ClusterEvent): Step {
  const { kind, title } = reasons[event.reason ?? ""] ?? { kind: "other" as const, title: event.reason || "Event" };
  return step(kind, event.at, title, event.message ?? "", { count: event.count ?? 1, warning: event.type === "Warning" });
}

const about = (pod: PodDetail, all: readonly { namespace: string; name: string }[]): boolean =>
  all.some((each) => each.namespace === pod.namespace && each.name === pod.name);

function ofDecision(pod: PodDetail, decision: Decision): Step[] {
  const link = { decision: decision.id };
  if (about(pod, decision.victims)) {
    return [step("evicted", madeAt(decision), decision.type === "move" ? "Moved" : "Evicted", decision.why || decision.summary, { ...link, warning: true })];
  }
  if (decision.nodes.length === 0) return [step("nominated", madeAt(decision), decision.summary, decision.why, link)];
  const where = decision.nodes.map((each) => each.node).join(", ");
  const made = decision.story.created;
  if (decision.state === "failed") return [step("why", madeAt(decision), "Repartitioning failed", `${where}: ${decision.why}`, { ...link, warning: true })];
  const gone = changesOf(decision).flatMap((change) => difference(change.before, change.after)).filter((each) => each.change < 0).length;
  const planned = step("nominated", madeAt(decision), "Repartitioning decided", `${made || "a layout"} on ${where}${gone > 0 ? ", in place of free instances" : ""}`, link);
  return decision.took_ms === undefined ? [planned] : [planned, step("slice", doneAt(decision), "Slice created", `${made || "the layout"} on ${where}`, link)];
}

/** Milliseconds within which an Event and the record of the pod report the same. */
const near = 15_000;

/** Oldest first. `decisions`: those that name the pod, as far as they are known. */
export function timelineOf(pod: PodDetail, decisions: readonly Decision[]): Step[] {
  const facts: Step[] = [step("created", pod.created, "Created", pod.job ?? pod.owner ? `by ${(pod.job ?? pod.owner)!.kind} ${(pod.job ?? pod.owner)!.name}` : "")];
  if (pod.scheduled) facts.push(step("bound", pod.scheduled, "Bound", pod.node ? `to ${pod.node}` : ""));
  if (pod.started) facts.push(step("running", pod.started, "Running", ""));
  if (pod.finished) facts.push(step("ended", pod.finished, pod.state === "failed" ? "Failed" : "Ended", pod.message, { warning: pod.state === "failed" }));
  const known = decisions.filter((each) => about(pod, each.pods) || about(pod, each.victims)).flatMap((each) => ofDecision(pod, each));
  const events = pod.events.filter((each) => each.at > 0 && each.reason !== "Created").map(ofEvent)
    .filter((each) => ![...facts, ...known].some((fact) => fact.kind === each.kind && each.kind !== "why" && Math.abs(fact.at - each.at) <= near));
  const steps = [...facts, ...known, ...events];
  if (pod.state === "pending" && pod.reason === "SchedulingGated" && !steps.some((each) => each.kind === "gated")) {
    steps.push(step("gated", pod.created, "Waits for scheduling gates"));
  }
  // Kubernetes counts whole seconds, decisions milliseconds.
  const second = (at: number): number => Math.floor(at / 1000);
  return steps.sort((a, b) => second(a.at) - second(b.at) || order.indexOf(a.kind) - order.indexOf(b.kind) || a.at - b.at);
}

export interface Phase {
  id: "waiting" | "repartitioning" | "starting" | "running";
  label: string;
  ms: number;
  /** It goes on. */
  open: boolean;
}

/** Parts of its life without gaps: what it waited for, and how long it ran. */
export function phasesOf(pod: PodDetail, decisions: readonly Decision[], now: number): Phase[] {
  const end = pod.finished || now;
  const bound = pod.scheduled || pod.started;
  const until = bound || end;
  const begun = pod.started || end;
  const made = decisions
    .filter((each) => about(pod, each.pods) && each.nodes.length > 0 && each.state !== "failed" && each.took_ms !== undefined)
    .map((each) => ({ from: madeAt(each), to: Math.min(doneAt(each), begun) }))
    .filter((each) => each.from >= pod.created && each.to > each.from);
  const last = made.sort((a, b) => b.to - a.to)[0];
  // A slice may be created before the pod is bound, or for a pod that is bound already.
  const within = (from: number, to: number): number => (last ? Math.max(0, Math.min(last.to, to) - Math.max(last.from, from)) : 0);
  const repartitioning = within(pod.created, begun);
  const ended = pod.finished > 0;
  const all: Phase[] = [
    { id: "waiting", label: isHeld(pod) && !bound ? "held" : "waiting", ms: until - pod.created - within(pod.created, until), open: !bound && !ended },
    { id: "repartitioning", label: "repartitioning", ms: repartitioning, open: false },
    { id: "starting", label: "starting", ms: bound ? begun - bound - within(bound, begun) : 0, open: bound > 0 && !pod.started && !ended },
    { id: "running", label: "running", ms: pod.started ? end - pod.started : 0, open: pod.started > 0 && !ended },
  ];
  return all.map((each) => ({ ...each, ms: Math.max(0, each.ms) })).filter((each) => each.ms > 0 || each.open);
}

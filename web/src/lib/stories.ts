// Decisions as stories: those that belong together as one sentence, in the order of time.
import type { Decision, PodName } from "../api/types";
import { changesOf, difference, madeAt } from "./layouts";
import { counted, duration } from "./format";
import { stem } from "./pods";

/** Plans within this time are one batch. */
const batch = 60_000;

export interface Story {
  /** The last of its decisions. */
  at: number;
  /** The decision that a link opens. */
  id: string;
  type: Decision["type"];
  /** Who or what it is about; may be empty. */
  subject: string;
  text: string;
  failed: boolean;
  decisions: number;
}

/** "team/train (3 pods)", "team/web-1", "team/a and 2 more". */
export function podsText(pods: readonly PodName[]): string {
  const unique = [...new Map(pods.map((pod) => [`${pod.namespace}/${pod.name}`, pod])).values()];
  if (unique.length === 0) return "";
  if (unique.length === 1) return `${unique[0]!.namespace}/${unique[0]!.name}`;
  const jobs = new Map<string, PodName[]>();
  for (const pod of unique) {
    const job = `${pod.namespace}/${stem(pod.name)}`;
    jobs.set(job, [...(jobs.get(job) ?? []), pod]);
  }
  const parts = [...jobs].sort((a, b) => b[1].length - a[1].length);
  const shown = parts.slice(0, 2).map(([job, [first, ...others]]) =>
    others.length > 0 ? `${job} (${counted(others.length + 1, "pod")})` : `${first!.namespace}/${first!.name}`,
  );
  const rest = parts.slice(2).reduce((sum, [, members]) => sum + members.length, 0);
  return rest > 0 ? `${shown.join(", ")} and ${counted(rest, "more pod")}` : shown.join(", ");
}

const listed = (all: readonly string[], most = 2): string => {
  const unique = [...new Set(all)].filter(Boolean);
  if (unique.length <= most) return unique.join(" and ");
  return `${unique.slice(0, most).join(", ")} and ${unique.length - most} more`;
};

/** Slices made: "5 × 2g.20gb, 3g.40gb", "whole GPU". */
export function madeText(decisions: readonly Decision[]): string {
  const made = new Map<string, number>();
  for (const change of decisions.flatMap(changesOf)) {
    for (const { profile, change: many } of difference(change.before, change.after)) {
      if (many > 0) made.set(profile, (made.get(profile) ?? 0) + many);
    }
  }
  const named = ([profile, many]: [string, number]): string => {
    const name = profile === "gpu" ? "whole GPU" : profile === "shared" ? "time slice" : profile;
    return many === 1 ? name : `${many} × ${name}`;
  };
  return [...made].sort((a, b) => b[1] - a[1]).slice(0, 3).map(named).join(", ");
}

const nodesOf = (decisions: readonly Decision[]): string[] => decisions.flatMap((each) => [...each.nodes.map((node) => node.node), each.node ?? ""]);

/** A decision that a later one has ended is not planned any more. */
export function settled(decisions: readonly Decision[]): Decision[] {
  // By node: the latest decision of a kind about it.
  const latest = new Map<string, Decision>();
  for (const each of decisions) {
    for (const node of nodesOf([each])) {
      const key = `${each.type}/${node}`;
      if (node && madeAt(each) > madeAt(latest.get(key) ?? { at: -1 })) latest.set(key, each);
    }
  }
  return decisions.map((each) => {
    if (each.state !== "planned") return each;
    const later = nodesOf([each]).map((node) => latest.get(`${each.type}/${node}`)).find((other) => other && madeAt(other) > madeAt(each));
    if (!later) return each;
    // Draining ends with the removal of the node, or when it is kept; a plan is replaced by the next one.
    return { ...each, state: each.type === "scale" && later.state !== "planned" ? later.state : "superseded" };
  });
}

/** Newest first. */
export function storiesOf(decisions: readonly Decision[]): Story[] {
  const sorted = settled(decisions).sort((a, b) => madeAt(b) - madeAt(a));
  const groups: Decision[][] = [];
  const open = new Map<string, Decision[]>();
  for (const each of sorted) {
    const key = keyOf(each);
    const group = open.get(key);
    if (group && madeAt(group.at(-1)!) - madeAt(each) <= batch) {
      group.push(each);
      continue;
    }
    const next = [each];
    open.set(key, next);
    groups.push(next);
  }
  return groups.map(storyOf);
}

/** Decisions of one key may be one story. */
function keyOf(decision: Decision): string {
  const { type, state, pods, victims } = decision;
  const about = type === "plan" ? pods : victims;
  const first = about[0];
  const who = first ? `${first.namespace}/${type === "plan" ? stem(first.name) : ""}` : type === "scale" ? decision.summary : "";
  return [type, state === "failed", who].join("|");
}

function storyOf(group: Decision[]): Story {
  const newest = group[0]!;
  const story = { at: madeAt(newest), id: newest.id, type: newest.type, failed: newest.state === "failed", decisions: group.length };
  if (newest.type === "scale" || (newest.nodes.length === 0 && newest.victims.length === 0)) {
    const times = group.length > 1 ? ` (${group.length} times)` : "";
    return { ...story, subject: "", text: `${sentence(newest.summary)}${times}${newest.why ? `: ${newest.why}` : ""}` };
  }
  if (newest.victims.length > 0) return { ...story, ...eviction(group) };
  return { ...story, ...plan(group) };
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

function plan(group: Decision[]): Pick<Story, "subject" | "text"> {
  const made = madeText(group);
  const where = listed(nodesOf(group));
  const subject = podsText(group.flatMap((each) => each.pods));
  const took = Math.max(0, ...group.map((each) => each.took_ms ?? 0));
  const { state, why } = group[0]!;
  if (state === "failed") return { subject: "", text: `Repartitioning failed on ${where}${subject ? ` for ${subject}` : ""}${why ? `: ${why}` : ""}` };
  const within = took > 0 ? ` in ${duration(Math.max(1, Math.round(took / 1000)))}` : "";
  if (subject) return { subject, text: `got ${made || "slices"} on ${where}${within}` };
  return { subject: "", text: `${state === "planned" ? "Repartitioning" : "Repartitioned"} ${where}${made ? `: +${made}` : ""}${within}` };
}

function eviction(group: Decision[]): Pick<Story, "subject" | "text"> {
  const where = listed(nodesOf(group));
  const why = group[0]!.why;
  const verb = group[0]!.type === "move" ? "moved" : "evicted";
  const forWhom = podsText(group.flatMap((each) => each.pods));
  const purpose = group[0]!.type === "reclaim" && forWhom ? ", within the guarantee of its elastic quota" : "";
  return {
    subject: podsText(group.flatMap((each) => each.victims)),
    text: `${verb}${where ? ` from ${where}` : ""}${forWhom ? ` for ${forWhom}` : ""}${purpose}${why ? `: ${why}` : ""}`,
  };
}

/** One decision in a sentence. */
export function titleOf(decision: Decision): string {
  const { subject, text } = storyOf([{ ...decision, why: "" }]);
  return subject ? `${subject} ${text}` : text;
}

/** Why it was made: as reported, else from what it did. */
export function reasonOf(decision: Decision): string {
  if (decision.why) return decision.why;
  const made = madeText([decision]);
  const pods = podsText(decision.pods);
  if (decision.type !== "plan") return "the reason was not reported";
  if (pods) return `${pods} waited${made ? ` for ${made}` : ""}, and no free slice fitted`;
  return made ? `pods waited for ${made}, and no free slice fitted` : "pods waited for slices that the GPUs did not offer";
}

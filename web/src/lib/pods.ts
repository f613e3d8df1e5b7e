// What lists of pods are made of.
import { podStates, type Pod } from "../api/types";

/** The reason and, apart from it, what would help: "... Remedy: ...". */
export function splitRemedy(why: string): { reason: string; remedy: string } {
  const at = why.search(/\bRemedy:\s*/i);
  if (at < 0) return { reason: why.trim(), remedy: "" };
  return { reason: why.slice(0, at).trim(), remedy: why.slice(at).replace(/^Remedy:\s*/i, "").trim() };
}

/** Pods that changed, in place. Says whether the list itself may be another one by now. */
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
}

/** By whatever made the pods; pods of their own last. */
export function groupPods(pods: Pod[], byJob: boolean): Group[] {
  if (!byJob) return [{ key: "all", kind: "", title: "", summary: "", pods }];
  const groups = new Map<string, Pod[]>();
  for (const pod of pods) {
    const key = pod.owner ? `${pod.owner.kind} ${pod.namespace}/${pod.owner.name}` : "";
    const group = groups.get(key);
    if (group) group.push(pod);
    else groups.set(key, [pod]);
  }
  const alone = groups.get("");
  groups.delete("");
  if (alone) groups.set("", alone);
  return [...groups].map(([key, members]) => {
    const [kind = "", title = ""] = key.split(" ", 2);
    const states = podStates
      .map((state) => ({ state, many: members.filter((pod) => pod.state === state).length }))
      .filter(({ many }) => many > 0);
    return {
      key: key || "alone",
      kind: kind || "",
      title: title || "Pods of their own",
      summary: states.map(({ state, many }) => `${many} ${state}`).join(", "),
      pods: members,
    };
  });
}

/** MiB in all its slices; null where none is measured. */
export function memoryOf(pod: Pod): number | null {
  const known = pod.slices.map((each) => each.memory_used).filter((each): each is number => each !== null);
  return known.length > 0 ? known.reduce((sum, each) => sum + each, 0) : null;
}

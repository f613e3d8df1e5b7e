// The past of a time range, loaded once: the layout of every node at any moment of it.
import { useEffect, useMemo, useRef, useState } from "react";
import { api } from "../api/client";
import type { Gpus, HistoryEvent, Holder, LayoutEvent, Node, Quota } from "../api/types";
import { useCluster, useResource } from "../lib/data";
import { compareNames } from "../lib/names";
import type { TimeRange } from "../lib/range";

const pageSize = 2000;
/** Limit of events kept here: beyond it each moment is requested. */
export const mostEvents = 20_000;

export interface Past {
  range: TimeRange;
  /** Layouts, nodes and their removals, decisions; oldest first. */
  events: HistoryEvent[];
  /** The list is complete. */
  complete: boolean;
}

/** Loads pages until the first event. Gives up at once if the first page shows that there are more than the limit. */
export async function loadPast(
  page: (after: string | undefined) => Promise<{ events: HistoryEvent[]; next: string | null }>,
  range: TimeRange,
): Promise<Past> {
  const events: HistoryEvent[] = [];
  let next: string | null | undefined;
  while (next !== null && events.length < mostEvents) {
    const answer = await page(next);
    events.push(...answer.events);
    next = answer.next;
    if (next !== null && expected(events, range) > 2 * mostEvents) break;
  }
  return { range, events: events.sort((a, b) => a.at - b.at), complete: next === null };
}

/** The number of events of the whole range, if there were always as many as in the loaded part, its end. */
function expected(events: readonly HistoryEvent[], { from, to }: TimeRange): number {
  const first = events.reduce((least, each) => Math.min(least, each.at), to);
  return first > from ? (events.length * (to - from)) / Math.max(1, to - first) : events.length;
}

/** The quota of each namespace's pods; quotas of several namespaces take precedence. */
export function quotasByNamespace(quotas: Quota[]): Map<string, string> {
  const byNamespace = new Map<string, string>();
  const composite = (quota: Quota): number => Number(quota.type === "CompositeElasticQuota");
  for (const quota of [...quotas].sort((a, b) => composite(a) - composite(b))) {
    for (const namespace of quota.namespaces) byNamespace.set(namespace, `${quota.namespace}/${quota.name}`);
  }
  return byNamespace;
}

/** A node from a moment on; undefined after its removal. */
interface From {
  at: number;
  node: Node | undefined;
}

/** The latest reports of its operator and its agent. */
interface Told {
  ready: boolean;
  removed: boolean;
  layout: Node | undefined;
}

/** Frames without readings, computed here without a request. */
export class Replay {
  private readonly past = new Map<string, From[]>();

  /** `before`: the map at the start of the range. */
  constructor(before: Gpus, readonly range: TimeRange, events: HistoryEvent[], quotas: Map<string, string>) {
    const told = new Map<string, Told>();
    const put = (name: string, at: number, now: Told): void => {
      told.set(name, now);
      const node = now.removed || !now.layout ? undefined : { ...now.layout, ready: now.ready };
      const states = this.past.get(name);
      if (states) states.push({ at, node });
      else this.past.set(name, [{ at, node }]);
    };
    // If the operator reports nodes, a node exists only after its first report.
    const gone = events.some(({ kind }) => kind === "node");
    for (const node of before.nodes) put(node.node, 0, { ready: node.ready, removed: false, layout: { ...node, fresh_at: range.to } });
    for (const event of events) {
      const { at, id, node: of, ready } = event as HistoryEvent & { id?: string; node?: string; ready?: boolean };
      const name = (event.kind === "removed" ? id : of) ?? "";
      const was = told.get(name) ?? { ready: true, removed: gone, layout: undefined };
      if (event.kind === "removed") put(name, at, { ...was, removed: true, layout: undefined });
      const other = was.removed || was.ready !== (ready ?? true);
      if (event.kind === "node" && other) put(name, at, { ...was, removed: false, ready: ready ?? true });
      // An agent may outlive its node's removal: a removed node returns only when it is reported
      // again.
      if (event.kind === "layout") put(name, at, { ...was, layout: nodeOf(event as unknown as LayoutEvent, range.to, quotas) });
    }
    this.past = new Map([...this.past].sort(([a], [b]) => compareNames(a, b)));
  }

  frame(at: number): Gpus {
    const nodes: Node[] = [];
    for (const states of this.past.values()) {
      const node = lastBefore(states, at);
      if (node) nodes.push(node);
    }
    return { at, fresh_at: at, nodes };
  }
}

function lastBefore(states: From[], at: number): Node | undefined {
  let [low, high] = [0, states.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (states[middle]!.at <= at) low = middle + 1;
    else high = middle;
  }
  return states[low - 1]?.node;
}

function nodeOf(layout: LayoutEvent, fresh: number, quotas: Map<string, string>): Node {
  const own = (holders: Holder[] | undefined): Holder[] =>
    (holders ?? []).map((holder) => ({ ...holder, quota: quotas.get(holder.namespace) ?? "" }));
  return {
    node: layout.node, mode: layout.mode, fresh_at: fresh, ready: true,
    gpus: layout.gpus.map((gpu) => ({
      ...gpu, holders: own(gpu.holders),
      instances: gpu.instances.map((each) => ({ ...each, holders: own(each.holders) })),
    })),
  };
}

/** A range that stays fixed as time passes, so that it is not loaded again and again. */
function useAnchor(range: TimeRange, at: number | undefined): TimeRange {
  const anchor = useRef(range);
  const held = anchor.current;
  const span = range.to - range.from;
  const other = Math.abs(held.to - held.from - span) > 1000;
  const outside = at === undefined ? range.to - held.to > span / 60 : at < held.from || at > held.to;
  if (other || outside || range.to < held.to) anchor.current = range;
  return anchor.current;
}

export interface PastOf {
  /** Decisions of the range, and all its events once they are wanted. */
  past: Past | undefined;
  /** Undefined: moments must be requested one by one. */
  replay: Replay | undefined;
}

/**
 * The events of the range, and its frames while a moment of it is shown. `wanted`: the user reaches for the time bar;
 * before, only decisions are loaded, because layouts have megabytes.
 */
export function usePast(range: TimeRange, at: number | undefined, namespace: string, wanted: boolean): PastOf {
  const { name, session } = useCluster();
  const held = useAnchor(range, at);
  const [from, to] = [Math.round(held.from), Math.round(held.to)];
  const load = (kind: string[], signal: AbortSignal): Promise<Past> =>
    loadPast((after) => api.history(name, { from, to, limit: pageSize, kind, what: "node", brief: "true", after }, signal), held);
  const marks = useResource(`marks|${name}|${from}|${to}`, (signal) => load(["decision"], signal));
  const past = useResource(wanted || at !== undefined ? `past|${name}|${from}|${to}` : "", (signal) =>
    load(["layout", "node", "removed", "decision"], signal),
  );
  const inside = at === undefined || (at >= held.from && at <= held.to);
  const usable = inside && past.data?.complete && past.data.range === held && session.can.all_namespaces && !namespace;
  const before = useResource(at !== undefined && usable ? `before|${name}|${from}` : "", async (signal) => {
    const [gpus, { quotas }] = await Promise.all([api.gpus(name, from, undefined, signal), api.quotas(name, from, signal)]);
    return { gpus, quotas: quotasByNamespace(quotas) };
  });
  const replay = useMemo(
    () => (usable && past.data && before.data ? new Replay(before.data.gpus, held, past.data.events, before.data.quotas) : undefined),
    [usable, past.data, before.data, held],
  );
  return { past: past.data ?? marks.data, replay };
}

/** The moment, after it has not changed for a while; undefined at once. */
export function useRested(at: number | undefined, wait: number): number | undefined {
  const [rested, setRested] = useState(at);
  useEffect(() => {
    const timer = setTimeout(() => setRested(at), at === undefined ? 0 : wait);
    return () => clearTimeout(timer);
  }, [at, wait]);
  return at === undefined ? undefined : rested;
}

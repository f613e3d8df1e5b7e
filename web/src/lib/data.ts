// Data for components: loaded once, kept during a reload, retried after a failure.
import { createContext, useCallback, useContext, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { api, ApiError } from "../api/client";
import type { Live } from "../api/live";
import type { Cost, Gpus, Node, Overview, Pod, Session, Stories } from "../api/types";
import { backoff } from "../api/sse";
import { hasCosts } from "./costs";
import { compareNames } from "./names";
import { longestAuto, rangeOf, type TimeRange } from "./range";
import { useRoute } from "./route";

export interface Cluster {
  session: Session;
  name: string;
  live: Live;
}

export const ClusterContext = createContext<Cluster | null>(null);

export function useCluster(): Cluster {
  const cluster = useContext(ClusterContext);
  if (!cluster) throw new Error("useCluster is used outside ClusterContext");
  return cluster;
}

/** The overview of the cluster, kept current for all pages: it also has the age of the data. */
export const OverviewContext = createContext<Resource<Overview> | null>(null);

export function useOverview(): Resource<Overview> {
  const overview = useContext(OverviewContext);
  if (!overview) throw new Error("useOverview is used outside OverviewContext");
  return overview;
}

/** For the component that provides OverviewContext. */
export function useLoadedOverview({ name, live }: Cluster): Resource<Overview> {
  const overview = useResource(`overview|${name}`, async (signal) => {
    const answer = await api.overview(name, signal);
    live.sawDataOf(answer.fresh_at);
    return answer;
  });
  const { set, reload } = overview;
  useEffect(() => live.on("overview", (data) => set(() => data as Overview)), [live, set]);
  useEffect(() => live.on("reset", reload), [live, reload]);
  return overview;
}

export interface Resource<T> {
  data: T | undefined;
  error: ApiError | undefined;
  loading: boolean;
  reload: () => void;
  set: (change: (data: T) => T) => void;
}

/**
 * Loads whenever `key` changes; an empty key loads nothing. The last answer stays until the next one
 * arrives. Transient errors (no connection, too busy) are retried.
 */
export function useResource<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Resource<T> {
  const [state, setState] = useState<{ data?: T; error?: ApiError; loading: boolean }>({ loading: key !== "" });
  const [round, setRound] = useState(0);
  const loader = useRef(load);
  loader.current = load;
  const failures = useRef(0);

  useEffect(() => {
    if (key === "") {
      setState({ loading: false });
      return;
    }
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    setState((last) => ({ ...last, loading: true }));
    loader.current(abort.signal).then(
      (data) => {
        if (abort.signal.aborted) return;
        failures.current = 0;
        setState({ data, loading: false });
      },
      (cause: unknown) => {
        if (abort.signal.aborted) return;
        const error = cause instanceof ApiError ? cause : new ApiError(0, String(cause));
        setState((last) => ({ ...last, error, loading: false }));
        if (error.status === 0 || error.status === 429 || error.status >= 500) {
          timer = setTimeout(() => setRound((last) => last + 1), backoff(failures.current++, Math.random()));
        }
      },
    );
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key, round]);

  const reload = useCallback(() => setRound((last) => last + 1), []);
  const set = useCallback(
    (change: (data: T) => T) =>
      setState((last) => (last.data === undefined ? last : { ...last, data: change(last.data) })),
    [],
  );
  return { data: state.data, error: state.error, loading: state.loading, reload, set };
}

/** Calls the latest `listener` for each event of that name. */
export function useEvent(event: string, listener: (data: unknown) => void): void {
  const { live } = useCluster();
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => live.on(event, (data) => latest.current(data)), [live, event]);
}

const beats = new Set<() => void>();
let beatsSoFar = 0;
const samples = new WeakMap<Live, { beat: number; at: number }>();

/**
 * The server's clock at the latest beat. All of a rendering sees the same time: in a fast sandbox the clock itself goes
 * on from one call to the next, and a value that never settles is rendered for ever.
 */
function timeOfBeat(live: Live): number {
  const known = samples.get(live);
  if (known?.beat === beatsSoFar) return known.at;
  const at = live.now();
  samples.set(live, { beat: beatsSoFar, at });
  return at;
}

let beat: ReturnType<typeof setInterval> | undefined;

function onBeat(listener: () => void): () => void {
  beats.add(listener);
  beat ??= setInterval(() => {
    beatsSoFar++;
    // A hidden page sends no requests.
    if (!document.hidden) beats.forEach((each) => each());
  }, 1000);
  return () => {
    beats.delete(listener);
    if (beats.size > 0) return;
    clearInterval(beat);
    beat = undefined;
  };
}

/** The server's clock in whole steps; the component renders again after each step. */
export function useNow(step = 1000): number {
  const { live } = useCluster();
  const ticks = useSyncExternalStore(onBeat, () => Math.floor(timeOfBeat(live) / step));
  return ticks * step;
}

const podsOfPage = 1000;
const mostPages = 5;

/** All pods in a state or of a namespace, up to some thousands. */
export async function loadPods(cluster: string, those: { state?: string; namespace?: string }, signal: AbortSignal): Promise<Pod[]> {
  const pods: Pod[] = [];
  let after: string | undefined;
  for (let page = 0; page < mostPages; page++) {
    const answer = await api.workloads(cluster, { ...those, limit: podsOfPage, after }, signal);
    pods.push(...answer.pods);
    if (answer.next === null) break;
    after = answer.next;
  }
  return pods;
}

export const loadPending = (cluster: string, signal: AbortSignal): Promise<Pod[]> => loadPods(cluster, { state: "pending" }, signal);

/** A number that grows every `step` real milliseconds: for repeated requests, whatever the server's clock does. */
export function useBeat(step: number): number {
  return useSyncExternalStore(onBeat, () => Math.floor((beatsSoFar * 1000) / step));
}

const hour = 3_600_000;

/** What the GPUs cost in the last hour, by namespace; no data without prices. */
export function useHourCost(): Resource<Cost> {
  const { name, live } = useCluster();
  const beat = useBeat(30_000);
  const last = useRef<Cost>(undefined);
  const costs = useResource(`hour-cost|${name}|${beat}`, async (signal) => {
    // Prices come with a restart of the server.
    if (last.current?.configured === false) return last.current;
    const now = Math.round(live.now());
    return (last.current = await api.cost(name, { from: now - hour, to: now, by: "namespace" }, signal));
  });
  useEvent("reset", () => {
    last.current = undefined;
    costs.reload();
  });
  return { ...costs, data: hasCosts(costs.data) ? costs.data : undefined };
}

/** What was decided in the last hour; loaded again after a decision, at most every two seconds, and every half minute. */
export function useStories(): Resource<Stories> {
  const { name, live } = useCluster();
  const beat = useBeat(2_000);
  const slow = useBeat(30_000);
  const made = useRef(0);
  const [round, setRound] = useState(0);
  useEvent("decision", () => {
    made.current++;
  });
  useEffect(() => setRound(made.current), [beat]);
  const stories = useResource(`stories|${name}|${round}|${slow}`, (signal) =>
    api.stories(name, { since: Math.max(0, Math.round(live.now() - hour)), limit: 1000 }, signal),
  );
  useEvent("reset", stories.reload);
  return stories;
}

/** The time of the cluster's first data, 0 if it is older than the longest automatic range; undefined: not known yet. */
export const SinceContext = createContext<number | undefined>(0);

/** For the component that provides SinceContext. */
export function useFirstData({ name, live, session }: Cluster): number | undefined {
  const wanted = session.can.all_namespaces;
  const first = useResource(wanted ? `since|${name}` : "", async (signal) => {
    const to = Math.ceil(live.now() / 60_000) * 60_000;
    const query = { metric: "allocated", subject: ["cluster"], from: to - longestAuto, to, points: 360 };
    const [series] = (await api.series(name, query, signal)).series;
    const known = series?.mean.findIndex((each) => each !== null) ?? -1;
    const at = known < 0 ? to : (series?.at[known] ?? 0);
    return at - query.from > 180_000 ? at : 0;
  });
  return wanted && !first.error ? first.data : 0;
}

/** The time range of the address; moving ranges advance with the resolution of their charts. */
export function useRange(): TimeRange {
  const { params } = useRoute();
  const { live } = useCluster();
  const since = useContext(SinceContext);
  const now = timeOfBeat(live);
  const span = rangeOf(params, now, 1, since);
  // At least a real second and a half, however fast the server's clock runs.
  const least = Math.max(10_000, Math.ceil((1_500 * live.speed()) / 10_000) * 10_000);
  const step = Math.max(least, Math.round((span.to - span.from) / 360 / 10_000) * 10_000);
  useNow(step);
  return rangeOf(params, now, step, since);
}

/** The moment of the address, or undefined for now. */
export function useAt(): number | undefined {
  const at = Number(useRoute().params.at);
  return Number.isFinite(at) && at > 0 ? at : undefined;
}

/**
 * Changed nodes replace those of the same name; the order of names is kept. `all`: names of the
 * remaining nodes, if some may have been removed.
 */
export function mergeNodes(nodes: Node[], changed: Node[], all?: string[]): Node[] {
  if (changed.length === 0 && !all) return nodes;
  const left = all && new Set(all);
  const byName = new Map(nodes.filter((node) => !left || left.has(node.node)).map((node) => [node.node, node]));
  for (const node of changed) byName.set(node.node, node);
  return [...byName.values()].sort((a, b) => compareNames(a.node, b.node));
}

/** All GPUs of the cluster: the present state, kept current, or the state at a past moment. */
export function useGpus(at: number | undefined, namespace: string): Resource<Gpus> {
  const { name, live } = useCluster();
  const resource = useResource(`${name}|${at ?? "now"}|${namespace}`, async (signal) => {
    const gpus = await api.gpus(name, at, namespace || undefined, signal);
    if (at === undefined) live.sawDataOf(gpus.fresh_at);
    return { ...gpus, nodes: [...gpus.nodes].sort((a, b) => compareNames(a.node, b.node)) };
  });
  useEvent("gpus", (data) => {
    const { nodes: changed, all } = data as { nodes?: Node[]; all?: string[] };
    if (at !== undefined || !Array.isArray(changed)) return;
    resource.set((gpus) => ({ ...gpus, at: live.now(), nodes: mergeNodes(gpus.nodes, changed, all) }));
    for (const node of changed) live.sawDataOf(node.fresh_at);
  });
  useEvent("reset", () => {
    if (at === undefined) resource.reload();
  });
  return resource;
}

// The columns of the tables that are saved as CSV. Amounts are in the units of the API.
import type { Decision, Node, Pod, Pool, Queue, Quota, QuotaAmounts, Series } from "../api/types";
import { cellsOf, holderName, kindNames, modeText, shortProduct, type Cell } from "../map/cells";
import { csvOf, iso, type Column } from "./csv";
import { costOf, doneAt, madeAt } from "./layouts";
import { memoryOf, splitRemedy } from "./pods";
import { costOf as poolCost, gpuOf, modeOf } from "./pools";
import { busyOf } from "./sort";
import { quotaName, type Team } from "./teams";
import { causeOf, wantedOf, type WaitGroup } from "./waiting";

const jobOf = (pod: Pod): string => {
  const maker = pod.job ?? pod.owner;
  return maker ? `${maker.kind}/${maker.name}` : "";
};
const reasonOfPod = (pod: Pod): { reason: string; remedy: string } => splitRemedy(pod.why || pod.message);

const pods: Column<Pod>[] = [
  { name: "state", of: (pod) => pod.state },
  { name: "namespace", of: (pod) => pod.namespace },
  { name: "pod", of: (pod) => pod.name },
  { name: "job", of: jobOf },
  { name: "requests", of: wantedOf },
  { name: "priority", of: (pod) => pod.priority },
  { name: "quota", of: (pod) => pod.quota },
  { name: "capacity", of: (pod) => pod.capacity },
  { name: "node", of: (pod) => pod.node },
  { name: "gpus", of: (pod) => pod.slices.map((each) => `${each.node}/${each.gpu}${each.profile ? ` ${each.profile}@${each.start}` : ""}`).join("; ") },
  { name: "utilization", of: busyOf },
  { name: "memory_used_mib", of: memoryOf },
  { name: "created", of: (pod) => iso(pod.created) },
  { name: "scheduled", of: (pod) => iso(pod.scheduled) },
  { name: "started", of: (pod) => iso(pod.started) },
  { name: "finished", of: (pod) => iso(pod.finished) },
  { name: "cause", of: (pod) => (pod.state === "pending" ? causeOf(pod).title : "") },
  { name: "reason", of: (pod) => reasonOfPod(pod).reason },
  { name: "remedy", of: (pod) => reasonOfPod(pod).remedy },
  { name: "expected_start", of: (pod) => iso(pod.estimate) },
];
export const podsCsv = (all: readonly Pod[]): string => csvOf(pods, all);

interface Piece {
  node: Node;
  gpu: Node["gpus"][number];
  cell: Cell;
}

const pieces: Column<Piece>[] = [
  { name: "node", of: ({ node }) => node.node },
  { name: "gpu", of: ({ gpu }) => gpu.index },
  { name: "gpu_uuid", of: ({ gpu }) => gpu.gpu },
  { name: "model", of: ({ gpu }) => shortProduct(gpu.product) },
  { name: "mode", of: ({ gpu }) => modeText(gpu) },
  { name: "health", of: ({ gpu }) => gpu.health || "healthy" },
  { name: "node_ready", of: ({ node }) => node.ready },
  { name: "profile", of: ({ cell }) => cell.profile },
  { name: "instance_uuid", of: ({ cell }) => cell.instance?.instance },
  { name: "share_of_gpu", of: ({ cell }) => Math.round((cell.to - cell.from) * 10_000) / 10_000 },
  { name: "state", of: ({ cell }) => kindNames[cell.kind] },
  { name: "utilization", of: ({ cell }) => cell.utilization },
  { name: "team", of: ({ cell }) => cell.team },
  { name: "pods", of: ({ cell }) => cell.holders.map(holderName).join("; ") },
  { name: "reported", of: ({ node }) => iso(node.fresh_at) },
];

/** One line for each piece of a GPU, as on the map. */
export const gpusCsv = (nodes: readonly Node[]): string =>
  csvOf(pieces, nodes.flatMap((node) => node.gpus.flatMap((gpu) => cellsOf(gpu).map((cell) => ({ node, gpu, cell })))));

const names = (all: readonly { namespace: string; name: string }[]): string => all.map((each) => `${each.namespace}/${each.name}`).join("; ");

const decisions: Column<Decision>[] = [
  { name: "made", of: (each) => iso(madeAt(each)) },
  { name: "done", of: (each) => (each.took_ms === undefined ? "" : iso(doneAt(each))) },
  { name: "took_ms", of: (each) => each.took_ms },
  { name: "type", of: (each) => each.type },
  { name: "state", of: (each) => each.state },
  { name: "summary", of: (each) => each.story.sentence },
  { name: "why", of: (each) => each.story.reason },
  { name: "nodes", of: (each) => [...new Set([...each.nodes.map((node) => node.node), each.node ?? ""])].filter(Boolean).join("; ") },
  { name: "instances_created", of: (each) => costOf(each).made },
  { name: "instances_destroyed", of: (each) => costOf(each).destroyed },
  { name: "pods_served", of: (each) => names(each.pods) },
  { name: "pods_evicted", of: (each) => names(each.victims) },
  { name: "id", of: (each) => each.id },
];
export const decisionsCsv = (all: readonly Decision[]): string => csvOf(decisions, all);

interface QuotaRow {
  quota: Quota;
  resource: string;
  amounts: QuotaAmounts;
  waiting: number;
}

const quotas: Column<QuotaRow>[] = [
  { name: "quota", of: ({ quota }) => quotaName(quota) },
  { name: "type", of: ({ quota }) => quota.type },
  { name: "namespaces", of: ({ quota }) => quota.namespaces.join("; ") },
  { name: "resource", of: ({ resource }) => resource },
  ...(["used", "min", "guaranteed", "max", "borrowed", "lent"] as const).map((name): Column<QuotaRow> => ({ name, of: ({ amounts }) => amounts[name] })),
  { name: "waiting_pods", of: ({ waiting }) => waiting },
];

/** `waiting`: pods that wait, by the name of their quota. */
export const quotasCsv = (all: readonly Quota[], resource: string, waiting: ReadonlyMap<string, number>): string =>
  csvOf(quotas, all.flatMap((quota) => {
    const amounts = quota.resources[resource];
    return amounts ? [{ quota, resource, amounts, waiting: waiting.get(quotaName(quota)) ?? 0 }] : [];
  }));

const pools: Column<Pool>[] = [
  { name: "pool", of: (pool) => pool.name },
  { name: "gpus_of_a_node", of: gpuOf },
  { name: "mode", of: modeOf },
  ...(["nodes", "coming", "going", "wanted", "min", "max", "price"] as const).map((name): Column<Pool> => ({ name: { coming: "adding", going: "removing", price: "price_per_hour" }[name as string] ?? name, of: (pool) => pool[name] })),
  { name: "total_per_hour", of: poolCost },
  { name: "state", of: (pool) => pool.state },
  { name: "closed_until", of: (pool) => (pool.state === "closed" ? iso(pool.closed_until) : "") },
  { name: "why", of: (pool) => pool.why },
];
export const poolsCsv = (all: readonly Pool[]): string => csvOf(pools, all);

const queues: Column<Queue>[] = [
  { name: "type", of: (queue) => queue.type },
  { name: "namespace", of: (queue) => queue.namespace },
  { name: "queue", of: (queue) => queue.name },
  { name: "cluster_queue", of: (queue) => queue.cluster_queue },
  { name: "pending", of: (queue) => queue.workloads?.pending ?? queue.pods?.waiting ?? 0 },
  { name: "reserving", of: (queue) => queue.workloads?.reserving },
  { name: "admitted", of: (queue) => queue.workloads?.admitted ?? queue.pods?.admitted ?? 0 },
  { name: "active", of: (queue) => queue.active !== false },
  { name: "why", of: (queue) => queue.why },
];
export const queuesCsv = (all: readonly Queue[]): string => csvOf(queues, all);

const rounded = (value: number): number => Math.round(value * 100) / 100;

const teams: Column<Team>[] = [
  { name: "team", of: (team) => team.name },
  { name: "gpus", of: (team) => rounded(team.gpus) },
  { name: "idle_gpus", of: (team) => rounded(team.idle) },
  { name: "waiting_pods", of: (team) => team.waiting },
  { name: "resource", of: (team) => (team.amounts ? team.resource : "") },
  ...(["used", "min", "guaranteed", "max", "borrowed", "lent"] as const).map((name): Column<Team> => ({ name, of: (team) => team.amounts?.[name] })),
];
/** `costs`: those of the last hour, in millionths of the currency. */
export const teamsCsv = (all: readonly Team[], costs?: { wasted: (team: Team) => number | null; currency: string }): string =>
  csvOf(costs ? [...teams, { name: "held_idle_cost_last_hour", of: (team) => inUnits(costs.wasted(team)) }, { name: "currency", of: () => costs.currency }] : teams, all);

const inUnits = (micros: number | null): number | null => (micros === null ? null : micros / 1e6);

const waits: Column<WaitGroup>[] = [
  { name: "namespace", of: (group) => group.namespace },
  { name: "job_or_pod", of: (group) => group.job || group.name },
  { name: "pods", of: (group) => group.pods.length },
  { name: "requests", of: (group) => group.wanted },
  { name: "waiting_since", of: (group) => iso(group.since) },
  { name: "cause", of: (group) => group.cause.title },
  { name: "reason", of: (group) => group.cause.reason },
  { name: "remedy", of: (group) => group.cause.remedy },
  { name: "first_expected_start", of: (group) => iso(group.estimate) },
];
export const waitsCsv = (all: readonly WaitGroup[]): string => csvOf(waits, all);

/** Lines of a chart on one time axis. */
export function seriesCsv(lines: readonly { label: string; series: Series | undefined }[]): string {
  const byTime = new Map<number, Map<string, { mean: number | null; min: number | null; max: number | null }>>();
  for (const { label, series } of lines) {
    series?.at.forEach((at, place) => {
      const row = byTime.get(at) ?? new Map();
      row.set(label, { mean: series.mean[place] ?? null, min: series.min[place] ?? null, max: series.max[place] ?? null });
      byTime.set(at, row);
    });
  }
  type Row = [number, Map<string, { mean: number | null; min: number | null; max: number | null }>];
  const columns: Column<Row>[] = [
    { name: "time", of: ([at]) => iso(at) },
    ...lines.flatMap(({ label }) =>
      (["mean", "min", "max"] as const).map((which): Column<Row> => ({ name: `${label} ${which}`, of: ([, row]) => row.get(label)?.[which] })),
    ),
  ];
  return csvOf(columns, [...byTime].sort(([a], [b]) => a - b));
}

// Teams with what they hold, are promised, and wait for.
import type { Cost, Node, Overview, Pod, Quota, QuotaAmounts } from "../api/types";
import { cellsOf, teamOf } from "../map/cells";
import { idleOf } from "./costs";
import { isHeld } from "./waiting";

export const gpuMemory = "nos.nebuly.com/gpu-memory";

/** A quota by its namespace if it has the usual name. */
export const quotaName = (quota: Pick<Quota, "namespace" | "name">): string =>
  quota.name === "quota" ? quota.namespace : `${quota.namespace}/${quota.name}`;

export const isComposite = (quota: Quota): boolean => quota.type === "CompositeElasticQuota";

/** Quotas of both kinds may have the same name. */
export const subjectOf = (quota: Quota, resource: string): string =>
  `${isComposite(quota) ? "composite-quota" : "quota"}/${quota.namespace}/${quota.name}/${resource}`;

/** GB of one GPU of the cluster, the mean of its models; 0: unknown. */
export function gigabytesOfGpu(overview: Overview | undefined): number {
  const models = (overview?.models ?? []).filter((each) => (each.memory ?? 0) > 0);
  const gpus = models.reduce((sum, each) => sum + each.gpus, 0);
  const sum = models.reduce((all, each) => all + each.gpus * Math.round((each.memory ?? 0) / 1024), 0);
  return gpus > 0 ? sum / gpus : 0;
}

/** An amount of a resource in GPUs; null if it is not one of GPUs. */
export function inGpus(resource: string, value: number | undefined, gigabytes: number): number | null {
  if (value === undefined) return null;
  if (resource === "nvidia.com/gpu") return value;
  return resource.endsWith("/gpu-memory") && gigabytes > 0 ? value / gigabytes : null;
}

/** The resource of a quota that counts GPUs best; undefined: it has none. */
export function gpuResource(quota: Quota): string | undefined {
  const names = Object.keys(quota.resources);
  return [gpuMemory, "nvidia.com/gpu"].find((each) => names.includes(each)) ?? names.find((each) => each.includes("gpu"));
}

export interface Team {
  name: string;
  /** Held by its pods, in GPUs. */
  gpus: number;
  /** Of these: below 5 % busy. */
  idle: number;
  waiting: number;
  /** Of these: not held by gates, and some node could run them. */
  able: number;
  quota: Quota | undefined;
  resource: string;
  amounts: QuotaAmounts | undefined;
}

/** The largest first. `pending`: pods that wait. */
export function teamsOf(nodes: readonly Node[], quotas: readonly Quota[], pending: readonly Pod[]): Team[] {
  const teams = new Map<string, Team>();
  const of = (name: string): Team => {
    const team = teams.get(name) ?? { name, gpus: 0, idle: 0, waiting: 0, able: 0, quota: undefined, resource: "", amounts: undefined };
    teams.set(name, team);
    return team;
  };
  for (const quota of quotas) {
    const resource = gpuResource(quota);
    if (resource) Object.assign(of(quotaName(quota)), { quota, resource, amounts: quota.resources[resource] });
  }
  for (const gpu of nodes.flatMap((node) => node.gpus)) {
    for (const cell of cellsOf(gpu)) {
      if (!cell.team) continue;
      const team = of(cell.team);
      team.gpus += cell.to - cell.from;
      if (cell.kind === "idle") team.idle += cell.to - cell.from;
    }
  }
  for (const pod of pending) {
    const team = of(teamOf({ namespace: pod.namespace, pod: pod.name, quota: pod.quota }));
    team.waiting++;
    if (!isHeld(pod)) team.able++;
  }
  return [...teams.values()].sort((a, b) => b.gpus - a.gpus || b.waiting - a.waiting || (a.name < b.name ? -1 : 1));
}

/**
 * The cost of the GPUs that each team held idle, in millionths of the currency. `costs` has a row for each namespace; a team
 * with a quota gets the sum over the quota's namespaces, another one its own.
 * null: some of it is unknown.
 */
export function idleCosts(teams: readonly Team[], costs: Cost): (team: Team) => number | null {
  const owners = new Map<string, string>();
  for (const team of teams) for (const each of team.quota?.namespaces ?? []) owners.set(each, owners.get(each) ?? team.name);
  const sums = new Map<string, number | null>();
  for (const row of costs.rows.filter((each) => each.kind === "namespace")) {
    const owner = owners.get(row.name) ?? row.name;
    const before = sums.get(owner);
    sums.set(owner, before === null || row.cost === null ? null : (before ?? 0) + idleOf(row));
  }
  const all = costs.rows.every((each) => each.kind !== "rest" && each.kind !== "others");
  return (team) => {
    const sum = sums.get(team.name);
    return sum === undefined && all ? 0 : (sum ?? null);
  };
}

/** True if the quota is owed more than it uses while pods of it wait that could run. */
export const isUnmet = ({ amounts, able }: Pick<Team, "amounts" | "able">): boolean =>
  amounts !== undefined && able > 0 && amounts.used < amounts.guaranteed;

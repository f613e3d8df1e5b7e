// The parts of the overview: groups of waiting pods, teams; and the order of pods.
import { describe, expect, it } from "vitest";
import type { Cost, CostRow, Pod, Quota } from "../../src/api/types";
import { nextOrder, orderOf, sortPods } from "../../src/lib/sort";
import { stem } from "../../src/lib/pods";
import { gigabytesOfGpu, idleCosts, inGpus, isUnmet, teamsOf } from "../../src/lib/teams";
import { teamsCsv } from "../../src/lib/tables";
import { causeOf, groupCauses, groupWaiting } from "../../src/lib/waiting";
import { sparkPath } from "../../src/ui/spark";
import { missing, outages, stepOf, widest } from "../../src/ui/stats";

const pod = (name: string, more: Partial<Pod> = {}): Pod => ({
  uid: `uid-${name}`, namespace: "team", name, node: "", state: "pending", reason: "Unschedulable", message: "", requests: { "nvidia.com/mig-2g.20gb": 1, cpu: 4 },
  priority: 0, quota: "", capacity: "", created: 1000, scheduled: 0, started: 0, finished: 0, slices: [], estimate: null, estimate_by: "", why: "", ...more,
});
const ofJob = (name: string): Partial<Pod> => ({ job: { kind: "Job", name } });
const full = (nodes: number): string => `0/${nodes} nodes are available: ${nodes} node(s) had no room for 2g.20gb. Remedy: wait for the end of other/pod-${nodes} on node n-${nodes}`;

describe("waiting pods", () => {
  it("are one line for each job and cause, the longest first", () => {
    const groups = groupWaiting([
      pod("train-1", { ...ofJob("train"), why: full(3), created: 5000, estimate: 90_000, estimate_by: "history" }),
      pod("train-2", { ...ofJob("train"), why: full(41), created: 3000, estimate: 80_000, estimate_by: "history" }),
      pod("train-3", { ...ofJob("train"), why: "quota team/quota is at its max", reason: "QuotaExceeded", created: 4000 }),
      pod("alone", { why: full(3), created: 2000 }),
      pod("runs", { state: "running", created: 1 }),
    ]);
    expect(groups.map((each) => [each.name, each.pods.map((one) => one.name), each.since, each.cause.kind])).toEqual([
      ["alone", ["alone"], 2000, "nodes"],
      ["train", ["train-2", "train-1"], 3000, "nodes"],
      ["train", ["train-3"], 4000, "quota"],
    ]);
    expect(groups[1]).toMatchObject({ wanted: "2g.20gb", job: "Job/train", estimate: 80_000, estimateBy: "history" });
    expect(groups[1]!.cause).toMatchObject({ reason: "41 node(s) had no room for 2g.20gb.", remedy: "wait for the end of other/pod-41 on node n-41" });
  });
  it("without a job belong together by their names", () => {
    const groups = groupWaiting([pod("study-04", { why: full(3) }), pod("study-05", { why: full(3), created: 500 }), pod("web-1", { why: full(3) })]);
    expect(groups.map((each) => [each.name, each.pods.length])).toEqual([["study-*", 2], ["web-1", 1]]);
  });
  it("behind scheduling gates have no expected start, whatever a server says", () => {
    const gated = pod("gated", { reason: "SchedulingGated", why: "waiting for scheduling gates: [kueue.x-k8s.io/admission]", estimate: 5, estimate_by: "plan" });
    expect(groupWaiting([gated])[0]).toMatchObject({ estimate: null, cause: { kind: "gated", title: "Scheduling gates" } });
  });
  it("of several jobs have one cause", () => {
    const groups = groupCauses([pod("a", { ...ofJob("a"), why: full(3) }), pod("b", { ...ofJob("b"), why: full(4) }), pod("c")]);
    expect(groups.map((each) => [each.cause.kind, each.pods.length])).toEqual([["nodes", 2], ["new", 1]]);
  });
  it("have the stem of their name in common", () => {
    expect(stem("train-7-x2b4q")).toBe("train-7");
    expect(stem("alone")).toBe("alone");
  });
  it("always have a cause in words", () => {
    expect(causeOf(pod("p")).title).toBe("Not evaluated yet");
    expect(causeOf(pod("p", { message: "something else" })).kind).toBe("other");
    expect(causeOf(pod("p", { why: "0/2 nodes are available: 2 node(s) had GPUs that are being partitioned." })).kind).toBe("partitioning");
  });
});

describe("teams", () => {
  const quota = (namespace: string, used: number, guaranteed: number): Quota => ({
    type: "ElasticQuota", namespace, name: "quota", namespaces: [namespace],
    resources: { "nos.nebuly.com/gpu-memory": { min: guaranteed, used, guaranteed, borrowed: 0, lent: 0 } },
  });
  it("have their quota, their use and their waiting pods", () => {
    const teams = teamsOf([], [quota("a", 80, 160), quota("b", 0, 80)], [pod("p", { namespace: "a", quota: "a/quota" }), pod("q", { namespace: "none" })]);
    expect(teams.map((each) => [each.name, each.waiting, isUnmet(each)])).toEqual([["a", 1, true], ["none", 1, false], ["b", 0, false]]);
  });
  it("are not owed what their pods cannot use", () => {
    const held = [
      pod("g", { namespace: "a", quota: "a/quota", reason: "SchedulingGated" }),
      pod("m", { namespace: "a", quota: "a/quota", estimate_by: "no node of the cluster can ever run the pod" }),
    ];
    expect(teamsOf([], [quota("a", 80, 160)], held).map((each) => [each.waiting, isUnmet(each)])).toEqual([[2, false]]);
  });
  it("have the cost of what the namespaces of their quotas held idle", () => {
    const row = (kind: CostRow["kind"], name: string, idle: string, cost: string | null = "9.000000"): CostRow =>
      ({ kind, namespace: name, name, cost, categories: { idle } }) as unknown as CostRow;
    const costs = (...rows: CostRow[]): Cost => ({ rows }) as unknown as Cost;
    const both: Quota = { ...quota("shared", 8, 8), name: "both", namespaces: ["b", "c"] };
    const teams = teamsOf([], [quota("a", 80, 160), both], [pod("p", { namespace: "none" }), pod("q", { namespace: "c" }), pod("r", { namespace: "new" })]);
    const of = (all: Cost): (number | null)[] => ["a", "shared/both", "none", "c", "new"].map((name) => idleCosts(teams, all)(teams.find((each) => each.name === name)!));
    const rows = [row("namespace", "a", "1.500000"), row("namespace", "b", "2.000000"), row("namespace", "c", "0.250000"), row("namespace", "none", "3.000000"), row("unallocated", "", "7.000000")];
    expect(of(costs(...rows))).toEqual([1_500_000, 2_250_000, 3_000_000, 0, 0]);
    // GPUs without a price, rows beyond the limit, and namespaces of others.
    expect(of(costs(...rows, row("namespace", "b", "0.000000", null)))[1]).toBeNull();
    for (const kind of ["rest", "others"] as const) expect(of(costs(...rows, row(kind, "", "0.000000")))).toEqual([1_500_000, 2_250_000, 3_000_000, null, null]);
    const lines = teamsCsv(teams, { wasted: idleCosts(teams, costs(...rows)), currency: "EUR" }).split("\r\n");
    expect(lines[0]).toMatch(/,held_idle_cost_last_hour,currency$/);
    expect(lines.find((each) => each.startsWith("shared/both,"))).toMatch(/,2\.25,EUR$/);
    expect(teamsCsv(teams)).not.toContain("cost");
  });
  it("count in GPUs", () => {
    const models = [{ product: "x", gpus: 3, allocated: 0, memory: 81_920 }, { product: "y", gpus: 1, allocated: 0, memory: 40_960 }];
    const gigabytes = gigabytesOfGpu({ models } as Parameters<typeof gigabytesOfGpu>[0]);
    expect(gigabytes).toBe(70);
    expect(inGpus("nos.nebuly.com/gpu-memory", 140, gigabytes)).toBe(2);
    expect(inGpus("nvidia.com/gpu", 3, 0)).toBe(3);
    expect(inGpus("cpu", 3, gigabytes)).toBeNull();
    expect(inGpus("nos.nebuly.com/gpu-memory", 140, 0)).toBeNull();
  });
});

describe("the order of pods", () => {
  const pods = [pod("b-10", { created: 9 }), pod("b-9", { created: 1, state: "running", started: 8 }), pod("a", { created: 5, requests: { "nvidia.com/gpu": 1 } })];
  const names = (order: string): string[] => sortPods(pods, orderOf(order), 10).map((each) => each.name);
  it("follows a column either way, names naturally", () => {
    expect(names("pod")).toEqual(["a", "b-9", "b-10"]);
    expect(names("-pod")).toEqual(["b-10", "b-9", "a"]);
    expect(names("-since")).toEqual(["a", "b-9", "b-10"]);
    expect(names("state")[2]).toBe("b-9");
    expect(names("nonsense")).toEqual(["b-10", "b-9", "a"]);
  });
  it("puts what is not measured last, both ways", () => {
    const busy = pod("busy", { slices: [{ node: "n", gpu: 0, profile: "", start: 0, instance: "", utilization: 0.5, memory_used: 1 }] });
    const idle = pod("idle", { slices: [{ node: "n", gpu: 0, profile: "", start: 0, instance: "", utilization: 0.1, memory_used: 1 }] });
    const of = (order: string): string[] => sortPods([pod("x"), busy, idle], orderOf(order), 10).map((each) => each.name);
    expect(of("-busy")).toEqual(["busy", "idle", "x"]);
    expect(of("busy")).toEqual(["idle", "busy", "x"]);
  });
  it("turns at a second click and ends at a third", () => {
    expect(nextOrder(undefined, "since")).toBe("-since");
    expect(nextOrder(orderOf("-since"), "since")).toBe("since");
    expect(nextOrder(orderOf("since"), "since")).toBe("");
    expect(nextOrder(orderOf("since"), "pod")).toBe("pod");
  });
});

describe("charts", () => {
  const series = (mean: (number | null)[]): { subject: string; at: number[]; mean: (number | null)[]; min: (number | null)[]; max: (number | null)[] } => ({
    subject: "s", at: mean.map((_, place) => place * 10_000), mean, min: mean, max: mean,
  });
  it("make room for their widest label", () => {
    expect(widest(["0 GB", "10,000 GB"], (text) => text.length * 6)).toBe(54);
  });
  it("bridge reports that came late, not outages", () => {
    expect(stepOf([{ series: undefined }, { series: series([1, 2]) }])).toBe(10_000);
    expect(outages([[0, 20], [100, 140], [200, 260]], 10)).toEqual([[200, 260]]);
  });
  it("say for how long data is missing", () => {
    expect(missing(series([null, 1, null, null, null, 2, null]))).toBe(0);
    expect(missing(series([null, 1, null, null, null, null, 2, 3, null]))).toBe(40_000);
    expect(missing(undefined)).toBe(0);
  });
  it("are drawn small in one piece, but for outages", () => {
    expect(sparkPath(series([0, null, 1]), 0, 20_000, 1)).toBe("M0.0 19.0L96.0 1.0");
    expect(sparkPath(series([0, null, null, null, null, 1]), 0, 50_000, 1)).toBe("M0.0 19.0M96.0 1.0");
  });
});

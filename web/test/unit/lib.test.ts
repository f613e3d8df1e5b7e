import { describe, expect, it } from "vitest";
import type { Decision, GpuLayout, Job, Node, Overview, Pod, Series } from "../../src/api/types";
import { partsOf } from "../../src/lib/capacity";
import { mergeNodes } from "../../src/lib/data";
import { changesOf, costOf, difference, doneAt, madeAt, piecesOf, switchOf, withDecision } from "../../src/lib/layouts";
import { contrast, inkOn, markTeams, rampColour, rampStep, rampSteps, teamColours } from "../../src/lib/palette";
import { groupPods, isWanted, memoryOf, mergePods, splitRemedy } from "../../src/lib/pods";
import { podText, quoted } from "../../src/lib/podtext";
import { wordsOf } from "../../src/lib/whatif";
import { statsOf, tableOf } from "../../src/ui/stats";

const overview = (shares: Partial<Overview>): Overview => ({
  at: 0, fresh_at: 0, gpus: 1, slots: 8, allocated: 0.7, used: 0.4, idle: 0.1, free: 0.2, fragmented: 0.06, stranded: 0.04,
  pods: {}, seconds_to_slice: null, nodes: 1, stale_nodes: 0, models: [], ...shares,
});

describe("nodes", () => {
  const node = (name: string): Node => ({ node: name, gpus: [] }) as unknown as Node;
  const names = (nodes: Node[]): string[] => nodes.map((each) => each.node);
  it("go when they are no more among all", () => {
    const nodes = [node("n1"), node("n2"), node("n10")];
    expect(names(mergeNodes(nodes, [node("n3")]))).toEqual(["n1", "n2", "n3", "n10"]);
    expect(names(mergeNodes(nodes, [], ["n1", "n10"]))).toEqual(["n1", "n10"]);
    expect(mergeNodes(nodes, [])).toBe(nodes);
  });
});

describe("the capacity bar", () => {
  const sum = (data: Overview): number => partsOf(data).reduce((total, part) => total + part.share, 0);
  it("adds up to the whole", () => {
    expect(sum(overview({}))).toBeCloseTo(1);
    expect(partsOf(overview({})).find((part) => part.id === "held")?.share).toBeCloseTo(0.2);
  });
  it("says what is out of service", () => {
    expect(partsOf(overview({ free: 0.1 })).find((part) => part.id === "out")?.share).toBeCloseTo(0.1);
  });
  it("never grows beyond the whole, whatever is reported", () => {
    for (const wild of [{ allocated: 3 }, { used: 5, idle: 5 }, { free: 9, stranded: 9 }, { allocated: -1 }, { idle: null }]) {
      expect(sum(overview(wild))).toBeLessThanOrEqual(1.0001);
      expect(partsOf(overview(wild)).every((part) => part.share >= 0)).toBe(true);
    }
  });
  it("tells empty GPUs, which nobody uses, from free slices beside pods and from locked ones", () => {
    const parts = Object.fromEntries(partsOf(overview({ empty: 0.15 })).map((part) => [part.id, part]));
    expect([parts.empty?.share, parts.free?.share, parts.fragmented?.share].map((each) => Math.round((each ?? 0) * 100))).toEqual([15, 5, 6]);
    expect(parts.fragmented?.label).toBe("Locked");
    expect(sum(overview({ empty: 7 }))).toBeCloseTo(1);
  });
  it("does not invent what is not measured", () => {
    expect(partsOf(overview({ used: null })).map((part) => part.id)).not.toContain("used");
  });
});

describe("colours", () => {
  it("are the same for the same teams in any order, and differ for the first sixteen", () => {
    const names = Array.from({ length: 16 }, (_, at) => `team-${at}`);
    const marks = markTeams(names);
    expect(markTeams([...names].reverse())).toEqual(marks);
    expect(new Set([...marks.values()].map((mark) => `${mark.colour}${mark.hatch}`)).size).toBe(16);
    expect(markTeams(Array.from({ length: 100 }, (_, at) => `t${at}`)).size).toBe(100);
  });
  it("carry readable text, stand out from the page and get lighter or darker step by step", () => {
    for (const dark of [false, true]) {
      const page = dark ? "#161a1e" : "#ffffff";
      for (const colour of teamColours[dark ? "dark" : "light"]) {
        expect(contrast(colour, inkOn(colour))).toBeGreaterThanOrEqual(4.5);
        expect(contrast(colour, page)).toBeGreaterThanOrEqual(2);
      }
      const steps = Array.from({ length: rampSteps }, (_, step) => rampColour(step / rampSteps, dark));
      for (const colour of steps) expect(contrast(colour, inkOn(colour))).toBeGreaterThanOrEqual(4.5);
      // Low use is the thing to see: hot (more red than blue), and in contrast with the page.
      expect(contrast(steps[0]!, page)).toBeGreaterThanOrEqual(4.5);
      const warmth = steps.map((colour) => parseInt(colour.slice(1, 3), 16) - parseInt(colour.slice(5, 7), 16));
      expect([...warmth].sort((a, b) => b - a)).toEqual(warmth);
      expect(new Set(steps).size).toBe(rampSteps);
    }
  });
  it("have a step for each fraction", () => {
    expect([0, 0.19, 0.2, 0.6, 0.99, 1, 7, -1].map(rampStep)).toEqual([0, 0, 1, 3, 4, 4, 4, 0]);
  });
});

const decision: Decision = {
  at: 0, id: "d", type: "plan", summary: "", pods: [], victims: [], state: "applied", took_ms: 1, why: "", story: { subject: "", sentence: "", reason: "", created: "", destroyed: "" },
  nodes: [{ node: "n", before: [{ index: 0, profiles: { "7g.40gb": 1 } }], after: [{ index: 0, profiles: { "3g.20gb": 2 } }, { index: 1, profiles: { "1g.5gb": 1 } }] }],
};

describe("decisions", () => {
  it("cost what they make and destroy", () => {
    expect(costOf(decision)).toEqual({ made: 3, destroyed: 1 });
    expect(changesOf(decision).map((each) => each.index)).toEqual([0, 1]);
    expect(changesOf(decision)[1]?.before).toBeUndefined();
  });
  it("come again as they go on, in their place", () => {
    const planned = { ...decision, id: "a", at: 1, state: "planned" as const };
    const all = withDecision([{ ...decision, id: "b", at: 2 }, planned], { ...planned, state: "applied" }, 9);
    expect(all.map((each) => [each.id, each.state])).toEqual([["b", "applied"], ["a", "applied"]]);
    expect(withDecision(all, { ...planned, at: planned.at - 1 }, 9)).toBe(all);
    expect(withDecision(all, { ...decision, id: "c", at: 3 }, 2).map((each) => each.id)).toEqual(["c", "b"]);
  });
  it("stay where they were made while they are told again", () => {
    const first = { ...decision, id: "a", at: 1, made: 1 }, second = { ...decision, id: "b", at: 2, made: 2 };
    const all = withDecision([second, first], { ...first, at: 9, took_ms: 3 }, 9);
    expect(all.map((each) => each.id)).toEqual(["b", "a"]);
    expect([madeAt(all[1]!), doneAt(all[1]!), madeAt({ at: 5 })]).toEqual([1, 4, 5]);
  });
  it("say that the sharing mode of a GPU changes", () => {
    const side = (sharing_mode?: "MIG" | "MPS" | ""): GpuLayout => ({ index: 0, profiles: {}, ...(sharing_mode === undefined ? {} : { sharing_mode }) });
    const changed = (before: GpuLayout | undefined, after: GpuLayout): string => switchOf({ node: "n", index: 0, before, after });
    expect(changed(side("MIG"), side("MPS"))).toBe("MIG → MPS");
    expect([changed(side("MIG"), side("MIG")), changed(side(""), side("MPS")), changed(side(), side()), changed(undefined, side("MPS"))])
      .toEqual(["", "", "", ""]);
    expect(changed({ index: 0, profiles: {}, way: "MPS" }, side("MIG"))).toBe("MPS → MIG");
  });
  it("differ in the largest first", () => {
    const [change] = changesOf(decision);
    expect(difference(change?.before, change?.after)).toEqual([
      { profile: "7g.40gb", change: -1 },
      { profile: "3g.20gb", change: 2 },
    ]);
    expect(piecesOf({ index: 0, profiles: { "1g.5gb": 2, "3g.20gb": 1 } })).toEqual(["3g.20gb", "1g.5gb", "1g.5gb"]);
    expect(piecesOf({ index: 0, profiles: { "1g.5gb": 1e9 } })).toHaveLength(16);
  });
});

const pod = (uid: string, more: Partial<Pod> = {}): Pod => ({
  uid, namespace: "ns", name: uid, node: "", state: "running", reason: "", message: "", requests: {}, priority: 0, quota: "",
  capacity: "", created: 0, scheduled: 0, started: 0, finished: 0, slices: [], estimate: null, estimate_by: "", why: "", ...more,
});

describe("pods", () => {
  it("part the reason from the remedy", () => {
    expect(splitRemedy("0/2 nodes. Remedy: wait for a/b.")).toEqual({ reason: "0/2 nodes.", remedy: "wait for a/b." });
    expect(splitRemedy("nothing known")).toEqual({ reason: "nothing known", remedy: "" });
  });
  it("change in place, and say when the list may be another one", () => {
    const pods = [pod("a"), pod("b")];
    expect(mergePods(pods, [pod("a", { node: "n" })], [])).toMatchObject({ other: false, pods: [{ node: "n" }, { uid: "b" }] });
    expect(mergePods(pods, [pod("a", { state: "failed" })], []).other).toBe(true);
    expect(mergePods(pods, [pod("new")], []).other).toBe(true);
    expect(mergePods(pods, [], ["b"]).other).toBe(true);
    expect(mergePods(pods, [], ["elsewhere"]).other).toBe(false);
  });
  it("are grouped by what made them, those of their own last", () => {
    const job = { kind: "Job", name: "j" };
    const groups = groupPods([pod("x"), pod("a", { owner: job }), pod("b", { owner: job, state: "pending" })], true);
    expect(groups.map((group) => [group.title, group.summary])).toEqual([
      ["ns/j", "1 pending, 1 running"],
      ["Pods of their own", "1 running"],
    ]);
    // The record of the whole job takes precedence, and so does the owner's own owner.
    const above = { kind: "Deployment", name: "d" };
    const told: Job = { id: "", namespace: "ns", type: "Deployment", name: "d", queue: "gpus", pods: { running: 7 }, started: 60_000, finished: 0 };
    const [group] = groupPods([pod("a", { owner: job, job: above })], true, [told], 180_000);
    expect([group?.title, group?.summary]).toEqual(["ns/d", "7 running · runs 2 min · queue gpus"]);
    expect(group?.only).toEqual({ ns: "ns", job: "Deployment/d" });
  });
  it("come after the jobs that wait without any", () => {
    const job: Job = {
      id: "ns/Job/w", namespace: "ns", type: "Job", name: "w", queue: "gpus", state: "queued", why: "no quota is left", pods: {},
      completions: 1, finished: 0, wanted: 4, requests: { "nvidia.com/mig-1g.5gb": 8 }, admission: { state: "pending", cluster_queue: "all" },
    };
    const ended: Job = { ...job, id: "ns/Job/e", name: "e", finished: 5 };
    const shown = groupPods([pod("x")], true, [job, ended]);
    expect(shown.map((group) => [group.title, group.state, group.why, group.summary])).toEqual([
      ["ns/w", "queued", "no quota is left", "1 of 4 done · asks for 8 × 1g.5gb · queue gpus of all"],
      ["Pods of their own", undefined, undefined, "1 running"],
    ]);
    expect(groupPods([], true, [job], 0, () => false)).toEqual([]);
    expect(groupPods([pod("x")], false, [job])).toHaveLength(1);
    const all = { state: "", job: "", q: "" };
    expect(isWanted(job, all)).toBe(true);
    expect(isWanted(job, { ...all, state: "running" })).toBe(false);
    expect(isWanted(job, { ...all, state: "pending", job: "Job/w", q: "GPUS" })).toBe(true);
    expect(isWanted(job, { ...all, q: "other" })).toBe(false);
    expect(isWanted(job, { ...all, job: "Job/e" })).toBe(false);
  });
  it("use what their slices use, as far as it is known", () => {
    const slice = (memory_used: number | null): Pod["slices"][number] => ({ node: "n", gpu: 0, profile: "", start: 0, instance: "", utilization: null, memory_used });
    expect(memoryOf(pod("a", { slices: [slice(3), slice(null), slice(4)] }))).toBe(7);
    expect(memoryOf(pod("a", { slices: [slice(null)] }))).toBeNull();
  });
  it("become text that cannot break out of its place", () => {
    const text = podText("ns\nkind: Secret", 'x"\n---', { "nvidia.com/mig-1g.5gb": 1 });
    expect(text.split("\n").filter((line) => line.startsWith("kind:"))).toEqual(["kind: Pod"]);
    expect(text).not.toContain("\n---");
    expect([quoted("default"), quoted("no"), quoted("1")]).toEqual(["default", '"no"', '"1"']);
  });
});

describe("answers of what-if", () => {
  it("are told in words, whatever their form", () => {
    expect(wordsOf({ node: "n", gpu: 2, make: ["1g.5gb"], destroy: ["2g.10gb"] })).toBe("n · GPU 2: create 1g.5gb, destroy 2g.10gb");
    expect(wordsOf({ namespace: "a", name: "b" })).toBe("a/b");
    expect(wordsOf("plain")).toBe("plain");
    expect(wordsOf(null)).toBe("null");
    expect(wordsOf({ step: "x" })).toBe("step x");
  });
});

describe("series", () => {
  const series: Series = { subject: "cluster", at: [1000, 2000, 3000], mean: [1, null, 3], min: [0, null, 2], max: [2, null, 9] };
  it("have their smallest, mean, largest and latest value", () => {
    expect(statsOf(series)).toEqual({ min: 0, mean: 2, max: 9, last: 3 });
    expect(statsOf({ ...series, mean: [null, null, null] }).mean).toBeUndefined();
    expect(statsOf(undefined).last).toBeUndefined();
  });
  it("share one axis, with gaps where one has no value", () => {
    const other: Series = { subject: "x", at: [2000, 4000], mean: [5, 6], min: [5, 6], max: [5, 6] };
    const rows = tableOf([{ series }, { series: other }]);
    expect(rows[0]).toEqual([1, 2, 3, 4]);
    expect(rows[1]).toEqual([1, null, 3, null]);
    expect(rows[4]).toEqual([null, 5, null, 6]);
  });
});

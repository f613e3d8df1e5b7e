import { describe, expect, it } from "vitest";
import type { Decision, PodDetail } from "../../src/api/types";
import { phasesOf, timelineOf } from "../../src/lib/timeline";

const t = 1_000_000;
const pod = (more: Partial<PodDetail> = {}): PodDetail => ({
  uid: "u", namespace: "vision", name: "train-1", node: "n1", state: "running", reason: "", message: "", requests: {}, priority: 0, quota: "", capacity: "",
  created: t, scheduled: t + 60_000, started: t + 64_000, finished: 0, slices: [], estimate: null, estimate_by: "", why: "", owner: { kind: "Job", name: "train" },
  events: [], decisions: [], ...more,
});
const plan = (more: Partial<Decision> = {}): Decision => ({
  at: t + 55_000, made: t + 50_000, id: "d-1", type: "plan", summary: "1 GPU repartitioned", took_ms: 5000, why: "", state: "applied", victims: [],
  story: { subject: "", sentence: "Created 3g.40gb on n1", reason: "pods waited", created: "3g.40gb", destroyed: "2 × 1g.10gb" },
  nodes: [{ node: "n1", before: [{ index: 0, profiles: { "1g.10gb": 2 } }], after: [{ index: 0, profiles: { "3g.40gb": 1 } }] }],
  pods: [{ namespace: "vision", name: "train-1" }], ...more,
});

describe("a pod's way", () => {
  it("has every step in order, each once, whoever reports it", () => {
    const events = [
      { at: t + 64_200, type: "Normal", reason: "Started", message: "Started container main" },
      { at: t + 60_100, type: "Normal", reason: "Scheduled", message: "Successfully assigned" },
      { at: t + 40_000, type: "Warning", reason: "FailedScheduling", message: "0/2 nodes are available", count: 12 },
      { at: t + 62_000, type: "Normal", reason: "Pulled", message: "image is there" },
    ];
    const steps = timelineOf(pod({ events, decisions: ["d-1"] }), [plan()]);
    expect(steps.map((each) => [each.kind, (each.at - t) / 1000])).toEqual([
      ["created", 0], ["why", 40], ["nominated", 50], ["slice", 55], ["bound", 60], ["other", 62], ["running", 64],
    ]);
    expect(steps[0]?.detail).toBe("by Job train");
    expect(steps[1]).toMatchObject({ count: 12, warning: true });
    expect(steps[3]).toMatchObject({ title: "Slice created", detail: "3g.40gb on n1", decision: "d-1" });
  });

  it("ends with an eviction by name of the decision, and the failure", () => {
    const victim = plan({ id: "d-2", type: "reclaim", made: t + 100_000, pods: [], victims: [{ namespace: "vision", name: "train-1" }], why: "its quota borrows" });
    const steps = timelineOf(pod({ state: "failed", finished: t + 101_000, message: "Preempted" }), [victim]);
    expect(steps.slice(-2).map((each) => [each.kind, each.title, each.detail])).toEqual([["evicted", "Evicted", "its quota borrows"], ["ended", "Failed", "Preempted"]]);
  });

  it("puts what was decided within the second of the binding before it", () => {
    const steps = timelineOf(pod({ scheduled: t + 50_000 }), [plan({ made: t + 50_700, took_ms: 2000 })]);
    expect(steps.map((each) => each.kind)).toEqual(["created", "nominated", "bound", "slice", "running"]);
  });

  it("does not take a decision for another pod for its own, and says that a repartitioning failed", () => {
    expect(timelineOf(pod(), [plan({ pods: [] })]).map((each) => each.kind)).toEqual(["created", "bound", "running"]);
    const failed = timelineOf(pod({ state: "pending", scheduled: 0, started: 0 }), [plan({ state: "failed", why: "NVML: in use" })]);
    expect(failed.at(-1)).toMatchObject({ kind: "why", title: "Repartitioning failed", detail: "n1: NVML: in use", warning: true });
  });

  it("says that gates hold it, without an Event", () => {
    const steps = timelineOf(pod({ state: "pending", reason: "SchedulingGated", scheduled: 0, started: 0 }), []);
    expect(steps.map((each) => each.kind)).toEqual(["created", "gated"]);
  });

  it("has phases without gaps", () => {
    const running = phasesOf(pod(), [plan()], t + 164_000);
    expect(running.map((each) => [each.id, each.ms / 1000, each.open])).toEqual([
      ["waiting", 55, false], ["repartitioning", 5, false], ["starting", 4, false], ["running", 100, true],
    ]);
    expect(running.reduce((sum, each) => sum + each.ms, 0)).toBe(164_000);
    expect(phasesOf(pod({ state: "pending", scheduled: 0, started: 0 }), [], t + 30_000)).toEqual([{ id: "waiting", label: "waiting", ms: 30_000, open: true }]);
    // The scheduler binds at once, and the slice is created then.
    const late = phasesOf(pod({ scheduled: t + 50_000 }), [plan()], t + 164_000);
    expect(late.map((each) => [each.id, each.ms / 1000])).toEqual([["waiting", 50], ["repartitioning", 5], ["starting", 9], ["running", 100]]);
    // Clocks of nodes may differ.
    expect(phasesOf(pod({ started: t + 59_000 }), [], t + 58_000).every((each) => each.ms >= 0)).toBe(true);
    const ended = phasesOf(pod({ state: "succeeded", finished: t + 70_000 }), [], t + 900_000);
    expect(ended.at(-1)).toMatchObject({ id: "running", ms: 6000, open: false });
  });
});

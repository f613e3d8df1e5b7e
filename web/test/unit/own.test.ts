import { describe, expect, it } from "vitest";
import type { Gpu, Holder, Node, Pod } from "../../src/api/types";
import { heldBy, runningFirst } from "../../src/lib/own";

const holder = (namespace: string): Holder => ({ namespace, pod: "p" });
const gpu = (slots: number, instances: [number, Holder[], number?][], holders: Holder[] = []): Gpu => ({
  index: 0, gpu: "GPU", product: "A100", memory: 1, slots, mig: slots > 0, health: "", holders,
  instances: instances.map(([size, by, utilization], start) => ({
    id: start, instance: `MIG-${start}`, profile: "x", start: instances.slice(0, start).reduce((sum, each) => sum + each[0], 0), size, holders: by,
    ...(utilization === undefined ? {} : { metrics: { utilization } }),
  })),
});
const node = (name: string, gpus: Gpu[]): Node => ({ node: name, mode: "mig", fresh_at: 0, ready: true, gpus });

describe("what a namespace holds", () => {
  it("is counted in GPUs by the size of slices, idle ones apart, of its own pods alone", () => {
    const nodes = [
      node("a", [gpu(8, [[4, [holder("mine")], 0.9], [2, [holder("mine")], 0.01], [2, [holder("theirs")], 0.01]])]),
      node("b", [gpu(0, [], [holder("mine")])]),
      node("c", [gpu(8, [[8, [holder("theirs")]]])]),
    ];
    expect(heldBy(nodes, "mine")).toEqual({ gpus: 1.8, idle: 0.3, nodes: 2 });
    expect(heldBy(nodes, "nobody")).toEqual({ gpus: 0, idle: 0, nodes: 0 });
  });

  it("splits a piece that pods of several namespaces share", () => {
    expect(heldBy([node("a", [gpu(8, [[8, [holder("mine"), holder("theirs")], 0.5]])])], "mine").gpus).toBe(0.5);
  });

  it("lists the least busy pod first, unmeasured ones last, and none that waits or has ended", () => {
    const pod = (name: string, state: Pod["state"], utilization: number | null): Pod => ({
      uid: name, namespace: "mine", name, node: "a", state, reason: "", message: "", requests: {}, priority: 0, quota: "", capacity: "", created: 1, scheduled: 1,
      started: 1, finished: 0, slices: [{ node: "a", gpu: 0, profile: "", start: 0, instance: "", utilization, memory_used: null }], estimate: null, estimate_by: "", why: "",
    });
    const all = [pod("b", "running", 0.9), pod("unknown", "running", null), pod("idle", "running", 0.01), pod("waits", "pending", null), pod("over", "succeeded", 0), pod("new", "starting", 0.5)];
    expect(runningFirst(all).map((each) => each.name)).toEqual(["idle", "new", "b", "unknown"]);
  });
});

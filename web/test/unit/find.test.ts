import { describe, expect, it } from "vitest";
import type { Gpus, Pod, Quota } from "../../src/api/types";
import { entryOf, find, gpuEntries, namespaceEntries, podEntries, podQuery, termsOf, type Entry } from "../../src/lib/find";

const pod = (name: string, more: Partial<Pod> = {}): Pod => ({
  uid: `uid-${name}`, namespace: "vision", name, node: "", state: "running", reason: "", message: "", requests: { "nvidia.com/mig-1g.10gb": 1 },
  priority: 0, quota: "vision/quota", capacity: "", created: 1, scheduled: 0, started: 0, finished: 0, slices: [], estimate: null, estimate_by: "", why: "", ...more,
});

const gpus: Gpus = {
  at: 0, fresh_at: 0,
  nodes: [{
    node: "a100-01", mode: "mig", fresh_at: 0, ready: true,
    gpus: [{
      index: 3, gpu: "GPU-1b2c3d4e-aaaa", product: "NVIDIA A100-SXM4-40GB", memory: 40960, slots: 8, mig: true, health: "",
      instances: [{ id: 1, instance: "MIG-9f8e7d6c-bbbb", profile: "1g.5gb", start: 0, size: 1, holders: [{ namespace: "speech", pod: "asr-1" }] }],
      holders: [{ namespace: "alone", pod: "whole-1" }],
    }],
  }],
};
const titles = (all: readonly Entry[], query: string): string[] => find(all, query, 20).flatMap((each) => each.entries.map((entry) => entry.title));

describe("the search", () => {
  it("puts the title itself before its beginning, a beginning of a word before its inside, and the note last", () => {
    const all = [
      entryOf("node", "retrain", "", "#/"), entryOf("node", "other", "train", "#/"), entryOf("node", "my-train", "", "#/"),
      entryOf("node", "trainer", "", "#/"), entryOf("node", "train-10", "", "#/"), entryOf("node", "train-2", "", "#/"), entryOf("node", "train", "", "#/"),
    ];
    expect(titles(all, "Train")).toEqual(["train", "train-2", "train-10", "trainer", "my-train", "retrain", "other"]);
  });

  it("needs all words, in any order and case", () => {
    const all = podEntries([pod("segment-7-abcde", { node: "a100-01" }), pod("segment-8-fghij", { node: "h100-01" })]);
    expect(titles(all, "H100 segment")).toEqual(["vision/segment-8-fghij"]);
    expect(titles(all, "vision/segment-7")).toEqual(["vision/segment-7-abcde"]);
    expect(titles(all, "segment nowhere")).toEqual([]);
    expect(termsOf("  A  b\t")).toEqual(["a", "b"]);
  });

  it("puts the kind of the best match first, and says how many more there are", () => {
    const all = [...Array.from({ length: 20 }, (_, number) => entryOf("pod", `team/quota-job-${number}`, "", "#/")), entryOf("page", "Quotas", "", "#/quotas")];
    const found = find(all, "quota");
    expect(found.map((each) => [each.kind, each.entries.length, each.more])).toEqual([["page", 1, 0], ["pod", 5, 15]]);
  });

  it("finds a GPU by its UUID and by that of a MIG instance", () => {
    const all = gpuEntries(gpus);
    expect(titles(all, "GPU-1b2c3d4e-aaaa")[0]).toBe("a100-01 · GPU 3");
    expect(titles(all, "mig-9f8e7d6c")).toEqual(["a100-01 · GPU 3"]);
    expect(find(all, "MIG-9f8e7d6c-bbbb")[0]?.entries[0]?.link).toBe("#/map?sel=a100-01%2F3");
    expect(titles(all, "a100-01/3")).toEqual(["a100-01 · GPU 3"]);
  });

  it("knows namespaces by quotas, by what holds a GPU, and the user's own, each once", () => {
    const quota: Quota = { type: "CompositeElasticQuota", namespace: "", name: "research", namespaces: ["speech", "vision"], resources: {} };
    const found = namespaceEntries(gpus, [quota], ["mine", "vision"]);
    expect(found.map((each) => each.title)).toEqual(["alone", "mine", "speech", "vision"]);
    expect(found[2]?.note).toContain("research");
  });

  it("asks the server for the longest word, and for a namespace exactly", () => {
    const known = new Set(["vision"]);
    expect(podQuery("a100 segment", known)).toEqual({ q: "segment" });
    expect(podQuery("vision/seg", known)).toEqual({ q: "seg", namespace: "vision" });
    expect(podQuery("vis/segment-7", known)).toEqual({ q: "segment-7" });
    expect(podQuery("vision/", known)).toEqual({ q: "", namespace: "vision" });
    expect(podQuery("x", known)).toBeUndefined();
    expect(podQuery("   ", known)).toBeUndefined();
  });

  it("returns few of 20,000 pods", () => {
    const all = podEntries(Array.from({ length: 20_000 }, (_, number) => pod(`train-${number}`)));
    const began = performance.now();
    const found = find(all, "vision/train 1", 20);
    console.log(`20,000 pods searched in ${(performance.now() - began).toFixed(0)} ms`);
    expect(found[0]?.entries).toHaveLength(20);
    expect(found[0]!.more).toBeGreaterThan(5000);
  });
});

import { describe, expect, it } from "vitest";
import type { Gpu, Gpus } from "../../src/api/types";
import { alternativesTo, beforeAfter, podOfWish, repartitionsOf, resourceOf, sizesOf, wishName, wishOf } from "../../src/lib/wish";

const gpu = (profiles: string[], product = "NVIDIA A100-SXM4-80GB"): Gpu => ({
  index: 0, gpu: "GPU-1", product, memory: 81920, slots: 8, mig: true, health: "", holders: [],
  instances: profiles.map((profile, id) => ({ id, instance: `MIG-${id}`, profile, start: id, size: 1, holders: [] })),
});
const gpus: Gpus = { at: 0, fresh_at: 0, nodes: [{ node: "n", mode: "mig", fresh_at: 0, ready: true, gpus: [gpu(["1g.10gb", "2g.20gb", "1g.10gb"]), gpu(["10gb"], "NVIDIA L4")] }] };
const sizes = sizesOf(gpus, [{ requests: { "nvidia.com/mig-7g.80gb": 1, cpu: 4 } }]);

describe("the form of what-if", () => {
  it("knows resources of MIG, MPS and time slices, the smallest first, with a model", () => {
    expect(["1g.10gb", "1g.10gb+me", "10gb", "shared"].map(resourceOf)).toEqual(["nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb+me", "nvidia.com/gpu-10gb", "nvidia.com/gpu.shared"]);
    expect(sizes.map((each) => [each.id, each.note])).toEqual([
      ["nvidia.com/gpu-10gb", "L4"], ["nvidia.com/mig-1g.10gb", "A100-SXM4-80GB"], ["nvidia.com/mig-2g.20gb", "A100-SXM4-80GB"], ["nvidia.com/mig-7g.80gb", ""],
    ]);
  });

  it("takes fields from the address, and nothing that is no pod", () => {
    const wish = wishOf({ need: "gpu", count: "3", in: "vision", cpu: "0", priority: "high" }, sizes, "default");
    expect(wish).toMatchObject({ need: "gpu", count: 3, namespace: "vision", cpu: 0, ram: 8, priority: "high", size: "nvidia.com/mig-1g.10gb" });
    expect(wishOf({ need: "moon", count: "-7", size: 'x"\n: y', gib: "1e99" }, sizes, "default")).toMatchObject({ need: "slice", count: 1, size: "nvidia.com/mig-1g.10gb", gib: 4096 });
  });

  it("writes a pod that says the same, quoted where a name would be more than a name", () => {
    const text = podOfWish(wishOf({ size: "nvidia.com/mig-2g.20gb", count: "2", priority: "100", name: 'a"\nevil: true' }, sizes, "vision"));
    expect(text).toContain('        nvidia.com/mig-2g.20gb: "2"');
    expect(text).toContain("  priority: 100");
    expect(text).toContain('  name: "a\\"\\nevil: true"');
    expect(text.split("\n").some((line) => line.startsWith("evil"))).toBe(false);
    expect(podOfWish(wishOf({ priority: "high" }, sizes, "a"))).toContain("priorityClassName: high");
    const memory = podOfWish(wishOf({ need: "memory", gib: "20", cpu: "0", ram: "0" }, sizes, "a"));
    expect(memory).toContain("nos.nebuly.com/need-memory: 20Gi");
    expect(memory).not.toContain("limits");
  });

  it("proposes the next smaller and larger size of the kind, and a whole GPU", () => {
    const of = (size: string): string[] => alternativesTo(wishOf({ size }, sizes, "a"), sizes).map(wishName);
    expect(of("nvidia.com/mig-2g.20gb")).toEqual(["1g.10gb", "7g.80gb", "whole GPU"]);
    expect(of("nvidia.com/mig-1g.10gb")).toEqual(["2g.20gb", "whole GPU"]);
    expect(alternativesTo(wishOf({ need: "memory" }, sizes, "a"), sizes)).toEqual([]);
    expect(alternativesTo(wishOf({ need: "gpu", count: "2" }, sizes, "a"), sizes).map(wishName)).toEqual(["2 × 2g.20gb", "2 × 7g.80gb"]);
  });

  it("draws the GPU before and after, and ignores what is no change", () => {
    expect(repartitionsOf([{ node: "n", gpu: 0, make: ["3g.40gb", 7], destroy: ["1g.10gb"] }, null, "x", { node: 1 }])).toEqual([{ node: "n", gpu: 0, make: ["3g.40gb"], destroy: ["1g.10gb"] }]);
    const { before, after } = beforeAfter(gpu(["1g.10gb", "1g.10gb"]), { node: "n", gpu: 0, make: ["3g.40gb"], destroy: ["1g.10gb", "2g.20gb"] });
    expect(before.profiles).toEqual({ "1g.10gb": 2 });
    expect(after.profiles).toEqual({ "1g.10gb": 1, "3g.40gb": 1 });
  });
});

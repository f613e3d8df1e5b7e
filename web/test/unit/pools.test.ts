import { describe, expect, it } from "vitest";
import type { Pool } from "../../src/api/types";
import { barOf, costOf, gpuOf, modeOf, price, stateOf, sumOf } from "../../src/lib/pools";
import { Answers } from "../double/answers";
import { SimCluster } from "../double/cluster";

const pool = (more: Partial<Pool> = {}): Pool => ({
  id: "a100", name: "a100", gpu: { model: "A100-80GB", product: "", count: 8, partitioning: "mig" }, nodes: 2, coming: 1, going: 1,
  wanted: 3, min: 1, max: 8, price: 12.25, failures: 0, state: "ready", why: "", ...more,
});

describe("node pools", () => {
  it("say what a node of theirs has", () => {
    expect([gpuOf(pool()), modeOf(pool())]).toEqual(["8 × A100-80GB", "mig"]);
    const product = pool({ gpu: { model: "", product: "NVIDIA-L4", count: 1, partitioning: "none" } });
    expect([gpuOf(product), modeOf(product)]).toEqual(["1 × NVIDIA-L4", "whole"]);
    const none = pool({ gpu: { model: "", product: "", count: 0, partitioning: "none" } });
    expect([gpuOf(none), modeOf(none)]).toEqual(["–", "–"]);
    expect([gpuOf({ id: "x", name: "x" }), modeOf({ id: "x", name: "x" })]).toEqual(["–", "–"]);
  });
  it("say how they fare, in words and tone", () => {
    const now = Date.UTC(2026, 5, 17, 14, 20, 0);
    expect(stateOf(pool(), now)).toEqual({ words: "ready", tone: "good" });
    expect(stateOf(pool({ why: "node n has 4 GPUs, but the pool requires 8" }), now).tone).toBe("warn");
    const closed = pool({ state: "closed", closed_until: now + 60_000, why: "2 nodes did not come" });
    expect(stateOf(closed, now).words).toMatch(/^closed until \d\d:\d\d$/);
    expect(stateOf(closed, now + 60_000).words).toBe("was closed");
    expect([stateOf(pool({ state: "failing" }), now), stateOf(pool({ state: "invalid" }), now)].map((each) => each.tone)).toEqual(["bad", "bad"]);
    expect(stateOf({ id: "x", name: "x" }, now)).toEqual({ words: "unknown", tone: "muted" });
    expect(stateOf(pool({ state: "of a later version" as Pool["state"] }), now).words).toBe("unknown");
  });
  it("have bars that never leave their room", () => {
    expect(barOf(pool())).toEqual({ nodes: 0.25, going: 0.125, coming: 0.125, min: 0.125 });
    for (const wild of [pool({ max: 0 }), pool({ nodes: 99 }), pool({ nodes: -5, coming: Number.NaN }), pool({ min: 50 }), { id: "x", name: "x" }]) {
      const bar = barOf(wild);
      expect(bar.nodes + bar.going + bar.coming).toBeLessThanOrEqual(1.000001);
      expect(Object.values(bar).every((each) => each >= 0 && each <= 1)).toBe(true);
    }
  });
  it("cost what their nodes cost, those that go included", () => {
    expect(costOf(pool())).toBeCloseTo(36.75);
    expect(costOf(pool({ price: 0 }))).toBeNull();
    expect(sumOf([pool(), pool({ price: 0 })])).toEqual({ nodes: 4, coming: 2, going: 2, cost: 36.75 });
    expect(sumOf([pool({ price: 0 })]).cost).toBeNull();
    expect([price(36.75), price(0.0005), price(1234.5), price(0), price(null)]).toEqual(["36.75", "0.001", "1,234.50", "–", "–"]);
  });
  it("are in the double, one of each state", () => {
    const base = Date.UTC(2026, 5, 17, 14, 20, 0);
    const { pools } = new Answers(new SimCluster(base, 0.25), base).pools();
    expect(new Set(pools.map((each) => each.state))).toEqual(new Set(["ready", "closed", "failing", "invalid", "unknown"]));
    expect(pools.some((each) => (each.coming ?? 0) > 0)).toBe(true);
  });
});

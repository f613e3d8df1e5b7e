// The double is the basis of the browser tests: it must be deterministic and plausible.
import { describe, expect, it } from "vitest";
import { Answers } from "../double/answers";
import { SimCluster } from "../double/cluster";
import { cellsOf } from "../../src/map/cells";
import { partsOf } from "../../src/lib/capacity";

const base = Date.UTC(2026, 5, 17, 14, 20, 0);
const one = new Answers(new SimCluster(base, 0.25), base);

describe("the simulated cluster", () => {
  it("is the same each time", () => {
    const other = new Answers(new SimCluster(base, 0.25), base);
    expect(other.overview()).toEqual(one.overview());
    expect(other.workloads(new URLSearchParams({ limit: "50" }))).toEqual(one.workloads(new URLSearchParams({ limit: "50" })));
  });
  it("never gives a slot to two instances, now or in the past", () => {
    for (const at of [base, base - 3_600_000, base - 20 * 3_600_000]) {
      for (const node of one.cluster.nodes) {
        for (const gpu of one.node(node, at).gpus) {
          const taken = new Set<number>();
          for (const each of gpu.instances) {
            for (let slot = each.start; slot < each.start + each.size; slot++) {
              expect(taken.has(slot)).toBe(false);
              taken.add(slot);
            }
          }
          expect(cellsOf(gpu).length).toBeGreaterThan(0);
        }
      }
    }
  });
  it("has everything that pages show: running, waiting with a remedy, decisions, borrowing", () => {
    const { pods } = one.workloads(new URLSearchParams({ state: "pending", limit: "1000" }));
    expect(pods.length).toBeGreaterThan(0);
    expect(pods.every((pod) => pod.why.includes("Remedy: "))).toBe(true);
    expect(new Set(one.cluster.decisions.map((each) => each.type))).toEqual(new Set(["plan", "reclaim"]));
    expect(partsOf(one.overview()).reduce((sum, part) => sum + part.share, 0)).toBeCloseTo(1);
  });
  it("answers series with as many points as were asked for", () => {
    const query = new URLSearchParams({ metric: "allocated", subject: "cluster", from: String(base - 30 * 86_400_000), to: String(base), points: "300" });
    const { series } = one.series(query);
    expect(series[0]!.at.length).toBeGreaterThan(290);
    expect(series[0]!.at.length).toBeLessThanOrEqual(301);
    expect(series[0]!.mean.every((value) => value !== null && value >= 0 && value <= 1)).toBe(true);
  });
});

import { describe, expect, it } from "vitest";
import type { Savings } from "../../src/api/types";
import { moneySpread, savingsRows, spreadText, waitsText } from "../../src/lib/savings";

const same = (value: number): { low: number; middle: number; high: number } => ({ low: value, middle: value, high: value });

const data: Savings = {
  cluster: "prod", from: 0, to: 1, gpus: 40, gpu_hours: 960, pods: 1200, started: 1190, waiting_hours: 31.26, median_wait_ms: 8_000, p95_wait_ms: 600_000, unknown_runs: 10,
  left_out: 0, replays: 7, currency: "EUR", cost: "960.000000", decisions: [],
  alternatives: [
    {
      name: "whole", waiting_hours: same(900), started: same(400), gpus: same(640), enough: false, saved_gpu_hours: same(14_400),
      saved: { low: "14400.000000", middle: "14400.000000", high: "14400.000000" }, layouts: [{ layout: "whole", gpus: 40 }],
    },
    {
      name: "static", waiting_hours: { low: 40, middle: 50, high: 60 }, started: same(1100), gpus: { low: 44, middle: 48, high: 52 }, enough: true,
      saved_gpu_hours: { low: 96, middle: 192, high: 288 }, saved: null,
      layouts: [{ layout: "7x1g.5gb", gpus: 20 }, { layout: "whole", gpus: 12 }, { layout: "2x3g.20gb", gpus: 5 }, { layout: "7g.40gb", gpus: 3 }],
    },
  ],
};

describe("savings", () => {
  it("shows a range only where replays differ", () => {
    expect(spreadText(same(240))).toBe("240");
    expect(spreadText({ low: 1.24, middle: 2, high: 1234.5 })).toBe("2 (1.2 to 1,235)");
    expect(moneySpread({ low: "1.000000", middle: "2.500000", high: "12345.000000" })).toBe("2.50 (1.00 to 12,345)");
  });

  it("has a row for what was and one for each alternative", () => {
    const [was, wholes, fixed] = savingsRows(data);
    expect(was).toEqual({ name: "As it was", waiting: "31.3", started: "1,190", gpus: "40", saved: "", layouts: "" });
    expect(wholes).toMatchObject({ name: "Whole GPUs", gpus: "over 640", saved: "over 14,400", layouts: "" });
    expect(fixed).toMatchObject({ name: "Static layouts", gpus: "48 (44 to 52)", saved: "192 (96 to 288) GPU hours", layouts: "20 × 7x1g.5gb, 12 × whole, 5 × 2x3g.20gb" });
  });

  it("says how long pods waited", () => {
    expect(waitsText(data)).toBe("half of the pods that started waited at most 8 s, 95 % at most 10 min");
  });
});

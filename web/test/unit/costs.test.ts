// Costs: parts that add up, periods, kinds of waste.
import { describe, expect, it } from "vitest";
import { costCategories, type Cost, type CostAmounts, type CostCategory } from "../../src/api/types";
import { besideMonth, centParts, cents, costParts, costSpan, daysOf, hasCosts, hourlyOf, hours, hoursOf, micros, money, monthTitle, rowName, stepOf, sum, wastesOf, workedHour } from "../../src/lib/costs";
import { sharedHash } from "../../src/lib/share";
import { Answers } from "../double/answers";
import { SimCluster } from "../double/cluster";
import { Costs } from "../double/costs";

const amounts = (categories: Partial<Record<CostCategory, string>>, cost: string | null, more: Partial<CostAmounts> = {}): CostAmounts => ({
  cost, gpu_hours: "10.000000", unpriced_gpu_hours: "0.000000", borrowed: "0.000000",
  categories: Object.fromEntries(costCategories.map((each) => [each, categories[each] ?? "0.000000"])) as Record<CostCategory, string>, ...more,
});

describe("amounts", () => {
  it("are integers of millionths, and nothing else is an amount", () => {
    expect(micros("12.345678")).toBe(12_345_678);
    expect(micros("8999999999.999999")).toBe(8_999_999_999_999_999);
    for (const wrong of [null, undefined, "", "12", "1.5", "-1.000000", "NaN", "1.0000000"]) expect(micros(wrong)).toBeNull();
  });
  it("have no more digits than their size makes sense of", () => {
    expect([0, 4_999, 5_000, 9_500_000, 999_990_000, 12_345_678_901, null].map((each) => sum(each))).toEqual(["0.00", "<0.01", "0.01", "9.50", "999.99", "12,346", "–"]);
    expect(["0.012345", "0.642000", "64.200000", "128213.400000"].map((each) => hours(each))).toEqual(["0.012", "0.64", "64", "128,213"]);
    expect(money(1_000_000, "EUR")).toBe("1.00 EUR");
  });
});

describe("the parts of a cost", () => {
  it("add up to it, with what the reader may not see", () => {
    const parts = costParts(amounts({ used: "3.000001", idle: "1.000000" }, "7.000003"));
    expect(parts.map((part) => [part.id, part.cost])).toEqual([["used", 3_000_001], ["idle", 1_000_000], ["others", 3_000_002]]);
  });
  // The same amounts as in src/cmd/cli/money_test.cc.
  it("add up to the cent when each is shown in cents", () => {
    const total = amounts({ used: "1000.004000", idle: "234.004000", unknown: "0.001000", free: "0.004000", not_reported: "0.554000" }, "1235.567000");
    expect(cents(micros(total.cost))).toBe("1,235.57");
    expect(centParts(total).map((part) => [part.id, cents(part.cost)])).toEqual([["used", "1,000.00"], ["idle", "234.01"], ["not_reported", "0.56"], ["others", "1.00"]]);
    expect(centParts(amounts({}, null, { unpriced_gpu_hours: "10.000000" }))).toEqual([]);
    // Halves of cents, which have no exact double.
    expect([1_005_000, 12_345_675_000, 0, null].map(cents)).toEqual(["1.01", "12,345.68", "0.00", "–"]);
  });
  it("of the double add up for every grouping, each reader and each time", { timeout: 30_000 }, () => {
    const base = Date.UTC(2026, 5, 17, 14, 20, 0);
    const costs = new Costs(new Answers(new SimCluster(base, 0.1), base));
    for (const namespaces of [null, ["vision", "speech"]]) {
      for (const by of ["namespace", "quota", "pool", "model", "workload", "day", "category"]) {
        const { rows, total } = costs.cost(new URLSearchParams({ from: String(base - 30 * 3_600_000 - 1234), to: String(base), by, limit: "5" }), namespaces);
        for (const key of ["cost", "gpu_hours", "unpriced_gpu_hours", "borrowed"] as const) {
          expect(rows.reduce((all, row) => all + (micros(row[key]) ?? 0), 0)).toBe(micros(total[key]));
        }
        expect(costParts(total).reduce((all, part) => all + part.cost, 0)).toBe(micros(total.cost));
        expect(centParts(total).reduce((all, part) => all + part.cost, 0)).toBe(Math.round((micros(total.cost) ?? 0) / 10_000) * 10_000);
        expect(costParts(total).some((part) => part.id === "others")).toBe(namespaces !== null);
      }
    }
  });
});

it("is shown where there are prices and GPUs", () => {
  const answer = (configured: boolean, gpu_hours: string): Cost => ({
    cluster: "", from: 0, to: 1, by: "namespace", configured, currency: "EUR", note: "", rows: [], total: amounts({}, "0.000000", { gpu_hours }),
  });
  expect([answer(true, "1.000000"), answer(true, "0.000000"), answer(false, "1.000000"), undefined].map(hasCosts)).toEqual([true, false, false, false]);
});

describe("the time of costs", () => {
  const now = Date.UTC(2026, 10, 12, 9, 30);
  it("is this month without any choice, and never ends in the future", () => {
    expect(costSpan(undefined, now)).toEqual({ id: "", month: "2026-11", from: Date.UTC(2026, 10, 1), to: now, moving: true });
  });
  it("is a month, a length or dates, the last one included", () => {
    expect(costSpan("2026-02", now)).toEqual({ id: "2026-02", month: "2026-02", from: Date.UTC(2026, 1, 1), to: Date.UTC(2026, 2, 1), moving: false });
    expect(costSpan("7d", now)).toEqual({ id: "7d", from: now - 7 * 86_400_000, to: now, moving: true });
    expect(costSpan("2026-11-03..2026-11-04", now)).toMatchObject({ from: Date.UTC(2026, 10, 3), to: Date.UTC(2026, 10, 5), moving: false });
    expect(costSpan("2026-11-03..2026-11-12", now)).toMatchObject({ to: now, moving: true });
  });
  it("is this month again for what makes no sense", () => {
    for (const wrong of ["2026-13", "2027-01", "2026-11", "x", "2026-11-09..2026-11-03", "2026-12-01..2026-12-02", "2020-01-01..2026-01-01", "toString"]) {
      expect(costSpan(wrong, now).month, wrong).toBe("2026-11");
    }
  });
  it("is drawn by hours up to two days", () => {
    expect([stepOf(costSpan("24h", now)), stepOf(costSpan("7d", now))]).toEqual(["hour", "day"]);
  });
  it("goes over the end of the year", () => {
    expect([besideMonth("2026-12", 1), besideMonth("2026-01", -1)]).toEqual(["2027-01", "2025-12"]);
    expect([daysOf("2026-02").length, daysOf("2026-12").at(-1)]).toEqual([28, "2026-12-31"]);
    const some = hoursOf(["2026-11-30T22:00Z", "2026-11-30T23:00Z"]);
    expect([some.length, some[0], some[1], some[2]]).toEqual([12, "2026-11-30T22:00Z", "2026-11-30T23:00Z", "2026-12-01T00:00Z"]);
    expect(hoursOf(["2026-11-30", "2026-12-01"], 1)).toEqual(["2026-11-30", "2026-12-01"]);
    expect(monthTitle("2026-11")).toBe("November 2026");
  });
  it("is named in a link that shows the same later", () => {
    const fixed = { from: 0, to: now, now };
    expect(sharedHash({ page: "cost", params: {} }, "prod", fixed)).toBe("#/cost?cluster=prod&span=2026-11");
    expect(sharedHash({ page: "cost", params: { span: "2026-10" } }, "prod", fixed)).toBe("#/cost?cluster=prod&span=2026-10");
    expect(sharedHash({ page: "cost", params: {} }, "prod", undefined)).toBe("#/cost?cluster=prod");
  });
});

describe("waste", () => {
  const period = amounts({ free: "1.000000", unpartitioned: "2.000000", fragmented: "4.000000", stranded: "8.000000", idle: "16.000000", used: "32.000000", unknown: "64.000000" }, "127.000000");
  it("has four kinds, which share nothing, and silence if there is some", () => {
    expect(wastesOf(period, () => 0).map((each) => [each.id, each.cost / 1e6])).toEqual([["free", 3], ["locked", 4], ["stranded", 8], ["idle", 16]]);
    expect(wastesOf(amounts({ not_reported: "1.000000" }, "1.000000"), () => 0).map((each) => each.id)).toContain("silent");
  });
  it("of an hour at present is that of the time that has data", () => {
    const now = Date.UTC(2026, 10, 12);
    const recent = { cluster: "", from: now - 3_600_000, to: now, by: "category", configured: true, currency: "EUR", note: "", rows: [], total: period } as const;
    expect(hourlyOf({ ...recent, rows: [] }, 0)("fragmented")).toBe(4_000_000);
    expect(hourlyOf({ ...recent, rows: [] }, now - 1_800_000)("fragmented")).toBe(8_000_000);
    expect(hourlyOf(undefined, 0)("idle")).toBe(0);
  });
});

it("an hour of work costs more than a GPU for an hour, by what is not worked", () => {
  expect(workedHour(amounts({ used: "5.000000" }, "20.000000"))).toBe(8_000_000);
  expect(workedHour(amounts({}, "20.000000"))).toBeNull();
  expect(workedHour(amounts({ used: "5.000000" }, "20.000000", { unpriced_gpu_hours: "1.000000" }))).toBeNull();
});

it("rows without a name say why", () => {
  const row = { ...amounts({}, "0.000000"), namespace: "", name: "" };
  expect(rowName({ ...row, kind: "unallocated" }, "namespace")).toBe("no pod");
  expect(rowName({ ...row, kind: "none" }, "pool")).toBe("without a pool");
  expect(rowName({ ...row, kind: "others" }, "pool")).toBe("not visible to you");
});

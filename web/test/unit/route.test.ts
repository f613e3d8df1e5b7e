import { describe, expect, it } from "vitest";
import { address } from "../../src/api/client";
import { rangeOf, tickStep } from "../../src/lib/range";
import { format, parse } from "../../src/lib/route";

describe("the address", () => {
  it("survives a round trip, whatever is in it", () => {
    const route = { page: "map" as const, params: { sel: "gpu-1/3", q: "a&b=c#d é", at: "1781706000000" } };
    expect(parse(format(route))).toEqual(route);
  });
  it("falls back to the overview", () => {
    for (const hash of ["", "#", "#/", "#/no-such-page?x=1", "#//evil.example/", "#javascript:alert(1)"]) {
      expect(parse(hash).page).toBe("overview");
    }
  });
  it("leaves out what is empty and keeps an order, so that equal views have equal links", () => {
    expect(format({ page: "workloads", params: { state: "", q: "x", ns: "a" } })).toBe("#/workloads?ns=a&q=x");
  });
  it("does not take prototypes for parameters", () => {
    expect(parse("#/map?__proto__=1").params.sel).toBeUndefined();
    expect(({} as Record<string, unknown>).sel).toBeUndefined();
  });
});

describe("API addresses", () => {
  it("lie below wherever the page lies", () => {
    expect(address("gpus", { at: 5 }, "https://host/some/prefix/index.html#/map").href).toBe(
      "https://host/some/prefix/api/v1/gpus?at=5",
    );
    expect(address("session", {}, "https://host/").href).toBe("https://host/api/v1/session");
  });
  it("repeat subjects and leave out what is not asked", () => {
    const url = address("series", { subject: ["gpu/a", "gpu/b"], cluster: "", at: undefined }, "http://h/");
    expect(url.search).toBe("?subject=gpu%2Fa&subject=gpu%2Fb");
  });
});

describe("stretches of time", () => {
  it("end at the clock, in whole steps", () => {
    expect(rangeOf({ range: "1h" }, 10_000_001, 10_000)).toMatchObject({ to: 10_010_000, from: 6_410_000, moving: true });
  });
  it("are fixed when both ends are named", () => {
    expect(rangeOf({ from: "1000", to: "2000" }, 1e12, 10)).toMatchObject({ from: 1000, to: 2000, moving: false });
  });
  it("do not follow nonsense", () => {
    const wild: Record<string, string>[] = [{ range: "999y" }, { from: "5", to: "4" }, { from: "x", to: "9" }, { from: "-1", to: "9" }];
    for (const params of wild) {
      expect(rangeOf(params, 1e12, 10)).toMatchObject({ id: "auto", moving: true });
    }
  });
  it("begin with the first data, unless an address says otherwise", () => {
    const [now, minute] = [1e12, 60_000];
    const span = (since: number, params = {}): number => {
      const { from, to } = rangeOf(params, now, 10_000, since);
      return to - from;
    };
    expect(span(now - 25 * minute)).toBe(25 * minute);
    expect(span(now - minute)).toBe(10 * minute);
    expect(span(now - 90 * 60 * minute)).toBe(360 * minute);
    expect(span(0)).toBe(360 * minute);
    expect(span(now - 25 * minute, { range: "1h" })).toBe(60 * minute);
  });
  it("are divided at round times, few enough to be read", () => {
    for (const span of [3_600_000, 86_400_000, 30 * 86_400_000]) {
      expect(span / tickStep(span, 8)).toBeLessThanOrEqual(8);
    }
    expect(tickStep(3_600_000, 12)).toBe(300_000);
  });
});

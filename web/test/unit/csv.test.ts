import { describe, expect, it } from "vitest";
import type { Node, Pod } from "../../src/api/types";
import { csvOf, fileName, iso } from "../../src/lib/csv";
import { parse } from "../../src/lib/route";
import { sharedHash } from "../../src/lib/share";
import { gpusCsv, podsCsv, quotasCsv, seriesCsv } from "../../src/lib/tables";

const one = (value: string | number | boolean | null | undefined): string => csvOf([{ name: "x", of: () => value }], [0]).split("\r\n")[1] ?? "";

describe("CSV", () => {
  it("is RFC 4180: CRLF after every line, quotes around commas, quotes and breaks, doubled quotes", () => {
    const text = csvOf([{ name: "a", of: (row: string[]) => row[0] }, { name: "b,c", of: (row: string[]) => row[1] }], [["1", 'say "hi"'], ["x\ny", "z"]]);
    expect(text).toBe('a,"b,c"\r\n1,"say ""hi"""\r\n"x\ny",z\r\n');
  });

  it("has no cell that a spreadsheet takes for a formula, and leaves numbers alone", () => {
    for (const text of ["=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", " =1", "\t=1", "\uff1d1"]) expect(one(text).replace(/^"/, "")[0]).toBe("'");
    expect(one('=HYPERLINK("http://x")')).toBe(`"'=HYPERLINK(""http://x"")"`);
    expect(one(-3.5)).toBe("-3.5");
    expect(one("a=b")).toBe("a=b");
  });

  it("leaves unknown values empty", () => {
    for (const value of [null, undefined, Number.NaN, Infinity]) expect(one(value)).toBe("");
    expect(one(false)).toBe("false");
    expect([iso(0), iso(null), iso(1e18), iso(Date.UTC(2026, 5, 17, 14, 20, 4, 123))]).toEqual(["", "", "", "2026-06-17T14:20:04Z"]);
  });

  it("names files after cluster, content and moment, whatever the cluster is called", () => {
    const at = Date.UTC(2026, 5, 17, 14, 20, 4);
    expect(fileName("prod", "pods", at, "csv")).toBe("nos-prod-pods-2026-06-17T14-20-04Z.csv");
    expect(fileName("../../etc/passwd", "quotas of nos.nebuly.com/gpu-memory", at, "csv")).toBe("nos-etc-passwd-quotas-of-nos.nebuly.com-gpu-memory-2026-06-17T14-20-04Z.csv");
  });

  it("has a line for each pod with reason and remedy apart", () => {
    const pod = {
      uid: "1", namespace: "vision", name: "train-1", node: "", state: "pending", reason: "", message: "", requests: { "nvidia.com/mig-1g.10gb": 2 }, priority: 5,
      quota: "vision/quota", capacity: "", created: 1000, scheduled: 0, started: 0, finished: 0, slices: [], estimate: null, estimate_by: "",
      why: "0/2 nodes are available: 2 Insufficient nvidia.com/mig-1g.10gb. Remedy: add a node, or wait.", owner: { kind: "Job", name: "train" },
    } satisfies Pod;
    const [head = "", line = ""] = podsCsv([pod]).split("\r\n");
    expect(head.split(",").slice(0, 4)).toEqual(["state", "namespace", "pod", "job"]);
    expect(line).toContain("pending,vision,train-1,Job/train,2 × 1g.10gb,5,");
    expect(line).toContain('"add a node, or wait."');
  });

  it("has a line for each piece of a GPU, with shares that make a whole", () => {
    const node: Node = {
      node: "n", mode: "mig", fresh_at: 1000, ready: true,
      gpus: [{
        index: 0, gpu: "GPU-1", product: "NVIDIA A100-SXM4-40GB", memory: 40960, slots: 8, mig: true, health: "", holders: [],
        instances: [{ id: 1, instance: "MIG-1", profile: "3g.20gb", start: 0, size: 4, holders: [{ namespace: "a", pod: "b" }], metrics: { utilization: 0.5 } }],
      }],
    };
    const lines = gpusCsv([node]).trim().split("\r\n").map((each) => each.split(","));
    const share = lines[0]!.indexOf("share_of_gpu");
    expect(lines).toHaveLength(3);
    expect(lines.slice(1).reduce((sum, each) => sum + Number(each[share]), 0)).toBe(1);
    expect(lines[1]).toContain("MIG-1");
  });

  it("has quotas of the resource alone, and series on one axis", () => {
    const amounts = { min: 1, used: 2, guaranteed: 1, borrowed: 1, lent: 0 };
    const quota = { type: "ElasticQuota" as const, namespace: "a", name: "quota", namespaces: ["a"], resources: { x: amounts } };
    expect(quotasCsv([quota], "x", new Map([["a", 3]])).split("\r\n")[1]).toBe("a,ElasticQuota,a,x,2,1,1,,1,0,3");
    expect(quotasCsv([quota], "y", new Map()).trim().split("\r\n")).toHaveLength(1);
    const series = { subject: "s", at: [1000, 2000], mean: [1, null], min: [0, null], max: [2, null] };
    expect(seriesCsv([{ label: "Use", series }, { label: "None", series: undefined }])).toBe(
      "time,Use mean,Use min,Use max,None mean,None min,None max\r\n1970-01-01T00:00:01Z,1,0,2,,,\r\n1970-01-01T00:00:02Z,,,,,,\r\n",
    );
  });
});

describe("a shared link", () => {
  const fixed = { from: 1_000_000, to: 2_000_000, now: 1_999_999 };
  it("has the cluster and all of the page's state, and follows the time unless it is fixed", () => {
    const route = parse("#/workloads?state=pending&sort=-since&q=a");
    expect(parse(sharedHash(route, "lab", undefined))).toEqual({ page: "workloads", params: { ...route.params, cluster: "lab" } });
    expect(parse(sharedHash(route, "lab", fixed)).params).toMatchObject({ at: "1990000", sort: "-since" });
  });

  it("fixes ranges of charts and the moment of the map, but not a moment that was chosen", () => {
    expect(parse(sharedHash(parse("#/overview?range=1h"), "lab", fixed)).params).toEqual({ cluster: "lab", from: "1000000", to: "2000000" });
    expect(parse(sharedHash(parse("#/map?at=5"), "lab", fixed)).params).toMatchObject({ at: "5", from: "1000000" });
    expect(parse(sharedHash(parse("#/what-if"), "lab", fixed)).params).toEqual({ cluster: "lab" });
  });
});

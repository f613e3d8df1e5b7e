import { describe, expect, it } from "vitest";
import type { Gpu, Instance, Node } from "../../src/api/types";
import { cellsOf, countSlots, describe as sentence, isEmpty, pieceName, shortProduct, teamOf, modeText, useOfNode, useText } from "../../src/map/cells";
import { fit } from "../../src/map/draw";
import { cursorOf, filterNodes, findOnMap, isMeant } from "../../src/map/find";
import { foldedNodes, foldRect, gpuRect, hit, hitFold, layOut, move } from "../../src/map/geometry";
import { frameOf, histogram } from "../../src/map/history";

const instance = (start: number, size: number, pod = "", utilization?: number): Instance => ({
  id: start, instance: `MIG-${start}`, profile: `${size}g.x`, start, size,
  holders: pod ? [{ namespace: "ns", pod, quota: "team-a" }] : [],
  ...(utilization === undefined ? {} : { metrics: { utilization } }),
});
const gpu = (index: number, instances: Instance[], more: Partial<Gpu> = {}): Gpu => ({
  index, gpu: `GPU-${index}`, product: "NVIDIA A100-SXM4-40GB", memory: 40960, slots: 8, mig: true, health: "",
  instances, holders: [], ...more,
});
const node = (name: string, gpus: Gpu[]): Node => ({ node: name, mode: "mig", fresh_at: 0, ready: true, gpus });

describe("pieces of a GPU", () => {
  it("cover the board from end to end", () => {
    const cells = cellsOf(gpu(0, [instance(4, 4, "p", 0.5), instance(1, 1)]));
    expect(cells.map((each) => [each.from, each.to, each.kind])).toEqual([
      [0, 0.125, "unpartitioned"],
      [0.125, 0.25, "free"],
      [0.25, 0.5, "unpartitioned"],
      [0.5, 1, "busy"],
    ]);
  });
  it("tell idle from busy and from what is not measured", () => {
    const kinds = (utilization?: number): string | undefined => cellsOf(gpu(0, [instance(0, 8, "p", utilization)]))[0]?.kind;
    expect(kinds(0.049)).toBe("idle");
    expect(kinds(0.05)).toBe("busy");
    expect(kinds()).toBe("held");
  });
  it("stay on the board whatever a report says", () => {
    const wild = [instance(-3, 2, "a"), instance(6, 100, "b"), instance(6, 1, "c"), instance(2, -1, "d")];
    const cells = cellsOf(gpu(0, wild));
    let at = 0;
    for (const each of cells) {
      expect(each.from).toBe(at);
      expect(each.to).toBeGreaterThan(each.from);
      at = each.to;
    }
    expect(at).toBe(1);
  });
  it("of a GPU that is not partitioned are its holders", () => {
    const shared = gpu(0, [], { slots: 0, mig: false, holders: [{ namespace: "a", pod: "x" }, { namespace: "b", pod: "y" }] });
    expect(cellsOf(shared).map((each) => [each.from, each.to, each.team])).toEqual([[0, 0.5, "a"], [0.5, 1, "b"]]);
    expect(cellsOf(gpu(0, [], { slots: 0, mig: false })).map((each) => each.kind)).toEqual(["free"]);
  });
  it("of a GPU that is shared by memory lie one after another, by size", () => {
    const share = (number: number, size: number, pod = ""): Instance => ({ ...instance(number, size, pod), profile: `${size}gb` });
    const shared = gpu(0, [share(3, 10, "b"), share(0, 20, "a"), share(9, 5)], { slots: 40, mig: false, metrics: { utilization: 0.5 } });
    expect(cellsOf(shared).map((each) => [each.from, each.to, each.kind, each.profile])).toEqual([
      [0, 0.5, "busy", "20gb"],
      [0.5, 0.75, "busy", "10gb"],
      [0.75, 0.875, "free", "5gb"],
      [0.875, 1, "unpartitioned", ""],
    ]);
  });
  it("of a GPU that pods take turns on lie on the slots of their placements", () => {
    const turn = (start: number, pod = ""): Instance => ({ ...instance(start, 2, pod), profile: "shared" });
    const turns = gpu(0, [turn(4), turn(2, "a")], { mig: false, sharing_mode: "time slices", switches: ["MIG"], metrics: { utilization: 0.5 } });
    expect(cellsOf(turns).map((each) => [each.from, each.to, each.kind, pieceName(turns, each)])).toEqual([
      [0, 0.25, "unpartitioned", ""],
      [0.25, 0.5, "busy", "time slice"],
      [0.5, 0.75, "free", "time slice"],
      [0.75, 1, "unpartitioned", ""],
    ]);
  });
  it("say whether a GPU is whole, or free for any mode", () => {
    const plain = { slots: 0, mig: false, switches: ["MIG" as const, "MPS" as const] };
    const whole = gpu(0, [], { ...plain, sharing_mode: "whole", holders: [{ namespace: "a", pod: "x" }] });
    const open = gpu(1, [], { ...plain, sharing_mode: "" });
    const offered = gpu(2, [], { ...plain, sharing_mode: "whole" });
    const pieces = (of: Gpu): unknown => cellsOf(of).map((each) => [each.kind, pieceName(of, each)]);
    expect(pieces(whole)).toEqual([["held", "whole GPU"]]);
    expect(pieces(open)).toEqual([["unpartitioned", "not divided"]]);
    expect(pieces(offered)).toEqual([["free", "whole GPU"]]);
    expect([whole, open, offered].map(modeText)).toEqual(["whole", "free", "whole"]);
    expect(sentence(node("n", [whole]), whole)).toContain("; whole; 100 per cent allocated; whole by a/x");
  });
  it("have a sharing mode even where the server reports none", () => {
    const shared = gpu(0, [instance(0, 10)], { slots: 39, mig: false });
    expect([gpu(0, [instance(0, 1)]), gpu(0, []), shared].map(modeText)).toEqual(["MIG", "free", "MPS"]);
    expect(modeText(gpu(0, [], { slots: 0, mig: false, holders: [{ namespace: "a", pod: "x" }] }))).toBe("whole");
  });
  it("of a broken GPU are all out of service", () => {
    expect(new Set(cellsOf(gpu(0, [instance(0, 4, "p")], { health: "Xid 79" })).map((each) => each.kind))).toEqual(new Set(["out"]));
  });
  it("add up to the number of GPUs", () => {
    const { total, byKind, byTeam } = countSlots([node("n", [gpu(0, [instance(0, 4, "p", 0.9)]), gpu(1, [])])]);
    expect(total).toBe(2);
    expect(Object.values(byKind).reduce((a, b) => a + b, 0)).toBeCloseTo(2);
    expect(byTeam.get("team-a")).toBe(0.5);
  });
  it("have words", () => {
    expect(sentence(node("n", [gpu(3, [])]), gpu(3, [instance(0, 4, "p", 0.9)]))).toBe(
      "node n, GPU 3, A100-SXM4-40GB; 50 per cent allocated; 4g.x by ns/p 90 per cent busy",
    );
    expect(teamOf({ namespace: "ns", pod: "p", quota: "ns/quota" })).toBe("ns");
    expect(shortProduct("NVIDIA H100 80GB HBM3")).toBe("H100 80GB");
  });
});

describe("the map's geometry", () => {
  const nodes = Array.from({ length: 125 }, (_, at) => node(`n-${at}`, Array.from({ length: 8 }, (_, index) => gpu(index, []))));
  const geometry = layOut(nodes, { width: 1000, height: 0 }, "m");
  it("fills the width without overlaps", () => {
    for (const box of geometry.boxes) {
      expect(box.x).toBeGreaterThanOrEqual(0);
      expect(box.x + box.width).toBeLessThanOrEqual(1000.001);
    }
    const first = geometry.boxes.filter((each) => each.y === geometry.boxes[0]!.y);
    expect(first.at(-1)!.x + first.at(-1)!.width).toBeCloseTo(1000);
    expect(geometry.boxes.every((box) => box.y + box.height <= geometry.height)).toBe(true);
  });
  it("finds each GPU where it is drawn", () => {
    for (const box of geometry.boxes) {
      box.node.gpus.forEach((each, place) => {
        const rect = gpuRect(geometry, box, place);
        const found = hit(geometry, rect.x + rect.width / 4, rect.y + rect.height / 2);
        expect([found?.box.node.node, found?.gpu.index]).toEqual([box.node.node, each.index]);
        expect(found?.at).toBeCloseTo(0.25);
      });
    }
    expect(hit(geometry, -1, 5)).toBeUndefined();
    expect(hit(geometry, 5, geometry.height + 99)).toBeUndefined();
  });
  it("leads everywhere and back by arrow keys", () => {
    let cursor = move(geometry, undefined, "ArrowDown");
    expect(cursor).toEqual({ node: "n-0", index: 0 });
    cursor = move(geometry, cursor, "ArrowRight");
    expect(cursor).toEqual({ node: "n-1", index: 0 });
    cursor = move(geometry, cursor, "ArrowUp");
    expect(cursor).toEqual({ node: "n-1", index: 0 });
    for (let times = 0; times < 8; times++) cursor = move(geometry, cursor, "ArrowDown");
    const columns = geometry.sections[0]!.columns;
    expect(cursor).toEqual({ node: `n-${columns + 1}`, index: 0 });
    expect(move(geometry, cursor, "ArrowUp")).toEqual({ node: "n-1", index: 7 });
    expect(move(geometry, cursor, "End")).toEqual({ node: "n-124", index: 7 });
    expect(move(geometry, { node: "gone", index: 1 }, "ArrowLeft")).toEqual({ node: "n-0", index: 0 });
  });
  it("is there for no node at all", () => {
    expect(layOut([], { width: 300, height: 0 }, "s")).toMatchObject({ boxes: [], height: 0 });
    expect(move(layOut([], { width: 300, height: 0 }, "s"), undefined, "End")).toBeUndefined();
  });
});

describe("a map that fits", () => {
  const fleet = (gpus: number, products = 1, perNode = 8): Node[] =>
    Array.from({ length: gpus / perNode }, (_, at) =>
      node(`n-${at}`, Array.from({ length: perNode }, (_, index) => gpu(index, [instance(0, 4, "p", 0.5)], { product: `P${at % products}` }))));
  const areas = [{ width: 1350, height: 760 }, { width: 2320, height: 1200 }, { width: 340, height: 430 }];

  it("fills the area without scrolling from 8 to some thousand GPUs", () => {
    for (const gpus of [8, 16, 64, 320, 2000, 8000]) {
      for (const area of areas.slice(0, 2)) {
        const map = layOut(fleet(gpus, gpus > 300 ? 3 : 1), area, "fit");
        expect(map.height).toBeLessThanOrEqual(area.height);
        // No emptiness: a larger size would not fit, or it is as large as is of any use.
        expect(map.height > 0.7 * area.height || map.size.height > 100, `${gpus} GPUs use ${Math.round(map.height)} of ${area.height}`).toBe(true);
        const right = Math.max(...map.boxes.map((box) => box.x + box.width));
        expect(right).toBeCloseTo(area.width);
      }
    }
  });
  it("stacks few nodes where that fills the area", () => {
    const map = layOut(fleet(12, 1, 4), areas[1]!, "fit");
    expect(map.sections[0]!.columns).toBe(2);
    expect(map.height).toBeLessThanOrEqual(areas[1]!.height);
    expect(map.height).toBeGreaterThan(0.8 * areas[1]!.height);
  });
  it("scrolls little with 20,000 GPUs on one screen, and finds each of them", () => {
    const map = layOut(fleet(20_000), areas[1]!, "fit");
    expect(map.height).toBeLessThan(2 * areas[1]!.height);
    for (const box of map.boxes.slice(-3)) {
      const rect = gpuRect(map, box, 7);
      expect(hit(map, rect.x + 1, rect.y + rect.height / 2)?.gpu.index).toBe(7);
    }
  });
  it("gives each product the whole width", () => {
    const map = layOut([...fleet(96, 1), ...fleet(16, 1, 4).map((each) => node(`t-${each.node}`, each.gpus.map((one) => ({ ...one, product: "T4" }))))], areas[0]!, "fit");
    for (const section of map.sections) {
      expect(Math.max(...section.boxes.map((box) => box.x + box.width))).toBeCloseTo(areas[0]!.width);
    }
  });
  it("folds empty nodes of a large cluster", () => {
    const empty = Array.from({ length: 25 }, (_, at) =>
      node(`e-${at}`, Array.from({ length: 8 }, (_, index) => gpu(index, index > 0 ? [] : [instance(0, 8)], { product: "P0" }))));
    const sick = node("sick", [gpu(0, [], { health: "Xid 79" })]);
    const nodes = [...fleet(120), ...empty, sick];
    const folded = foldedNodes(nodes, (each) => each.node === "e-3");
    expect(folded.size).toBe(24);
    expect([...folded].every((each) => each.gpus.every(isEmpty))).toBe(true);
    const map = layOut(nodes, areas[0]!, "fit", folded);
    expect(map.boxes.map((box) => box.node.node)).toEqual(expect.arrayContaining(["e-3", "sick"]));
    expect(map.boxes).toHaveLength(15 + 2);
    const fold = map.sections.find((each) => each.fold)!.fold!;
    expect([fold.nodes.length, fold.gpus]).toEqual([24, 192]);
    const last = foldRect(fold, 23);
    expect(last.y + last.height).toBeLessThanOrEqual(fold.y + fold.height);
    expect(hitFold(map, last.y + 2)).toBe(fold);
    expect(hitFold(map, 10)).toBeUndefined();
    expect(layOut(nodes, areas[0]!, "fit").size.height).toBeLessThan(map.size.height);
    // A small cluster, and one without any pod, show all nodes.
    expect(foldedNodes(empty.slice(0, 8), () => false).size).toBe(0);
    expect(foldedNodes(empty, () => false).size).toBe(0);
  });
  it("says of each node how many GPUs are used, and how busy they are", () => {
    const use = useOfNode(node("n", [gpu(0, [instance(0, 4, "p", 1), instance(4, 4, "q", 0.5)]), gpu(1, [instance(0, 4, "r")]), gpu(2, [])]));
    expect(useText(use)).toBe("2/3 · 75 %");
    expect(useText({ ...use, gpus: 0 })).toBe("75 %");
    expect(useText({ used: 0, gpus: 4, busy: null })).toBe("0/4");
  });
});

describe("finding", () => {
  it("dims all that is not meant", () => {
    const cell = { profile: "1g.5gb", holders: [{ namespace: "ns", pod: "ranker-1" }] };
    for (const text of ["", "rank", "ns/ranker", "n-1", "1g.5gb"]) expect(isMeant("n-1", cell, text)).toBe(true);
    for (const text of ["1g", "other", "n-2"]) expect(isMeant("n-1", cell, text)).toBe(false);
    const nodes = [node("a", [gpu(0, [instance(0, 4, "x")])]), node("b", [gpu(0, []), gpu(1, [instance(0, 4, "ranker-1"), instance(4, 4, "ranker-2")])])];
    expect(findOnMap(nodes, " Ranker ")).toEqual({ nodes: 1, pods: 2, first: { node: "b", index: 1 } });
    expect(findOnMap(nodes, "b")).toEqual({ nodes: 1, pods: 0, first: { node: "b", index: 0 } });
    expect(findOnMap(nodes, "")).toEqual({ nodes: 0, pods: 0, first: undefined });
  });

  const nodes = [node("gpu-1", [gpu(0, [instance(0, 4, "train-7")])]), node("gpu-2", [gpu(0, [], { product: "T4" })])];
  it("looks at nodes, pods and products", () => {
    expect(filterNodes(nodes, "TRAIN", "").map((each) => each.node)).toEqual(["gpu-1"]);
    expect(filterNodes(nodes, "gpu-", "T4").map((each) => each.node)).toEqual(["gpu-2"]);
    expect(filterNodes(nodes, "", "")).toHaveLength(2);
    expect(filterNodes(nodes, "(.*", "")).toHaveLength(0);
  });
  it("reads selections from addresses", () => {
    expect(cursorOf("gpu-1/3")).toEqual({ node: "gpu-1", index: 3 });
    expect(cursorOf("a/b/2")).toEqual({ node: "a/b", index: 2 });
    for (const text of [undefined, "", "gpu-1", "/3", "gpu-1/x", "gpu-1/1.5"]) expect(cursorOf(text)).toBeUndefined();
  });
  it("cuts long names", () => {
    const measure = { measureText: (text: string) => ({ width: text.length }) as TextMetrics };
    expect(fit(measure, "abc", 3)).toBe("abc");
    expect(fit(measure, "abcdef", 4)).toBe("abc…");
    expect(fit(measure, "x".repeat(1e6), 10)).toBe(`${"x".repeat(9)}…`);
  });
});

describe("the past", () => {
  const range = { from: 0, to: 1000, moving: false, id: "custom" };
  it("counts what happened when, and drops what lies outside", () => {
    const at = (time: number, kind = "layout"): { at: number; kind: string } => ({ at: time, kind });
    expect(histogram([at(0), at(499, "decision"), at(500), at(1000), at(-1)], range, 2)).toEqual([
      { many: 2, decisions: 1 },
      { many: 1, decisions: 0 },
    ]);
  });
  it("counts a decision once, when it was made", () => {
    const told = (at: number): { at: number; kind: string; id: string; made: number } => ({ at, kind: "decision", id: "d", made: 100 });
    expect(histogram([told(100), told(400), told(900)], range, 2)).toEqual([
      { many: 1, decisions: 1 },
      { many: 0, decisions: 0 },
    ]);
  });
  it("steps by whole intervals", () => {
    expect(frameOf({ ...range, to: 6 * 3_600_000 }, 120)).toBe(180_000);
    expect(frameOf(range, 120)).toBe(10_000);
  });
});

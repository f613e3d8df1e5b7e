import { describe, expect, it } from "vitest";
import type { Gpu, Gpus, HistoryEvent, Quota } from "../../src/api/types";
import { loadPast, mostEvents, quotasByNamespace, Replay } from "../../src/map/replay";

const gpu = (pod: string): Gpu => ({
  index: 0, gpu: "GPU-1", product: "A100", memory: 40960, slots: 8, mig: true, health: "", holders: [],
  instances: pod === "" ? [] : [{ id: 1, instance: "MIG-1", profile: "1g.5gb", start: 0, size: 1, holders: [{ namespace: "a", pod }] }],
});
const layout = (at: number, node: string, pod: string): HistoryEvent => ({ at, kind: "layout", node, mode: "mig", gpus: [gpu(pod)] });
const range = { from: 100, to: 200, moving: false, id: "custom" };
const before: Gpus = {
  at: 100, fresh_at: 100, nodes: [{ node: "n-2", mode: "mig", fresh_at: 90, ready: false, gpus: [gpu("first")] }],
};

describe("a replay", () => {
  const replay = new Replay(before, range, [layout(120, "n-10", "x"), layout(150, "n-2", "second"), layout(160, "n-2", "")],
    new Map([["a", "a/quota"]]));
  const podsAt = (at: number): string[] =>
    replay.frame(at).nodes.map((node) => `${node.node}:${node.gpus[0]?.instances[0]?.holders[0]?.pod ?? "-"}`);

  it("has every node as it was", () => {
    expect(podsAt(110)).toEqual(["n-2:first"]);
    expect(podsAt(149)).toEqual(["n-2:first", "n-10:x"]);
    expect(podsAt(150)).toEqual(["n-2:second", "n-10:x"]);
    expect(podsAt(200)).toEqual(["n-2:-", "n-10:x"]);
    expect(podsAt(110)).toEqual(["n-2:first"]);
  });

  it("knows the quotas of holders, and fades nobody", () => {
    const node = replay.frame(150).nodes[0];
    expect(node?.gpus[0]?.instances[0]?.holders[0]?.quota).toBe("a/quota");
    expect(node?.ready).toBe(false);
    expect(node?.fresh_at).toBe(200);
  });
});

describe("a replay of nodes that come and go", () => {
  const node = (at: number, name: string, ready: boolean): HistoryEvent => ({ at, kind: "node", node: name, ready });
  const removed = (at: number, id: string): HistoryEvent => ({ at, kind: "removed", what: "node", id });
  const replay = new Replay(before, range, [
    node(110, "n-2", true), node(119, "n-10", true), layout(120, "n-10", "x"), removed(130, "n-10"), layout(135, "n-10", "y"), node(140, "n-2", false),
    node(150, "n-10", true), removed(160, "n-2"), node(170, "n-2", true), layout(180, "n-2", "z"), removed(190, "other"),
    layout(165, "went-before", "x"),
  ], new Map());
  const at = (moment: number): string[] => replay.frame(moment).nodes.map((each) => `${each.node}:${each.ready ? "ready" : "not"}`);

  it("leaves out who was removed until it is told of again, and knows who was ready", () => {
    expect(at(105)).toEqual(["n-2:not"]);
    expect(at(115)).toEqual(["n-2:ready"]);
    expect(at(129)).toEqual(["n-2:ready", "n-10:ready"]);
    expect(at(139)).toEqual(["n-2:ready"]);
    expect(at(149)).toEqual(["n-2:not"]);
    expect(at(155)).toEqual(["n-2:not", "n-10:ready"]);
    expect(at(175)).toEqual(["n-10:ready"]);
    expect(at(185)).toEqual(["n-2:ready", "n-10:ready"]);
    expect(replay.frame(155).nodes[1]?.gpus[0]?.instances[0]?.holders[0]?.pod).toBe("y");
  });
});

describe("the past of a range", () => {
  it("is loaded page by page, in order", async () => {
    const pages = [{ events: [layout(3, "n", "")], next: "b" }, { events: [], next: "c" }, { events: [layout(1, "n", "")], next: null }];
    const asked: (string | undefined)[] = [];
    const past = await loadPast(async (after) => {
      asked.push(after);
      return pages[asked.length - 1]!;
    }, range);
    expect(asked).toEqual([undefined, "b", "c"]);
    expect(past.events.map((each) => each.at)).toEqual([1, 3]);
    expect(past.complete).toBe(true);
  });

  it("is given up after one page that shows how much there is", async () => {
    let asked = 0;
    const page = async (): Promise<{ events: HistoryEvent[]; next: string }> => {
      asked++;
      return { events: Array.from({ length: 2000 }, (_, at) => layout(199 - at / 2000, "n", "")), next: "more" };
    };
    expect((await loadPast(page, range)).complete).toBe(false);
    expect(asked).toBe(1);
  });

  it("has an end where there is too much", async () => {
    const many = Array.from({ length: mostEvents / 2 }, (_, at) => layout(at, "n", ""));
    const past = await loadPast(async () => ({ events: many, next: "more" }), range);
    expect(past.events.length).toBe(mostEvents);
    expect(past.complete).toBe(false);
  });
});

describe("quotas by namespace", () => {
  it("prefers those of several namespaces", () => {
    const quota = (type: Quota["type"], namespace: string, namespaces: string[]): Quota => ({ type, namespace, name: "q", namespaces, resources: {} });
    const map = quotasByNamespace([quota("CompositeElasticQuota", "all", ["a", "b"]), quota("ElasticQuota", "a", ["a"]), quota("ElasticQuota", "c", ["c"])]);
    expect([...map]).toEqual([["a", "all/q"], ["c", "c/q"], ["b", "all/q"]]);
  });
});

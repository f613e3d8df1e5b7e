// The connection of a page that stays open for weeks.
import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Live } from "../../src/api/live";

const hello = (): Response => new Response(new Blob(['event: hello\ndata: {"at": 1000}\nid: 1\n\n']).stream(), { status: 200 });
const refused = (status: number): Response => new Response(JSON.stringify({ error: "no" }), { status });

describe("the live connection", () => {
  const answers: (() => Promise<Response>)[] = [];
  let asked = 0;
  let live: Live;

  beforeEach(() => {
    vi.useFakeTimers();
    asked = 0;
    answers.length = 0;
    vi.stubGlobal("window", new EventTarget());
    vi.stubGlobal("document", { baseURI: "http://server/" });
    vi.stubGlobal("sessionStorage", { getItem: () => null });
    vi.stubGlobal("fetch", () => answers[Math.min(asked++, answers.length - 1)]!());
    live = new Live("prod");
  });
  afterEach(() => {
    live.stop();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("keeps nothing of a hundred broken connections", async () => {
    answers.push(() => Promise.reject(new TypeError("no network")));
    live.start();
    while (asked < 100) await vi.advanceTimersByTimeAsync(30_000);
    const { signal } = (live as unknown as { abort: AbortController }).abort;
    expect(getEventListeners(signal, "abort").length).toBeLessThanOrEqual(2);
    expect(getEventListeners(window, "online").length).toBeLessThanOrEqual(1);
  });

  it("asks again after a minute for what was forbidden, and is live when the right is back", async () => {
    answers.push(() => Promise.resolve(refused(403)), () => Promise.resolve(refused(403)), () => Promise.resolve(hello()));
    live.start();
    await vi.advanceTimersByTimeAsync(1000);
    expect(live.connection.state).toBe("refused");
    const seen: string[] = [];
    live.watch(() => seen.push(live.connection.state));
    await vi.advanceTimersByTimeAsync(130_000);
    expect(seen).toContain("live");
  });

  it("asks no more without a token: somebody must sign in", async () => {
    answers.push(() => Promise.resolve(refused(401)));
    live.start();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(asked).toBe(1);
    expect(live.connection).toMatchObject({ state: "refused", status: 401 });
  });
});

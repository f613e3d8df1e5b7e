import { describe, expect, it } from "vitest";
import { entryOf } from "../../src/lib/build";
import { ServerClock } from "../../src/lib/clock";

/** A server whose clock runs at `speed`, and that says its time each `every` real milliseconds, `late` milliseconds late. */
function run(speed: number, seconds: number, { every = 1000, late = (_: number): number => 0 } = {}): { clock: ServerClock; truth: () => number; at: (real: number) => void } {
  let real = 5_000_000;
  const clock = new ServerClock(() => real);
  const truth = (): number => 1e12 + (real - 5_000_000) * speed;
  clock.see(truth(), true);
  for (let message = 1; message * every <= seconds * 1000; message++) {
    const sent = truth() + every * speed;
    real += every + late(message);
    clock.see(sent);
    real -= late(message);
  }
  return { clock, truth, at: (next) => (real = next) };
}

describe("the server's clock", () => {
  it("runs as fast as a sandbox's", () => {
    for (const speed of [0.1, 5, 8, 20, 1000]) {
      const { clock, truth, at } = run(speed, 10);
      expect(clock.speed()).toBeCloseTo(speed, 1);
      at(5_000_000 + 15_000); // five seconds without a message
      expect(Math.abs(clock.now() - truth()) / speed).toBeLessThan(50);
    }
  });
  it("is real time where it is real time, however unevenly messages come", () => {
    const { clock, truth } = run(1, 60, { every: 3000, late: (message) => (message % 3) * 60 });
    expect(clock.speed()).toBe(1);
    expect(Math.abs(clock.now() - truth())).toBeLessThan(200);
  });
  it("keeps its pace through late messages", () => {
    const { clock, truth } = run(8, 30, { late: (message) => (message % 4 === 0 ? 90 : 10) });
    expect(clock.speed()).toBeCloseTo(8, 0);
    expect(Math.abs(clock.now() - truth())).toBeLessThan(2000);
  });
  it("is set once without a change of its pace", () => {
    let real = 0;
    const clock = new ServerClock(() => real);
    let server = 1e12;
    for (; real < 8000; real += 1000, server += 1000) clock.see(server);
    server += 3_600_000; // somebody set the clock, or the computer slept
    for (; real < 12_000; real += 1000, server += 1000) {
      clock.see(server);
      expect(clock.speed()).toBe(1);
      expect(clock.now()).toBe(server);
    }
  });
  it("starts anew with another server", () => {
    let real = 0;
    const clock = new ServerClock(() => real);
    for (; real < 10_000; real += 1000) clock.see(1e12 + real * 20);
    expect(clock.speed()).toBeCloseTo(20);
    clock.see(5e11);
    expect([clock.speed(), clock.now()]).toEqual([1, 5e11]);
    real += 500;
    expect(clock.now()).toBe(5e11 + 500);
  });
  it("is the browser's before the first message", () => {
    expect(new ServerClock(() => 42).now()).toBe(42);
  });
});

describe("the build of the page", () => {
  it("is the name of its first file", () => {
    expect(entryOf('<head><script type="module" crossorigin src="./assets/index-DzoCMpcX.js"></script>')).toBe("index-DzoCMpcX.js");
    expect(entryOf('<script type="module" src="https://h/team/gpus/assets/index-a.js">')).toBe("index-a.js");
    expect(entryOf("<html>proxy error</html>")).toBe("");
  });
});

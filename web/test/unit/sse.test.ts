import { describe, expect, it } from "vitest";
import { backoff, SseParser, type Message } from "../../src/api/sse";

const stream = 'id: 7\nevent: overview\ndata: {"a":1}\n\n: still here\n\nevent: gpus\r\ndata: [1,\r\ndata: 2]\r\n\r\n';

describe("event streams", () => {
  it("read the same wherever the text is cut", () => {
    const whole = new SseParser().push(stream);
    expect(whole).toEqual([
      { event: "overview", data: '{"a":1}', id: "7" },
      { event: "gpus", data: "[1,\n2]", id: "7" },
    ]);
    for (let at = 0; at <= stream.length; at++) {
      const parser = new SseParser();
      expect([...parser.push(stream.slice(0, at)), ...parser.push(stream.slice(at))]).toEqual(whole);
    }
  });
  it("deliver nothing for an event without data, or half an event", () => {
    expect(new SseParser().push("event: x\n\ndata: half")).toEqual([]);
  });
  it("name an event without a name as the standard does", () => {
    expect(new SseParser().push("data:x\n\n")[0]).toMatchObject<Partial<Message>>({ event: "message", data: "x" });
  });
  it("refuse an event without an end", () => {
    const parser = new SseParser();
    const part = `data: ${"x".repeat(1 << 20)}\n`;
    expect(() => {
      for (let times = 0; times < 70; times++) parser.push(part);
    }).toThrow(/too long/);
  });
});

describe("trying again", () => {
  it("waits longer each time, half a minute at most, never less than half of it", () => {
    expect(backoff(0, 0)).toBe(500);
    expect(backoff(0, 1)).toBe(1000);
    expect(backoff(3, 1)).toBe(8000);
    expect(backoff(1000, 1)).toBe(30_000);
    expect(backoff(1000, 0)).toBe(15_000);
  });
});

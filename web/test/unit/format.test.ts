import { describe, expect, it } from "vitest";
import * as format from "../../src/lib/format";

describe("numbers", () => {
  it("writes shares with a digit only where it matters", () => {
    expect(format.percent(0.714)).toBe("71 %");
    expect(format.percent(0.034)).toBe("3.4 %");
    expect(format.percent(0)).toBe("0 %");
    expect(format.percent(0.0996)).toBe("10 %");
    expect(format.percent(1)).toBe("100 %");
  });
  it("says a dash for what is not known, and never NaN", () => {
    for (const write of [format.percent, format.memory, format.count, format.duration, format.milliseconds]) {
      expect(write(null)).toBe("–");
      expect(write(undefined)).toBe("–");
      expect(write(Number.NaN)).toBe("–");
    }
    expect(format.metric("power", undefined)).toBe("–");
  });
  it("chooses the unit of memory", () => {
    expect(format.memory(512)).toBe("512 MiB");
    expect(format.memory(40960)).toBe("40 GiB");
    expect(format.memory(1536)).toBe("1.5 GiB");
    expect(format.memory(2 * 1024 * 1024)).toBe("2 TiB");
  });
  it("writes durations in two units at most", () => {
    expect(format.duration(4)).toBe("4 s");
    expect(format.duration(200)).toBe("3 min 20 s");
    expect(format.duration(3600)).toBe("1 h");
    expect(format.duration(3605)).toBe("1 h");
    expect(format.duration(187_500)).toBe("2 d 4 h");
    expect(format.duration(0.25)).toBe("250 ms");
    expect(format.duration(-3)).toBe("0 s");
  });
  it("counts in words", () => {
    expect(format.counted(1, "GPU")).toBe("1 GPU");
    expect(format.counted(1024, "GPU")).toBe("1,024 GPUs");
  });
  it("names resources by what distinguishes them", () => {
    expect(format.request("nvidia.com/mig-1g.10gb", 1)).toBe("1g.10gb");
    expect(format.request("nvidia.com/gpu", 2)).toBe("2 GPUs");
    expect(format.request("deviceclass.resource.kubernetes.io/mig.nvidia.com", 2)).toBe("2 × mig.nvidia.com");
  });
  it("knows metrics by name and others by their unit", () => {
    expect(format.writer("utilization", "anything")(0.5)).toBe("50 %");
    expect(format.writer("power", "")(188.4)).toBe("188 W");
    expect(format.writer("nvlink_tx", "MiB/s")(12)).toBe("12 MiB/s");
    expect(format.writer("seconds_to_slice", "s")(90)).toBe("1 min 30 s");
    expect(format.metric("memory_clock", 1215)).toBe("1,215 MHz");
  });
  it("names requests by what tells them apart", () => {
    expect(format.request("nvidia.com/mig-1g.5gb", 1)).toBe("1g.5gb");
    expect(format.request("nvidia.com/mig-1g.5gb", 3)).toBe("3 × 1g.5gb");
    expect(format.request("nvidia.com/gpu", 2)).toBe("2 GPUs");
    expect(format.request("cpu", 1)).toBe("1 core");
    expect(format.request("memory", 8192)).toBe("8 GiB");
    expect(format.amount("nos.nebuly.com/gpu-memory", 160)).toBe("160 GB");
  });
});

describe("times", () => {
  const now = Date.UTC(2026, 5, 17, 14, 20, 5);
  it("writes the date only when it is another day", () => {
    expect(format.clock(now - 5000, now)).toBe("14:20:00");
    expect(format.clock(now - 86_400_000, now, false)).toBe("2026-06-16 14:20");
  });
  it("says how long ago without useless seconds", () => {
    expect(format.ago(now - 300, now)).toBe("just now");
    expect(format.ago(now - 4000, now)).toBe("4 s ago");
    expect(format.ago(now - 330_000, now)).toBe("5 min ago");
  });
});

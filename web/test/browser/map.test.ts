// The map: selection, keyboard, time, links, many GPUs.
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import type { Gpus } from "../../src/api/types";
import { expectAccessible, hash, mapPixels, open, realUrl, serve, settled, unable, useBrowser } from "./browser";

/** Moves to a moment whose range is loaded afterwards. */
async function stepBack(page: Page): Promise<void> {
  const beginning = page.waitForResponse((response) => /\/quotas\?.*at=/.test(response.url()));
  await page.getByRole("button", { name: "A step back" }).click();
  await page.getByText(/^As of /).waitFor();
  await (await beginning).finished();
}

describe.skipIf(unable)("the GPU map", () => {
  const its = useBrowser();

  it("opens a GPU by mouse and leads to its pod", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/map`);
    await settled(page);
    const map = page.getByRole("application");
    const box = (await map.boundingBox())!;
    await page.mouse.move(box.x + 20, box.y + 58);
    await page.locator(".map-hint").waitFor();
    await page.mouse.click(box.x + 20, box.y + 58);
    const panel = page.getByRole("complementary", { name: /^GPU / });
    await panel.waitFor();
    expect(await hash(page)).toMatch(/sel=/);
    await panel.locator(".pieces a").first().click();
    await page.getByRole("complementary", { name: /^Pod / }).waitFor();
    expect(await hash(page)).toMatch(/^#\/workloads\?.*pod=/);
    expect(problems).toEqual([]);
    await close();
  });

  it("is used by keyboard alone, and speaks", async () => {
    const { page, close } = await open(its.browser, `${its.server.url}#/map`);
    await settled(page);
    const map = page.getByRole("application");
    await map.focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.getByText(/^node .*, GPU 1, /).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: /^GPU .*\/1$/ }).waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await page.getByRole("complementary").waitFor({ state: "detached" });
    expect(await page.evaluate(() => document.activeElement?.getAttribute("role"))).toBe("application");
    await close();
  });

  it("goes back in time and returns", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/map?range=24h`);
    await settled(page);
    await page.getByRole("button", { name: "A step back" }).click();
    await page.getByText(/^As of /).waitFor();
    expect(await hash(page)).toMatch(/at=\d+/);
    const slider = page.getByRole("slider", { name: "Moment" });
    await slider.focus();
    const before = await mapPixels(page);
    const first = await hash(page);
    await page.keyboard.press("PageDown");
    await page.waitForFunction((old) => window.location.hash !== old, first);
    await page.waitForFunction(
      (old) => document.querySelector<HTMLCanvasElement>(".map-canvas")?.toDataURL() !== old,
      before,
    );
    expect(await slider.getAttribute("aria-valuetext")).toMatch(/\d\d:\d\d/);
    await page.getByRole("button", { name: "Back to now" }).click();
    await page.getByText("Live", { exact: true }).waitFor();
    expect(await hash(page)).not.toMatch(/at=/);
    expect(problems).toEqual([]);
    await close();
  });

  it("replays layouts frame by frame", async () => {
    const { page, close } = await open(its.browser, `${its.server.url}#/map?range=1h`);
    await settled(page);
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    const moments = new Set<string>();
    while (moments.size < 4) {
      const seen = await hash(page);
      moments.add(/at=(\d+)/.exec(seen)?.[1] ?? "");
      await page.waitForFunction((old) => window.location.hash !== old, seen);
    }
    const numbers = [...moments].filter(Boolean).map(Number);
    expect([...numbers].sort((a, b) => a - b)).toEqual(numbers);
    await page.getByRole("button", { name: "Stop the replay" }).click();
    await close();
  });

  it("replays what was loaded once, and measures where it rests", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/map?range=1h`);
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    const moments = (): number => asked.filter((url) => /\/gpus\?.*at=/.test(url)).length;
    await settled(page);
    // The first step back loads the map at the start of the range; later steps use loaded data.
    await stepBack(page);
    const before = moments();
    const histories = asked.filter((url) => url.includes("/history")).length;
    await page.getByRole("slider", { name: "Moment" }).focus();
    await page.keyboard.press("Home");
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    const seen = new Set<string>();
    while (seen.size < 20) {
      const last = await hash(page);
      seen.add(last);
      await page.waitForFunction((old) => window.location.hash !== old, last);
    }
    expect(moments() - before).toBeLessThanOrEqual(3); // one request where the slider was
    expect(asked.filter((url) => url.includes("/history")).length).toBe(histories);
    await page.getByRole("button", { name: "Stop the replay" }).click();
    await page.getByRole("slider", { name: "Moment" }).focus();
    await page.keyboard.press("End");
    await page.getByRole("button", { name: "A step back" }).click();
    await page.waitForFunction(() => window.location.hash.includes("at="));
    const rests = /at=\d+/.exec(await hash(page))?.[0] ?? "none";
    const measured = (): string | undefined => asked.find((url) => url.includes("/gpus?") && url.includes(rests));
    await expect.poll(measured, { timeout: 20_000 }).toBeDefined();
    const answer = await page.request.get(measured()!);
    const gpus = (await answer.json()) as { nodes: { gpus: { metrics?: Record<string, number> }[] }[] };
    expect(Object.keys(gpus.nodes[0]?.gpus[0]?.metrics ?? {})).toContain("memory_used");
    expect(problems).toEqual([]);
    await close();
  });

  it("shows the same by a shared link", async () => {
    const first = await open(its.browser, `${its.server.url}#/map?by=state&zoom=l&range=1h`);
    await settled(first.page);
    await first.page.getByRole("button", { name: "A step back" }).click();
    await first.page.getByText(/^As of /).waitFor();
    await first.page.getByRole("application").focus();
    await first.page.keyboard.press("ArrowDown");
    await first.page.keyboard.press("Enter");
    await first.page.getByRole("complementary").waitFor();
    const link = first.page.url();
    const second = await open(its.browser, link);
    await settled(second.page);
    await second.page.getByRole("complementary").waitFor();
    await second.page.getByText(/^As of /).waitFor();
    expect(await second.page.getByRole("radio", { name: "State" }).getAttribute("aria-checked")).toBe("true");
    expect(await second.page.getByRole("complementary").getAttribute("aria-label")).toBe(
      await first.page.getByRole("complementary").getAttribute("aria-label"),
    );
    await first.close();
    await second.close();
  });

  it("dims all but what is searched for, and keeps its shape", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/map`);
    await settled(page);
    const boxes = (): Promise<string | null> => page.getByRole("application").getAttribute("aria-label");
    const [before, nodes] = [await mapPixels(page), await boxes()];
    const gpus = (await (await fetch(new URL("api/v1/gpus", its.server.url))).json()) as Gpus;
    const holder = gpus.nodes.flatMap((node) => node.gpus).flatMap((gpu) => [...gpu.holders, ...gpu.instances.flatMap((each) => each.holders)])[0]!;
    // Pods of the sandbox end soon; others of the same owner are there all the time.
    await page.getByRole("searchbox").fill(holder.pod.split("-")[0]!);
    await page.getByText(/^\d+ pods? on \d+ nodes?$/).waitFor();
    await page.waitForFunction((old) => document.querySelector<HTMLCanvasElement>(".map-canvas")?.toDataURL() !== old, before);
    expect(await boxes()).toBe(nodes);
    await page.getByRole("searchbox").fill("no such thing anywhere");
    await page.getByText("nothing matches").waitFor();
    expect(await boxes()).toBe(nodes);
    expect(problems).toEqual([]);
    await close();
  });

  it("fits its frame: nothing to scroll, little of it empty", async () => {
    for (const viewport of [{ width: 1600, height: 1000 }, { width: 2560, height: 1440 }]) {
      const { page, close } = await open(its.browser, `${its.server.url}#/map`, { viewport });
      await settled(page);
      await expect.poll(() => page.evaluate(() => {
        const scroll = document.querySelector<HTMLElement>(".map-scroll")!;
        return scroll.scrollHeight - scroll.clientHeight;
      })).toBe(0);
      // The lowest drawn pixel is in the lower third of the frame.
      const lowest = await page.evaluate(() => {
        const canvas = document.querySelector<HTMLCanvasElement>(".map-canvas")!;
        const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
        let row = canvas.height - 1;
        while (row > 0 && !data.subarray(row * canvas.width * 4, (row + 1) * canvas.width * 4).some((each) => each > 0)) row--;
        return row / canvas.height;
      });
      expect(lowest).toBeGreaterThan(0.66);
      await close();
    }
  });

  it("loads the layouts of the past only for somebody who reaches for them", async () => {
    const { page, close } = await open(its.browser, `${its.server.url}#/map`);
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.reload();
    await settled(page);
    await page.getByText("Live", { exact: true }).waitFor();
    await expect.poll(() => asked.some((url) => /\/history\?.*kind=decision/.test(url))).toBe(true);
    expect(asked.filter((url) => /kind=layout/.test(url))).toEqual([]);
    const loading = page.waitForRequest(/history\?.*kind=layout/);
    await page.getByRole("slider", { name: "Moment" }).hover();
    expect((await loading).url()).toContain("brief=true");
    await close();
  });

  it("finds nodes, picks out teams and has a table", async () => {
    const { page, close } = await open(its.browser, `${its.server.url}#/map?view=table`);
    await settled(page);
    const rows = page.getByRole("row");
    await rows.nth(1).waitFor();
    const name = await rows.nth(1).getByRole("rowheader").innerText();
    await page.getByRole("searchbox").fill(name);
    await page.waitForFunction(
      (wanted) => [...document.querySelectorAll("tbody th")].every((cell) => cell.textContent?.includes(wanted)),
      name,
    );
    expect(decodeURIComponent(await hash(page))).toContain(`q=${name}`);
    await page.getByRole("searchbox").fill("no such thing anywhere");
    await page.getByText("No node matches").waitFor();
    await page.getByRole("link", { name: "Show all nodes" }).click();
    await page.getByRole("radio", { name: "Team" }).click();
    await page.locator(".legend-team").first().click();
    expect(await hash(page)).toMatch(/team=/);
    await close();
  });

  it.skipIf(realUrl)("draws of a thousand GPUs only what is in sight", async () => {
    const large = await serve({ size: 3.125 });
    const { page, problems, close } = await open(its.browser, `${large.url}#/map?zoom=l`);
    await settled(page);
    const facts = await page.evaluate(() => {
      const scroll = document.querySelector<HTMLElement>(".map-scroll")!;
      const canvas = scroll.querySelector("canvas")!;
      return {
        content: scroll.scrollHeight, seen: scroll.clientHeight, canvas: canvas.clientHeight,
        elements: document.querySelectorAll("*").length,
      };
    });
    expect(facts.content).toBeGreaterThan(5 * facts.seen);
    expect(facts.canvas).toBe(facts.seen);
    expect(facts.elements).toBeLessThan(600);
    const frames = await page.evaluate(async () => {
      const scroll = document.querySelector<HTMLElement>(".map-scroll")!;
      const times: number[] = [];
      let last = performance.now();
      for (let step = 0; step < 90; step++) {
        scroll.scrollTop = (step / 90) * scroll.scrollHeight;
        await new Promise(requestAnimationFrame);
        times.push(performance.now() - last);
        last = performance.now();
      }
      return times.sort((a, b) => a - b);
    });
    console.log(`1,000 GPUs, scrolled: median frame ${frames[45]?.toFixed(1)} ms, slowest ${frames[89]?.toFixed(1)} ms`);
    // The replay computes its frames in the page, so a step's time is its drawing time.
    await stepBack(page);
    const slider = page.getByRole("slider", { name: "Moment" });
    await slider.focus();
    const steps = await page.evaluate(async () => {
      const input = document.querySelector<HTMLInputElement>(".slider input")!;
      const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")!.set!;
      const times: number[] = [];
      for (let step = 0; step < 60; step++) {
        const began = performance.now();
        set.call(input, String(Math.round((Number(input.max) * step) / 60)));
        input.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);
        times.push(performance.now() - began);
      }
      return times.sort((a, b) => a - b);
    });
    console.log(`1,000 GPUs, replayed: median step ${steps[30]?.toFixed(1)} ms, slowest ${steps[59]?.toFixed(1)} ms`);
    expect(problems).toEqual([]);
    await close();
    large.stop();
  });
});

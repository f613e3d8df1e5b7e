// The wall, the page of a team, and a page that stays open.
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import type { Workloads } from "../../src/api/types";
import { expectAccessible, hash, heading, open, picture, realUrl, serve, settled, unable, useBrowser } from "./browser";

describe.skipIf(unable)("the wall", () => {
  const its = useBrowser();

  it("opens with one key, takes turns, stays when told, and returns where it was", async () => {
    const context = await its.browser.newContext({ viewport: { width: 1600, height: 900 }, colorScheme: "dark" });
    const page = await context.newPage();
    await page.addInitScript(() => {
      const taken: string[] = [];
      Object.defineProperty(navigator, "wakeLock", { value: { request: (kind: string) => (taken.push(kind), Promise.resolve({ release: () => (taken.push("released"), Promise.resolve()) })) } });
      (window as unknown as { taken: string[] }).taken = taken;
    });
    await page.clock.install();
    await page.goto(`${its.server.url}#/decisions`);
    await heading(page, "Decisions");
    await page.keyboard.press("w");
    await heading(page, "Use of GPUs");
    await page.locator(".wall-value").first().waitFor();
    expect(await page.getByRole("navigation").count()).toBe(0);
    expect(await page.evaluate(() => (window as unknown as { taken: string[] }).taken)).toContain("screen");
    await page.clock.runFor(21_000);
    await heading(page, "GPU map");
    expect(await hash(page)).toContain("slide=map");
    await page.keyboard.press("Space");
    await page.getByRole("button", { name: "Go on" }).waitFor();
    await page.clock.runFor(60_000);
    await heading(page, "GPU map");
    await page.keyboard.press("ArrowRight");
    await heading(page, "Waiting, longest first");
    await page.keyboard.press("w");
    await heading(page, "Decisions");
    expect(await page.evaluate(() => (window as unknown as { taken: string[] }).taken.at(-1))).toBe("released");
    await context.close();
  });

  it("is legible from afar, fits, and is accessible on every slide", async () => {
    for (const [width, height, colorScheme] of [[2560, 1440, "dark"], [400, 800, "light"]] as const) {
      const { page, problems, close } = await open(its.browser, `${its.server.url}#/wall`, { viewport: { width, height }, colorScheme });
      await page.getByRole("button", { name: "Stay here" }).click();
      for (const slide of ["Use of GPUs", "GPU map", "Waiting, longest first", "The last hour", "Cost of the last hour"]) {
        await page.getByRole("button", { name: slide, exact: true }).click();
        await heading(page, slide);
        await settled(page);
        await expectAccessible(page);
        expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
        await picture(page, `wall-${slide.split(" ")[0]}-${width}`);
      }
      if (width > 2000) {
        await page.getByRole("button", { name: "Use of GPUs" }).click();
        const size = await page.locator(".wall-value").first().evaluate((each) => parseFloat(getComputedStyle(each).fontSize));
        expect(size).toBeGreaterThan(120);
      }
      expect(problems).toEqual([]);
      await close();
    }
  });
});

describe.skipIf(unable)("the page of a team", () => {
  const its = useBrowser();

  it("shows one namespace: quota, what waits and why, pods on GPUs, the idle ones first", async () => {
    const all = (await (await fetch(new URL("api/v1/workloads?state=running&limit=1000", its.server.url))).json()) as Workloads;
    const namespace = realUrl ? all.pods[0]!.namespace : "notebooks";
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/team?ns=${namespace}`, { viewport: { width: 1600, height: 1000 } });
    await heading(page, "Team");
    await settled(page);
    const table = page.getByRole("region", { name: "Pods on GPUs" });
    await table.getByRole("row").nth(1).waitFor();
    if (!realUrl) {
      const mine = all.pods.filter((each) => each.namespace === namespace);
      expect(await table.getByRole("row").count()).toBe(Math.min(200, mine.length) + 1);
      expect(await table.getByRole("row").nth(1).innerText()).toContain("idle");
      await page.getByRole("heading", { name: "Waiting, longest first" }).waitFor();
      expect(await page.getByRole("img", { name: /of what is guaranteed/ }).count()).toBe(1);
    }
    await picture(page, "team-1600");
    await expectAccessible(page);
    await table.getByRole("rowheader").first().getByRole("link").click();
    await page.getByRole("complementary", { name: new RegExp(`^Pod ${namespace}/`) }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it.skipIf(realUrl)("is chosen by name, and what a namespace without quota has is said", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/team`, { viewport: { width: 400, height: 800 } });
    await settled(page);
    await page.getByRole("button", { name: /namespace/i }).click();
    await page.getByRole("option", { name: "platform" }).click();
    await page.getByText("No ElasticQuota covers platform").waitFor();
    expect(await hash(page)).toBe("#/team?ns=platform");
    await expectAccessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
    await picture(page, "team-narrow");
    expect(problems).toEqual([]);
    await close();
  });
});

/** The size of the page after garbage is collected. */
async function weight(page: Page): Promise<{ nodes: number; listeners: number; heap: number }> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  await session.send("HeapProfiler.collectGarbage");
  await session.send("Performance.enable");
  const { metrics } = (await session.send("Performance.getMetrics")) as { metrics: { name: string; value: number }[] };
  const of = (name: string): number => metrics.find((each) => each.name === name)?.value ?? 0;
  await session.detach();
  return { nodes: of("Nodes"), listeners: of("JSEventListeners"), heap: of("JSHeapUsedSize") };
}

describe.skipIf(unable || realUrl)("a page that stays open", () => {
  const its = useBrowser();

  it("grows neither with time nor with visits: elements, listeners, memory", { timeout: 600_000 }, async () => {
    // A fifth of the cluster; two minutes of it in each of 36 steps, while pages are opened in turn.
    const small = await serve({ size: 0.2 });
    const { page, problems, close } = await open(its.browser, small.url);
    const round = async (steps: number): Promise<void> => {
      for (let step = 0; step < steps; step++) {
        await fetch(new URL("/test", small.url), { method: "POST", body: JSON.stringify({ advance: 120_000, drop: step % 10 === 9 }) });
        if (step % 2 === 0) {
          const name = ["map", "workloads", "decisions", "quotas", "team", "overview"][(step / 2) % 6]!;
          await page.evaluate((to) => (window.location.hash = `#/${to}`), name);
          await settled(page);
        }
      }
      await page.evaluate(() => (window.location.hash = "#/pools"));
      await heading(page, "Pools");
      await page.getByText("Live", { exact: true }).waitFor();
    };
    await round(12);
    const before = await weight(page);
    await round(24);
    const after = await weight(page);
    console.log(`after 72 minutes: ${JSON.stringify(after)}, before: ${JSON.stringify(before)}`);
    expect(after.nodes).toBeLessThan(before.nodes * 1.5 + 200);
    expect(after.listeners).toBeLessThan(before.listeners * 1.5 + 50);
    expect(after.heap).toBeLessThan(before.heap * 1.6 + 4_000_000);
    expect(problems.filter((each) => !/ERR_|Failed to load/.test(each))).toEqual([]);
    await close();
    small.stop();
  });

  it("offers to load a newer page that loading again did not bring", async () => {
    const { page, close } = await open(its.browser, `${its.server.url}#/quotas`);
    await settled(page);
    await page.getByText("Live", { exact: true }).waitFor();
    // A cache between keeps the old page for navigations.
    await page.route(its.server.url, async (route) => {
      if (route.request().isNavigationRequest()) return route.continue();
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()).replace(/index-[^"]+\.js/, "index-newer.js") });
    });
    const again = page.waitForEvent("load");
    await fetch(new URL("/test", its.server.url), { method: "POST", body: JSON.stringify({ drop: true }) });
    await again;
    await page.getByText("Live", { exact: true }).waitFor();
    await fetch(new URL("/test", its.server.url), { method: "POST", body: JSON.stringify({ drop: true }) });
    await page.getByText("The server has a newer version of this page.").waitFor();
    await page.getByRole("button", { name: "Reload" }).waitFor();
    await close();
  });
});

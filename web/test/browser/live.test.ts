// Live updates, reconnection, and the design for empty and failing states. The double's knobs
// create these; against a real server they are skipped.
import type { Page } from "playwright-core";
import type { Workloads } from "../../src/api/types";
import { afterEach, describe, expect, it } from "vitest";
import { expectAccessible, hash, open, picture, realUrl, serve, settled, unable, useBrowser } from "./browser";

describe.skipIf(unable || realUrl)("live", () => {
  const its = useBrowser();
  afterEach(async () => turn({ reset: true }));

  const turn = async (knobs: Record<string, unknown>): Promise<void> => {
    await fetch(new URL("/test", its.server.url), { method: "POST", body: JSON.stringify(knobs) });
  };
  const pending = (page: Page): Promise<string> =>
    page.locator(".figure", { hasText: "Pending pods" }).locator(".figure-value").innerText();

  it("figures follow the stream, and the age of data is told", async () => {
    const { page, problems, close } = await open(its.browser, its.server.url);
    await settled(page);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByText(/^data \d+ s old$/).waitFor();
    const before = await pending(page);
    await turn({ advance: 3_600_000 });
    await page.waitForFunction(
      (old) => [...document.querySelectorAll(".figure")].some((each) => each.textContent?.startsWith("Pending pods") && !each.textContent.includes(old)),
      before,
    );
    const answer = (await (await fetch(new URL("api/v1/overview", its.server.url))).json()) as { pods: { pending: number } };
    expect(await pending(page)).toBe(String(answer.pods.pending));
    expect(problems).toEqual([]);
    await close();
  });

  it("the clock runs at the server's speed, and ages with it", async () => {
    const fast = await serve({ speed: 8_000 });
    const { page, problems, close } = await open(its.browser, `${fast.url}#/workloads?state=pending`);
    await page.getByText(/^data .* old, clock 8×$/).waitFor();
    // A pod's wait as the page has it against the server's time, both at one moment: a clock that stood still at 1×
    // would be minutes behind.
    await page.waitForTimeout(4000);
    const pod = (await (await fetch(new URL("api/v1/workloads?state=pending&limit=1", fast.url))).json()) as Workloads;
    const [row] = [page.locator("tbody tr", { hasText: pod.pods[0]!.name }).first()];
    const shown = (await row.locator(".since").innerText()).split("\n")[0]!;
    const truth = (fast.double!.answers.now - pod.pods[0]!.created) / 1000;
    const numbers = [...shown.matchAll(/(\d+) (d|h|min|s)/g)].map(([, amount, unit]) => Number(amount) * { d: 86_400, h: 3600, min: 60, s: 1 }[unit as "s"]);
    const seconds = numbers.reduce((sum, each) => sum + each, 0);
    expect(Math.abs(seconds - truth)).toBeLessThan(truth > 3600 ? 130 : 70);
    expect(problems).toEqual([]);
    await close();
    fast.stop();
  });

  it("a sandbox at full speed is drawn, too", async () => {
    const fast = await serve({ speed: 1_000_000, size: 0.2 });
    const { page, problems, close } = await open(its.browser, fast.url);
    await page.getByText(/, clock \d{3,4}×$/).waitFor();
    for (const [name, title] of [["map", "GPU map"], ["workloads", "Workloads"], ["overview", "Overview"]]) {
      await page.getByRole("navigation", { name: "Pages" }).locator(`a.nav-link[href*="#/${name}"]`).click();
      await page.getByRole("heading", { level: 1, name: title ?? "" }).waitFor();
      await settled(page);
    }
    expect(problems).toEqual([]);
    await close();
    fast.stop();
  });

  it("one request that fails hides its own panel only", async () => {
    const { page, close } = await open(its.browser, "about:blank");
    await page.route("**/api/v1/overview?*", (route) => route.fulfill({ status: 503, json: { error: "the overview is being computed" } }));
    await page.goto(`${its.server.url}#/overview`);
    await page.getByText("Cannot show the use of the cluster").waitFor();
    await page.locator(".teams tbody tr").first().waitFor();
    await page.getByRole("region", { name: "Waiting pods by job and cause" }).waitFor();
    await page.getByRole("region", { name: "Decisions of the last hour" }).waitFor();
    await close();
  });

  it("pages open while the server is away", async () => {
    const { page, close } = await open(its.browser, its.server.url);
    await settled(page);
    await page.waitForFunction(
      () => ["map", "workloads", "decisions", "quotas", "pools", "whatif"].every((name) => performance.getEntriesByType("resource").some((each) => each.name.includes(`/assets/${name}-`))),
    );
    await page.route("**/assets/**", (route) => route.abort());
    await turn({ failing: true });
    for (const [name, title] of [["pools", "Pools"], ["what-if", "What if"], ["decisions", "Decisions"]]) {
      await page.getByRole("navigation", { name: "Pages" }).locator(`a[href*="#/${name}"]`).click();
      await page.getByRole("heading", { level: 1, name: title ?? "" }).waitFor();
      await page.getByText(/Cannot show|See it before it happens/).first().waitFor();
      expect(await page.getByText("This page cannot be drawn").count()).toBe(0);
    }
    await close();
  });

  it("the page loads again by itself after an upgrade of the server, once", async () => {
    const { page, close } = await open(its.browser, `${its.server.url}#/decisions?type=reclaim`);
    await settled(page);
    await page.getByText("Live", { exact: true }).waitFor();
    let upgraded = 0;
    // Only what the page asks itself: a navigation gets the files that are there.
    await page.route(its.server.url, async (route) => {
      if (route.request().isNavigationRequest()) return route.continue();
      upgraded++;
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()).replace(/index-[^"]+\.js/, "index-newer.js") });
    });
    const again = page.waitForEvent("load");
    await turn({ drop: true });
    await again;
    await page.getByRole("radio", { name: /^reclaim/ }).waitFor();
    expect(await hash(page)).toContain("type=reclaim");
    // A cache between that keeps the old files must not make it loop.
    await page.getByText("Live", { exact: true }).waitFor();
    const asked = upgraded;
    await page.evaluate(() => ((window as unknown as { same: boolean }).same = true));
    await turn({ drop: true });
    await expect.poll(() => upgraded, { timeout: 20_000 }).toBeGreaterThan(asked);
    await page.getByText("Live", { exact: true }).waitFor();
    expect(await page.evaluate(() => (window as unknown as { same?: boolean }).same)).toBe(true);
    await close();
  });

  it("maps and lists follow, too", async () => {
    const { page, close } = await open(its.browser, `${its.server.url}#/workloads?state=running`);
    await settled(page);
    const busy = page.locator(".meter-text");
    const before = await busy.allInnerTexts();
    await turn({ advance: 1_800_000 });
    await page.waitForFunction(
      (old) => JSON.stringify([...document.querySelectorAll(".meter-text")].map((each) => each.textContent)) !== old,
      JSON.stringify(before),
    );
    await page.goto(`${its.server.url}#/map`);
    await settled(page);
    const pixels = await page.evaluate(() => document.querySelector<HTMLCanvasElement>(".map-canvas")?.toDataURL());
    await turn({ advance: 3_600_000 });
    await page.waitForFunction((old) => document.querySelector<HTMLCanvasElement>(".map-canvas")?.toDataURL() !== old, pixels);
    await close();
  });

  it("data that grows old is said to be old", async () => {
    const context = await its.browser.newContext();
    const page = await context.newPage();
    await page.clock.install();
    await page.goto(its.server.url);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.clock.runFor(40_000);
    await page.getByText("Old data", { exact: true }).waitFor();
    await page.getByText(/^from \d+ s ago$/).waitFor();
    await context.close();
  });

  it("a broken connection is said and mended", async () => {
    const { page, close } = await open(its.browser, its.server.url);
    await settled(page);
    await page.getByText("Live", { exact: true }).waitFor();
    await turn({ failing: true, drop: true });
    await page.getByText("Reconnecting", { exact: true }).waitFor();
    await page.getByText(/data from/).waitFor();
    await picture(page, "reconnecting");
    await turn({ failing: false });
    await page.getByText("Live", { exact: true }).waitFor();
    await close();
  });

  it("a server that is not ready is asked again until it is", async () => {
    await turn({ failing: true });
    const { page, close } = await open(its.browser, its.server.url);
    await page.getByText("the store is being opened").waitFor();
    await turn({ failing: false });
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await close();
  });

  it("an empty cluster has words on every page", async () => {
    await turn({ empty: true });
    for (const [name, words] of [
      ["overview", "No node reports yet"],
      ["map", "No GPU reports yet"],
      ["workloads", "No workload asks for a GPU"],
      ["decisions", "No decisions"],
      ["quotas", "There are no quotas"],
      ["pools", "There are no node pools"],
    ]) {
      const { page, problems, close } = await open(its.browser, `${its.server.url}#/${name}`);
      await page.getByText(words ?? "").waitFor();
      expect(problems).toEqual([]);
      await close();
    }
  });

  it("what may not be seen is said, and what may be is shown", async () => {
    await turn({ forbidden: true, namespaces: ["vision", "speech"], submit: false });
    const { page, close } = await open(its.browser, `${its.server.url}#/map`);
    await page.getByText("You may not see the map of all GPUs").waitFor();
    await page.getByText(/user casey may not see all of the cluster/).waitFor();
    await picture(page, "forbidden");
    await page.goto(`${its.server.url}#/workloads`);
    await page.getByRole("row").nth(1).waitFor();
    await page.getByRole("button", { name: /namespace/i }).click();
    await page.getByRole("option", { name: "speech" }).click();
    await page.waitForFunction(() => {
      const rows = [...document.querySelectorAll("tbody th")];
      return rows.length > 0 && rows.every((each) => each.textContent?.startsWith("speech/"));
    });
    expect(await hash(page)).toContain("ns=speech");
    await page.goto(`${its.server.url}#/what-if`);
    await page.getByText("Creating one needs the permission to create pods").waitFor();
    await close();
  });

  it("namespaces that nobody has asked about are told of, and one that is named is shown", async () => {
    await turn({ namespaces: ["vision"], unasked: ["speech", "other"] });
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/workloads`);
    await page.getByText("2 more namespaces are not checked yet").waitFor();
    await expectAccessible(page);
    await picture(page, "unasked");
    await page.getByLabel("Check a namespace").fill("speech");
    await page.getByRole("button", { name: "Check", exact: true }).click();
    await page.getByText("1 more namespace is not checked yet").waitFor();
    await page.getByRole("button", { name: /namespace.*speech/i }).first().waitFor();
    await page.waitForFunction(() => {
      const rows = [...document.querySelectorAll("tbody th")];
      return rows.length > 0 && rows.every((each) => each.textContent?.startsWith("speech/"));
    });
    expect(problems).toEqual([]);
    await close();
  });

  it("a token is asked for, sent, and forgotten with the tab", async () => {
    await turn({ token: "right" });
    const { page, close } = await open(its.browser, `${its.server.url}#/quotas`);
    await page.getByText("kubectl create token gpu-viewer -n default").waitFor();
    await expectAccessible(page);
    await picture(page, "sign-in");
    await page.setViewportSize({ width: 390, height: 800 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
    await page.getByLabel("Kubernetes token").fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("the token is not valid in this cluster; make a new one").waitFor();
    await page.getByLabel("Kubernetes token").fill("right");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { level: 1, name: "Quotas" }).waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain("right");
    expect(page.url()).not.toContain("right");
    await close();
  });

  it("a provider signs people in, and they come back to where they were", async () => {
    await turn({ signIn: true });
    const { page, close } = await open(its.browser, `${its.server.url}#/quotas`);
    await page.getByRole("link", { name: "Sign in" }).click();
    await page.getByRole("heading", { level: 1, name: "Quotas" }).waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("link", { name: "Sign in" }).waitFor();
    await close();
  });

  it("lies behind any path prefix", async () => {
    const below = await serve({ prefix: "/team/gpus/" });
    const { page, problems, close } = await open(its.browser, `${below.url}#/map`);
    await page.getByRole("heading", { level: 1, name: "GPU map" }).waitFor();
    await settled(page);
    await page.getByText("Live", { exact: true }).waitFor();
    expect(problems).toEqual([]);
    await close();
    below.stop();
  });
});

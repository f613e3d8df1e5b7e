// Live updates, reconnection, and the design for empty and failing states. The double's knobs
// create these; against a real server they are skipped.
import type { Page } from "playwright-core";
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
    await page.getByText("the store is being opened; come again in a moment").waitFor();
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
    await page.getByText("creating pods takes the right to").waitFor();
    await close();
  });

  it("namespaces that nobody has asked about are told of, and one that is named is shown", async () => {
    await turn({ namespaces: ["vision"], unasked: ["speech", "other"] });
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/workloads`);
    await page.getByText("2 namespaces more have not been asked about yet").waitFor();
    await expectAccessible(page);
    await picture(page, "unasked");
    await page.getByLabel("Ask about").fill("speech");
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    await page.getByText("1 namespace more has not been asked about yet").waitFor();
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

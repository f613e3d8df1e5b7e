// The search over everything, by keyboard alone.
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import type { Gpus, Pod, Workloads } from "../../src/api/types";
import { expectAccessible, hash, heading, open, picture, settled, unable, useBrowser } from "./browser";

const field = (page: Page): ReturnType<Page["getByRole"]> => page.getByRole("combobox", { name: /^Search for / });

async function search(page: Page, text: string): Promise<void> {
  await page.keyboard.press("Control+K");
  await field(page).waitFor();
  await page.keyboard.type(text);
}

describe.skipIf(unable)("the search", () => {
  const its = useBrowser();

  it("opens pages, namespaces, nodes, GPUs and pods by keyboard alone", async () => {
    const { page, problems, close } = await open(its.browser, its.server.url);
    await settled(page);
    await search(page, "decis");
    await page.keyboard.press("Enter");
    await heading(page, "Decisions");

    const gpus = (await (await fetch(new URL("api/v1/gpus", its.server.url))).json()) as Gpus;
    const node = gpus.nodes.find((each) => each.gpus.some((gpu) => gpu.instances.some((one) => one.holders.length > 0)))!;
    const gpu = node.gpus.find((each) => each.instances.some((one) => one.holders.length > 0))!;
    for (const text of [gpu.gpu, gpu.instances[0]!.instance]) {
      await page.keyboard.press("/");
      await field(page).waitFor();
      await page.keyboard.type(text);
      await page.getByRole("option", { name: `${node.node} · GPU ${gpu.index}` }).waitFor();
      await page.keyboard.press("Enter");
      await page.getByRole("complementary", { name: `GPU ${node.node}/${gpu.index}` }).waitFor();
    }

    const pods = (await (await fetch(new URL("api/v1/workloads?state=running&limit=50", its.server.url))).json()) as Workloads;
    const pod = pods.pods.at(-1)!;
    await search(page, `${pod.namespace}/${pod.name}`);
    await page.getByRole("option", { name: `${pod.namespace}/${pod.name}` }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: `Pod ${pod.namespace}/${pod.name}` }).waitFor();
    expect(await hash(page)).toMatch(/^#\/workloads\?pod=/);
    expect(problems).toEqual([]);
    await close();
  });

  it("follows the combobox pattern: the focus stays in the field, the option is named, arrows go round", async () => {
    const { page, problems, close } = await open(its.browser, its.server.url);
    await settled(page);
    await page.getByRole("button", { name: "Search" }).click();
    const input = field(page);
    await input.waitFor();
    const active = (): Promise<string> =>
      page.evaluate(() => {
        const at = document.activeElement!;
        const option = document.getElementById(at.getAttribute("aria-activedescendant") ?? "");
        return `${at.getAttribute("role")} ${option?.getAttribute("role")} ${option?.getAttribute("aria-selected")} ${option?.querySelector(".palette-title")?.textContent}`;
      });
    expect(await active()).toBe("combobox option true Overview");
    await page.keyboard.press("ArrowDown");
    expect(await active()).toBe("combobox option true GPU map");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowUp");
    expect(await active()).not.toContain("Overview");
    await page.keyboard.type("a100");
    await page.getByRole("status").filter({ hasText: /^\d+ results$/ }).waitFor();
    await page.keyboard.press("PageDown");
    await expectAccessible(page);
    await picture(page, "search");
    await page.keyboard.press("Escape");
    await input.waitFor({ state: "detached" });
    expect(await page.evaluate(() => document.activeElement?.textContent)).toMatch(/^Search/);
    expect(problems).toEqual([]);
    await close();
  });

  it("leaves a slash in a text field alone, and says that nothing is found", async () => {
    const { page, close } = await open(its.browser, `${its.server.url}#/workloads`);
    await settled(page);
    await page.getByRole("searchbox").focus();
    await page.keyboard.type("a/b");
    expect(await page.getByRole("searchbox").inputValue()).toBe("a/b");
    expect(await page.getByRole("dialog").count()).toBe(0);
    await search(page, "no such thing anywhere");
    await page.getByText("Nothing is called so.").waitFor();
    await page.keyboard.press("Enter");
    await field(page).waitFor();
    await close();
  });

  it("of 20,000 pods asks the server once for what was typed, and draws few", async () => {
    const { page, problems, close } = await open(its.browser, its.server.url, { colorScheme: "dark" });
    await settled(page);
    const one = ((await (await fetch(new URL("api/v1/workloads?limit=1", its.server.url))).json()) as Workloads).pods[0]!;
    const all: Pod[] = Array.from({ length: 20_000 }, (_, number) => ({ ...one, uid: `many-${number}`, name: `many-${number}-train`, namespace: `team-${number % 40}` }));
    const asked: string[] = [];
    await page.route("**/api/v1/workloads?*", async (route) => {
      const query = new URL(route.request().url()).searchParams;
      if (!query.has("q")) return route.continue();
      asked.push(query.get("q")!);
      const pods = all.filter((each) => each.name.includes(query.get("q")!));
      await route.fulfill({ json: { at: 0, total: pods.length, pods: pods.slice(0, Number(query.get("limit"))), next: null } satisfies Workloads });
    });
    await search(page, "many-1234");
    await page.getByRole("option", { name: "team-34/many-1234-train" }).waitFor();
    const options = await page.getByRole("option").count();
    expect(options).toBeLessThanOrEqual(20);
    // The typing is faster than a pause: in the end one question counts, and few were asked.
    expect(asked.at(-1)).toBe("many-1234");
    expect(asked.length).toBeLessThanOrEqual(9);
    await picture(page, "search-dark");
    await page.setViewportSize({ width: 400, height: 800 });
    await expectAccessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
    await picture(page, "search-narrow");
    expect(problems).toEqual([]);
    await close();
  });
});

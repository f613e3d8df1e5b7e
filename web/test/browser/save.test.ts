// Files of tables, charts and the map, and links to share.
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import type { Workloads } from "../../src/api/types";
import { expectAccessible, open, picture, realUrl, settled, unable, useBrowser } from "./browser";

/** The file that the button saves: its name and content. */
async function saved(page: Page, press: () => Promise<void>): Promise<{ name: string; content: Buffer }> {
  const coming = page.waitForEvent("download");
  await press();
  const file = await coming;
  return { name: file.suggestedFilename(), content: await readFile(await file.path()) };
}

const lines = (content: Buffer): string[] => content.toString("utf8").trimEnd().split("\r\n");
const png = Buffer.from([0x89, 0x50, 0x4e, 0x47]);

describe.skipIf(unable)("files", () => {
  const its = useBrowser();

  it("of pods have all that match, in the order of the page, not only those in sight", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/workloads?state=running&sort=-pod`);
    await settled(page);
    const { name, content } = await saved(page, () => page.getByRole("button", { name: "Save pods as CSV" }).click());
    expect(name).toMatch(/^nos-[\w.-]+-pods-\d{4}-\d\d-\d\dT[\d-]+Z\.csv$/);
    const [head = "", ...rows] = lines(content);
    const at = head.split(",").indexOf("pod");
    const total = ((await (await fetch(new URL("api/v1/workloads?state=running&limit=1", its.server.url))).json()) as Workloads).total;
    if (!realUrl) expect(rows).toHaveLength(total);
    expect(rows.every((row) => row.startsWith("running,"))).toBe(true);
    expect(rows.length).toBeGreaterThan(0);
    // A living cluster starts and ends pods between the file and a look at the page: only the page's own cluster stands still.
    if (!realUrl) {
      const shown = (await page.locator("tbody th .link").allInnerTexts()).map((each) => each.split("/")[1]);
      expect(shown.length).toBeGreaterThan(0);
      expect(rows.slice(0, shown.length).map((row) => row.split(",")[at])).toEqual(shown);
    }
    expect(problems).toEqual([]);
    await close();
  });

  it("of every other table can be saved", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/overview`);
    for (const [address, label] of [
      ["overview", "Save teams as CSV"], ["overview", "Save waiting pods as CSV"], ["map?view=table", "Save GPUs as CSV"],
      ["decisions", "Save decisions as CSV"], ["quotas", "Save quotas of"], ["pools", "Save pools as CSV"], ["workloads?group=job", "Save queues as CSV"],
    ] as const) {
      if (realUrl && ["pools", "queues"].some((each) => label.includes(each))) continue;
      await page.goto(`${its.server.url}#/${address}`);
      await settled(page);
      const { content } = await saved(page, () => page.getByRole("button", { name: label }).first().click());
      const [head = "", first = ""] = lines(content);
      expect(head).toMatch(/^[a-z_]+,/);
      expect(first.length).toBeGreaterThan(5);
    }
    expect(problems).toEqual([]);
    await close();
  });

  it("of charts and the map are pictures with a ground, and values", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/decisions`, { colorScheme: "dark" });
    await settled(page);
    const menu = page.getByRole("button", { name: /^Save chart / }).first();
    await menu.click();
    await expectAccessible(page);
    const chart = await saved(page, () => page.getByRole("menuitem", { name: "Picture (PNG)" }).click());
    expect(chart.content.subarray(0, 4)).toEqual(png);
    expect(chart.name).toMatch(/\.png$/);
    await menu.click();
    const values = await saved(page, () => page.getByRole("menuitem", { name: "Values (CSV)" }).click());
    expect(lines(values.content)[0]).toMatch(/^time,Allocated mean,/);
    await page.goto(`${its.server.url}#/map?by=team`);
    await settled(page);
    const map = await saved(page, () => page.getByRole("button", { name: "Save map as PNG" }).click());
    expect(map.content.subarray(0, 4)).toEqual(png);
    // Not one colour: the map is on it.
    const drawn = async (content: Buffer): Promise<number> =>
      page.evaluate(async (data) => {
        const image = await createImageBitmap(new Blob([Uint8Array.from(atob(data), (each) => each.charCodeAt(0))], { type: "image/png" }));
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext("2d")!;
        context.drawImage(image, 0, 0);
        const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
        return pixels.some((each) => each >>> 24 !== 255) ? 0 : new Set(pixels).size;
      }, content.toString("base64"));
    expect(await drawn(map.content)).toBeGreaterThan(20);
    expect(await drawn(chart.content)).toBeGreaterThan(20);
    const folder = process.env.NOS_SCREENSHOTS;
    if (folder) {
      const { mkdir, writeFile } = await import("node:fs/promises");
      await mkdir(folder, { recursive: true });
      await writeFile(`${folder}/saved-map.png`, map.content);
      await writeFile(`${folder}/saved-chart.png`, chart.content);
    }
    expect(problems).toEqual([]);
    await close();
  });

  it("are replaced by words if the server refuses the rest of the list", async () => {
    const { page, close } = await open(its.browser, `${its.server.url}#/workloads`);
    await settled(page);
    await page.route("**/api/v1/workloads?*limit=1000*", (route) => route.fulfill({ status: 429, json: { error: "too many requests: retry later" } }));
    await page.getByRole("button", { name: "Save pods as CSV" }).click();
    await page.getByText("Not saved: too many requests").waitFor();
    await close();
  });
});

describe.skipIf(unable)("a link to share", () => {
  const its = useBrowser();

  it("is copied with the cluster, and shows the same elsewhere", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/workloads?state=running&sort=-pod`, { permissions: ["clipboard-read", "clipboard-write"] });
    await settled(page);
    await page.getByRole("button", { name: "Link to this page" }).click();
    await expectAccessible(page);
    await picture(page, "share");
    await page.getByRole("button", { name: "Copy", exact: true }).click();
    await page.getByText("Copied.").waitFor();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    expect(link).toMatch(/#\/workloads\?cluster=.+&sort=-pod&state=running$/);
    const other = await open(its.browser, link);
    await settled(other.page);
    expect(await other.page.getByRole("columnheader", { name: "Pod" }).getAttribute("aria-sort")).toBe("descending");
    await other.close();
    await page.getByText("Show what is shown now").click();
    expect(await page.getByLabel("Link", { exact: true }).inputValue()).toMatch(/at=\d{13}/);
    expect(problems).toEqual([]);
    await close();
  });

  it("is selected for copying by hand where the browser keeps its clipboard", async () => {
    const { page, close } = await open(its.browser, its.server.url);
    await settled(page);
    await page.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new Error("denied"));
    });
    await page.getByRole("button", { name: "Link to this page" }).click();
    await page.getByText("Show what is shown now").click();
    await page.getByRole("button", { name: "Copy", exact: true }).click();
    await page.getByText("press Ctrl+C").waitFor();
    const selected = await page.evaluate(() => {
      const field = document.querySelector<HTMLInputElement>(".share-link")!;
      return field.value.slice(field.selectionStart ?? 0, field.selectionEnd ?? 0);
    });
    expect(selected).toMatch(/#\/overview\?cluster=.*&from=\d+&to=\d+$/);
    await close();
  });
});

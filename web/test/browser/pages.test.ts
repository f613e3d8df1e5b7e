// Every page: it loads, is accessible, and fits, in light and dark.
import { describe, expect, it } from "vitest";
import { expectAccessible, heading, open, picture, settled, unable, useBrowser } from "./browser";

const pages = [
  ["overview", "Overview"],
  ["map", "GPU map"],
  ["map?view=table", "GPU map"],
  ["workloads", "Workloads"],
  ["workloads?group=reason", "Workloads"],
  ["decisions", "Decisions"],
  ["quotas", "Quotas"],
  ["pools", "Pools"],
  ["cost", "Cost"],
  ["what-if", "What if"],
] as const;

const looks = [
  { name: "light", viewport: { width: 1440, height: 900 }, colorScheme: "light" },
  { name: "dark", viewport: { width: 1440, height: 900 }, colorScheme: "dark" },
  { name: "narrow", viewport: { width: 390, height: 844 }, colorScheme: "light" },
  { name: "wide", viewport: { width: 2560, height: 1440 }, colorScheme: "light" },
] as const;

describe.skipIf(unable)("pages", () => {
  const its = useBrowser();

  for (const { name: look, ...options } of looks) {
    // Wide screens differ where panels lie side by side.
    for (const [hash, title] of look === "wide" ? pages.filter(([each]) => ["overview", "map", "quotas", "cost"].includes(each)) : pages) {
      it(`${hash} in ${look}`, async () => {
        const { page, problems, close } = await open(its.browser, `${its.server.url}#/${hash}`, options);
        await heading(page, title);
        await settled(page);
        await page.getByText("Live", { exact: true }).waitFor();
        await picture(page, `${hash.replace(/\W+/g, "-")}-${look}`);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        expect(overflow).toBeLessThanOrEqual(0);
        const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        expect(background).toBe(look === "dark" ? "rgb(15, 18, 21)" : "rgb(246, 247, 248)");
        await expectAccessible(page);
        expect(problems).toEqual([]);
        await close();
      });
    }
  }

  it("are reached by links and keyboard", async () => {
    const { page, problems, close } = await open(its.browser, its.server.url);
    await heading(page, "Overview");
    const navigation = page.getByRole("navigation", { name: "Pages" });
    for (const title of ["GPU map", "Workloads", "Decisions", "Quotas", "Pools", "Cost", "What if", "Overview"]) {
      await navigation.getByRole("link", { name: title, exact: true }).focus();
      await page.keyboard.press("Enter");
      await heading(page, title);
      expect(await page.title()).toContain(title);
    }
    await page.goBack();
    await heading(page, "What if");
    expect(problems).toEqual([]);
    await close();
  });

  it("keep the colours that were chosen", async () => {
    const { page, close } = await open(its.browser, its.server.url, { colorScheme: "light" });
    await page.getByRole("button", { name: /switch to light/ }).click();
    await page.getByRole("button", { name: /switch to dark/ }).click();
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    await page.reload();
    await page.getByRole("button", { name: /Dark colours/ }).waitFor();
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    await close();
  });

  it("zoom into a chart by drawing over it, and out by choosing", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/overview?range=6h`);
    await settled(page);
    const plot = (await page.locator(".chart-plot .u-over").first().boundingBox())!;
    await page.mouse.move(plot.x + plot.width * 0.4, plot.y + 40);
    await page.mouse.down();
    await page.mouse.move(plot.x + plot.width * 0.8, plot.y + 50, { steps: 5 });
    await page.mouse.up();
    await page.waitForFunction(() => /from=\d+.*to=\d+/.test(window.location.hash));
    const span = await page.evaluate(() => {
      const query = new URLSearchParams(window.location.hash.split("?")[1]);
      return Number(query.get("to")) - Number(query.get("from"));
    });
    expect(span).toBeGreaterThan(0.3 * 6 * 3_600_000);
    expect(span).toBeLessThan(0.5 * 6 * 3_600_000);
    await page.getByRole("button", { name: /^.*Time range/ }).click();
    await page.getByRole("option", { name: "24 hours" }).click();
    await page.waitForFunction(() => /range=24h/.test(window.location.hash) && !/from=/.test(window.location.hash));
    expect(problems).toEqual([]);
    await close();
  });

  it("of the overview fill the screen at 1600 and 2560 pixels, without a hole", async () => {
    for (const viewport of [{ width: 1600, height: 1000 }, { width: 2560, height: 1440 }]) {
      const { page, problems, close } = await open(its.browser, `${its.server.url}#/overview`, { viewport });
      await settled(page);
      await page.locator(".teams").waitFor();
      const facts = await page.evaluate(() => {
        const content = document.querySelector(".content")!;
        const all = [...document.querySelectorAll(".answer")].map((each) => each.getBoundingClientRect());
        const covered = all.reduce((sum, each) => sum + each.width * each.height, 0);
        const [left, right] = [Math.min(...all.map((each) => each.left)), Math.max(...all.map((each) => each.right))];
        const [top, bottom] = [Math.min(...all.map((each) => each.top)), Math.max(...all.map((each) => each.bottom))];
        return { share: covered / ((right - left) * (bottom - top)), below: content.getBoundingClientRect().bottom - bottom, scrolls: content.scrollHeight - content.clientHeight };
      });
      expect(facts.share).toBeGreaterThan(0.95);
      expect(facts.below).toBeLessThan(40);
      expect(facts.scrolls).toBeLessThan(viewport.height / 4);
      expect(problems).toEqual([]);
      await picture(page, `overview-${viewport.width}`);
      await close();
    }
  });

  it("say smallest, mean and largest value of charts in their own panels", async () => {
    const { page, close } = await open(its.browser, `${its.server.url}#/decisions`);
    await settled(page);
    const charts = page.locator(".chart");
    await charts.first().waitFor();
    for (const chart of await charts.all()) {
      expect((await chart.locator("thead th").allInnerTexts()).slice(2)).toEqual(["min", "mean", "max"]);
      for (const row of await chart.locator("tbody tr").all()) {
        expect((await row.locator("td").allInnerTexts()).length).toBe(4);
      }
    }
    await close();
  });
});

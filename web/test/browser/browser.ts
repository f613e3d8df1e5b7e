// A headless Chromium, and a server to test: the double, or the one at NOS_DASHBOARD_URL.
import { existsSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { readFile } from "node:fs/promises";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { Double, type Options } from "../double/server";

const chromiums = [process.env.CHROMIUM ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const executablePath = chromiums.find((each) => each !== "" && existsSync(each));
export const dist = fileURLToPath(new URL("../../dist/index.html", import.meta.url));

/** The address of a real server, or nothing. */
export const realUrl = process.env.NOS_DASHBOARD_URL ?? "";

/** Reason why no browser test can run here; empty if they can. */
export const unable =
  executablePath === undefined
    ? "no Chromium is here; on Debian: apt-get install chromium, elsewhere name it in $CHROMIUM"
    : realUrl === "" && !existsSync(dist)
      ? "web/dist is not there; build it with script/web"
      : "";
if (unable) console.warn(`browser tests are skipped: ${unable}`);

export async function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath,
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
      "--disable-sync", "--no-first-run",
    ],
  });
}

export interface Server {
  url: string;
  /** Only with the double. */
  double: Double | undefined;
  stop: () => void;
}

export async function serve(options: Options = {}): Promise<Server> {
  if (realUrl !== "" && Object.keys(options).length === 0) {
    return { url: realUrl.endsWith("/") ? realUrl : `${realUrl}/`, double: undefined, stop: () => undefined };
  }
  const double = new Double(options);
  return { url: await double.start(), double, stop: () => double.stop() };
}

/** For the tests of a `describe`: both exist while they run. */
export function useBrowser(): { browser: Browser; server: Server } {
  const its: Partial<{ browser: Browser; server: Server }> = {};
  beforeAll(async () => {
    [its.browser, its.server] = await Promise.all([launch(), serve()]);
  });
  afterAll(async () => {
    await its.browser?.close();
    its.server?.stop();
  });
  return its as { browser: Browser; server: Server };
}

/** A page that records its errors. */
export interface Watched {
  page: Page;
  problems: string[];
  close: () => Promise<void>;
}

export async function open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, timezoneId: "UTC", ...options });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(`exception: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") problems.push(message.text());
  });
  await page.goto(url);
  // A handler of page.route may still be waiting for its answer.
  const close = async () => {
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await context.close();
  };
  return { page, problems, close };
}

export async function heading(page: Page, text: string): Promise<void> {
  await page.getByRole("heading", { level: 1, name: text, exact: true }).waitFor();
}

/** Waits until no skeleton is on the page. */
export async function settled(page: Page): Promise<void> {
  await page.locator(".skeleton").first().waitFor({ state: "detached" });
  await page.waitForFunction(() => document.querySelectorAll(".skeleton").length === 0);
}

let axe: string | undefined;

interface AxeResult {
  violations: { id: string; impact: string | null; help: string; nodes: { html: string; failureSummary?: string }[] }[];
}

/** Fails with axe's findings against WCAG 2.1 A and AA. */
export async function expectAccessible(page: Page): Promise<void> {
  axe ??= await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  // Evaluated through the debugger, so the content security policy stays in force.
  await page.evaluate(axe);
  const result = await page.evaluate(
    () =>
      (globalThis as unknown as { axe: { run: (options: unknown) => Promise<AxeResult> } }).axe.run({
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
      }),
  );
  const found = result.violations.map((each) => `${each.id} (${each.impact}): ${each.help}\n  ${each.nodes.slice(0, 4).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary ?? ""}`).join("\n  ")}`);
  expect(found).toEqual([]);
}

/** Saves a screenshot to $NOS_SCREENSHOTS, for documents and manual inspection. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.NOS_SCREENSHOTS;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, `${name}.png`) });
}

export const hash = (page: Page): Promise<string> => page.evaluate(() => window.location.hash);

/** The pixels of the map. */
export const mapPixels = (page: Page): Promise<string> =>
  page.evaluate(() => document.querySelector<HTMLCanvasElement>(".map-canvas")?.toDataURL() ?? "");

// Workloads, decisions and what-if; and malicious names.
import { describe, expect, it } from "vitest";
import type { Gpus, Jobs, Overview, Pod, Pool, Workloads } from "../../src/api/types";
import { expectAccessible, hash, open, picture, realUrl, settled, unable, useBrowser } from "./browser";

describe.skipIf(unable)("workloads and decisions", () => {
  const its = useBrowser();

  it("are filtered and searched, and the address says how", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/workloads`);
    await settled(page);
    await page.getByRole("radio", { name: /^running/ }).click();
    await page.waitForFunction(() => {
      const states = [...document.querySelectorAll("tbody .pod-state")];
      return states.length > 0 && states.every((each) => each.textContent === "running");
    });
    const name = (await page.locator("tbody th .link").first().innerText()).split("/")[1] ?? "";
    await page.getByRole("searchbox").fill(name);
    await page.waitForFunction(
      (wanted) => [...document.querySelectorAll("tbody th")].every((each) => each.textContent?.includes(wanted)),
      name,
    );
    await page.reload();
    await settled(page);
    expect(await page.getByRole("searchbox").inputValue()).toBe(name);
    expect(await page.getByRole("radio", { name: /^running/ }).getAttribute("aria-checked")).toBe("true");
    await page.getByRole("searchbox").press("Escape");
    await page.getByRole("radio", { name: "Jobs" }).click();
    expect(await hash(page)).toContain("group=job");
    expect(problems).toEqual([]);
    await close();
  });

  it.skipIf(realUrl)("of one job are shown by its name, and everything again", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/workloads?group=job`);
    await settled(page);
    const job = page.locator("tr.group th a").first();
    const title = await job.innerText();
    await job.click();
    await page.waitForFunction((wanted) => {
      const titles = [...document.querySelectorAll("tr.group th")];
      return titles.length === 1 && titles[0]?.textContent?.includes(wanted);
    }, title);
    expect(await hash(page)).toMatch(/job=/);
    await page.getByRole("button", { name: /remove/ }).last().click();
    expect(await hash(page)).not.toMatch(/job=/);
    expect(problems).toEqual([]);
    await close();
  });

  it.skipIf(realUrl)("of jobs without pods say why they wait, and how full their queue is", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/workloads?group=job`);
    await settled(page);
    const job = page.locator("tr.group", { hasText: "nightly" });
    await job.getByText("queued", { exact: true }).waitFor();
    await job.getByText(/insufficient unused quota/).waitFor();
    const queues = page.getByRole("region", { name: "Queues" });
    const row = queues.getByRole("row", { name: /gpus/ });
    await row.waitFor();
    const [around, within] = [await queues.boundingBox(), await row.boundingBox()];
    expect(within!.y + within!.height).toBeLessThanOrEqual(around!.y + around!.height + 1);
    await expectAccessible(page);
    await picture(page, "jobs");
    await page.setViewportSize({ width: 390, height: 800 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
    await picture(page, "jobs-narrow");
    await page.getByRole("searchbox").fill("no such thing");
    await job.waitFor({ state: "detached" });
    expect(problems).toEqual([]);
    await close();
  });

  it.skipIf(realUrl)("that wait say why, what would help and when they start", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/workloads?state=pending`);
    await settled(page);
    await page.locator("tbody th .link").first().click();
    const panel = page.getByRole("complementary", { name: /^Pod / });
    await panel.getByText("Why it waits").waitFor();
    await panel.getByText("What would help").waitFor();
    await panel.getByText(/Expected to start|cannot be estimated/).waitFor();
    await picture(page, "pod-pending");
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await panel.waitFor({ state: "detached" });
    expect(problems).toEqual([]);
    await close();
  });

  it("running pods show how busy they are over time and lead to the map", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/workloads?state=running`);
    await settled(page);
    await page.locator("tbody th .link").first().click();
    const panel = page.getByRole("complementary", { name: /^Pod / });
    await panel.locator(".slice").first().click();
    await page.getByRole("complementary", { name: /^GPU / }).waitFor();
    expect(await hash(page)).toMatch(/^#\/map\?.*pod=.*sel=/);
    expect(problems).toEqual([]);
    await close();
  });

  it.skipIf(realUrl)("decisions show before and after, whom they served and what they cost", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/decisions?type=reclaim`);
    await settled(page);
    await page.locator(".decision-head").first().click();
    await page.getByRole("heading", { name: "Before and after" }).waitFor();
    for (const name of ["Served", "Evicted"]) {
      expect(await page.locator(".decision-body div", { has: page.getByRole("heading", { name, exact: true }) }).last().getByRole("link").count()).toBeGreaterThan(0);
    }
    expect(await page.getByRole("img", { name: /^before: / }).count()).toBeGreaterThan(0);
    await picture(page, "decision-open");
    await expectAccessible(page);
    await page.getByRole("link", { name: "Map just after" }).click();
    await page.getByText(/^As of /).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it.skipIf(realUrl)("what-if answers, refuses nonsense, and submits only when told twice", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/what-if`);
    await settled(page);
    await page.getByRole("button", { name: "What if?" }).click();
    await page.getByText(/^It would run on /).waitFor();
    await picture(page, "what-if-fits");
    await expectAccessible(page);
    await page.getByRole("radio", { name: "YAML" }).click();
    const pod = page.getByLabel("A pod, as YAML or JSON");
    const text = await pod.inputValue();
    await pod.fill(text.replace(/mig-[^"]*"?:/, 'mig-1g.99gb":'));
    await pod.press("Control+Enter");
    await page.getByText("It would wait").waitFor();
    await pod.fill(text);
    await page.getByText("The pod has changed since; simulate it again.").waitFor();
    await page.getByRole("button", { name: "Submit…" }).click();
    await page.getByRole("alertdialog").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Not now" }).click();
    expect(its.server.double?.submitted).toEqual([]);
    await page.getByRole("button", { name: "Submit…" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Submit", exact: true }).click();
    await page.getByText("Submitted", { exact: true }).waitFor();
    expect(its.server.double?.submitted).toHaveLength(1);
    expect(problems).toEqual([]);
    await pod.fill("{}");
    await page.getByRole("button", { name: "What if?" }).click();
    await page.getByText(/the text is not a Pod/).waitFor();
    await close();
  });

  it.skipIf(realUrl)("what-if is a form whose fields are in the address, with other sizes and the GPU before and after", async () => {
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/what-if`);
    await settled(page);
    await page.getByRole("button", { name: /Size/ }).click();
    await page.getByRole("option", { name: /^2g\.10gb/ }).click();
    await page.getByLabel("Slices of the pod").fill("2");
    await page.getByLabel("Priority or PriorityClass").fill("high");
    await page.getByLabel("Namespace", { exact: true }).fill("speech");
    await page.keyboard.press("Enter");
    await page.getByText(/^It would run on /).waitFor();
    const body = page.getByRole("region", { name: "The answer" });
    await body.getByRole("heading", { name: "GPUs before and after" }).waitFor();
    expect(await body.getByRole("img", { name: /^after: .*2g\.10gb/ }).count()).toBe(1);
    const rows = body.getByRole("table").getByRole("row");
    await body.getByText("simulating…").first().waitFor({ state: "detached" });
    await expect.poll(async () => (await rows.allInnerTexts()).filter((each) => /runs|waits/.test(each)).length).toBe(4);
    await expectAccessible(page);
    await picture(page, "what-if-form");
    expect(decodeURIComponent(await hash(page))).toMatch(/count=2&in=speech&priority=high&size=nvidia.com\/mig-2g.10gb/);
    // The text is what the form says.
    await page.getByRole("radio", { name: "YAML" }).click();
    const text = await page.getByLabel("A pod, as YAML or JSON").inputValue();
    expect(text).toContain("priorityClassName: high");
    expect(text).toMatch(/mig-2g\.10gb: "2"/);
    await page.getByRole("radio", { name: "Form" }).click();
    await body.getByRole("button", { name: "Take 2 × whole GPU" }).click();
    await page.waitForFunction(() => window.location.hash.includes("need=gpu"));
    await page.getByLabel("GPUs of the pod").waitFor();
    await page.getByText("No GPU would be repartitioned").waitFor();
    await page.setViewportSize({ width: 400, height: 800 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
    await picture(page, "what-if-form-narrow");
    expect(problems).toEqual([]);
    await close();
  });

  it("names that mean harm do none", async () => {
    const evil = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>';
    const { page, problems, close } = await open(its.browser, `${its.server.url}#/overview`);
    const harm = async (path: string, change: (data: never) => void): Promise<void> => {
      await page.route(path, async (route) => {
        const response = await route.fetch();
        const data = (await response.json()) as never;
        change(data);
        await route.fulfill({ response, json: data });
      });
    };
    const spoil = (pod: Pod): void => {
      Object.assign(pod, { name: `${evil}\u202E\u0000`, namespace: "javascript:alert(1)//", why: evil, message: evil, owner: { kind: evil, name: evil } });
    };
    await harm("**/api/v1/workloads?*", (data: Workloads) => data.pods.forEach(spoil));
    await harm("**/api/v1/jobs?*", (data: Jobs) => {
      for (const job of data.jobs) Object.assign(job, { name: evil, why: evil, queue: evil, type: evil });
      for (const queue of data.queues) Object.assign(queue, { name: evil, cluster_queue: evil, active: false, why: evil });
    });
    await harm("**/api/v1/pools?*", (data: { pools: Pool[] }) => {
      for (const pool of data.pools) Object.assign(pool, { name: `${evil}${pool.name}`, why: evil, gpu: { model: evil, count: 8, partitioning: evil } });
    });
    await harm("**/api/v1/overview?*", (data: Overview) => data.models.forEach((each) => (each.product = evil.repeat(20))));
    await harm("**/api/v1/gpus?*", (data: Gpus) => {
      for (const node of data.nodes) {
        node.node = `${evil}${node.node}`;
        for (const gpu of node.gpus) {
          gpu.health = evil;
          for (const each of gpu.instances) for (const holder of each.holders) Object.assign(holder, { pod: evil, namespace: "../../..", quota: "__proto__" });
        }
      }
    });
    for (const name of ["overview", "map?by=team&zoom=l", "map?view=table", "workloads", "workloads?group=job", "pools", "what-if"]) {
      await page.goto(`${its.server.url}#/${name}`);
      await page.reload();
      await settled(page);
      await page.getByText("Live", { exact: true }).waitFor();
      expect(await page.evaluate(() => (window as unknown as { hurt?: number }).hurt)).toBeUndefined();
      expect(await page.locator("main img, main script").count()).toBe(0);
      expect(await page.evaluate(() => [...document.querySelectorAll("a")].every((each) => new URL(each.href).protocol.startsWith("http")))).toBe(true);
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
    }
    expect(problems).toEqual([]);
    await close();
  });
});

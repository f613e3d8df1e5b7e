// The weight of the first load, compressed: the page, its styles, the first page and what these import.
import { existsSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import path from "node:path";
import { expect, it } from "vitest";

const dist = fileURLToPath(new URL("../../dist/", import.meta.url));
const most = 250_000;

it.skipIf(!existsSync(path.join(dist, "index.html")))("the first load has less than 250 kB", () => {
  const page = readFileSync(path.join(dist, "index.html"), "utf8");
  const files = new Set<string>();
  const take = (name: string): void => {
    if (files.has(name)) return;
    files.add(name);
    const text = readFileSync(path.join(dist, name), "utf8");
    if (!name.endsWith(".js")) return;
    // Static imports alone: others come later.
    for (const [, file = ""] of text.matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g)) take(`assets/${file}`);
  };
  for (const [, file = ""] of page.matchAll(/(?:src|href)="\.\/(assets\/[\w.-]+)"/g)) take(file);
  const main = [...files].find((each) => each.endsWith(".js")) ?? "";
  const overview = /overview-[\w-]+\.js/.exec(readFileSync(path.join(dist, main), "utf8"))?.[0];
  expect(overview).toBeDefined();
  take(`assets/${overview}`);
  expect(files.size).toBeGreaterThan(4);
  const weight = gzipSync(page).length + [...files].reduce((sum, each) => sum + gzipSync(readFileSync(path.join(dist, each))).length, 0);
  expect(weight).toBeLessThan(most);
  // The first load is not a few bytes by mistake.
  expect(weight).toBeGreaterThan(100_000);
});

import react from "@vitejs/plugin-react";
import { existsSync } from "node:fs";
import path from "node:path";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

// The dashboard speaks English, and so does what the component library says: its words in thirty
// other languages would be half of the bundle.
const english: Plugin = {
  name: "english",
  enforce: "pre",
  load(id) {
    const file = /^(.*[\\/]intl[\\/].*[\\/])[a-z]{2}-[A-Z]{2}\.(m?js)$/.exec(id);
    if (!file || /en-US\.m?js$/.test(id)) return null;
    const words = path.join(file[1] ?? "", `en-US.${file[2]}`);
    return existsSync(words) ? `export { default } from ${JSON.stringify(words)};` : null;
  },
};

// `npm run dev` serves the sources and asks this server for data: the double, or a real one.
const backend = process.env.NOS_URL ?? "http://127.0.0.1:8099";

export default defineConfig({
  // Relative, so that the same files work behind any path prefix.
  base: "./",
  plugins: [english, react()],
  server: { proxy: { "/api": backend } },
  build: {
    target: "es2022",
    // The content security policy allows neither data: URLs nor inline scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  test: {
    projects: [
      { test: { name: "unit", include: ["test/unit/**/*.test.ts"], environment: "node", env: { TZ: "UTC" } } },
      {
        test: {
          name: "browser",
          include: ["test/browser/**/*.test.ts"],
          environment: "node",
          testTimeout: 180_000,
          hookTimeout: 120_000,
          // One Chromium at a time.
          poolOptions: { forks: { singleFork: true } },
        },
      },
    ],
  },
});

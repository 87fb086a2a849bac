/** How the page is built: hashes in the names of files, and nothing inline, for the Content-Security-Policy allows none. */

import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/mew/page/static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  test: { include: ["tests/**/*.test.{ts,tsx}"] },
});

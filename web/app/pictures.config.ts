import { defineConfig } from "@playwright/test";

// What `make pictures` draws docs/pictures/workbench.png with.
export default defineConfig({ globalSetup: "./e2e/build.ts", testDir: "pictures", outputDir: "test-results", timeout: 300_000, workers: 1, reporter: [["line"]] });

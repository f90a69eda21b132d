import { defineConfig } from "@playwright/test";

// What `make site` tests the documentation site with. TENON_SITE is the folder that make docs-site wrote.
export default defineConfig({
  testDir: "site",
  outputDir: "test-results",
  timeout: 300_000,
  expect: { timeout: 30_000 },
  workers: 1,
  forbidOnly: !!process.env.CI,
  reporter: [["list"], ["json", { outputFile: "../../testresults/site.json" }]],
});

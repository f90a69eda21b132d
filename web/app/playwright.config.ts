import { defineConfig } from "@playwright/test";

// The tests drive real pages of a real `tenon serve` (see e2e/tenon.ts). The browser is
// the system's: TENON_CHROMIUM names it, else the usual places are looked at.
export default defineConfig({
  testDir: "e2e",
  globalSetup: "./e2e/build.ts",
  outputDir: "test-results",
  snapshotPathTemplate: "{testDir}/looks/{arg}{ext}",
  timeout: 600_000, // machines that build beside are slow
  expect: { timeout: 90_000 },
  workers: 1,
  forbidOnly: !!process.env.CI,
  reporter: [["list"], ["json", { outputFile: "../../testresults/workbench.json" }]],
  use: { screenshot: "only-on-failure", trace: "off", actionTimeout: 90_000 },
});

import { defineConfig } from "@playwright/test";

// What `make figures ID=WB` measures with; no test asserts on time.
export default defineConfig({ globalSetup: "./e2e/build.ts", testDir: "figures", outputDir: "test-results", timeout: 900_000, workers: 1, reporter: [["line"]] });

// What the definitions of tools weigh, and a run over time above the fold.

import AxeBuilder from "@axe-core/playwright";
import { Project, expect, test, visit } from "./tenon";

let p: Project;

test.beforeAll(async () => {
  p = new Project();
  p.write("chat.yaml", "steps:\n  - calls: [{name: get_weather, arguments: {location: Oslo}}]\n  - text: Mild.\n");
  p.write("tenon.yaml", `version: 1
name: weight
servers:
  demo: {command: ${p.tenon}, args: [testserver, --stdio]}
  many: {command: ${p.tenon}, args: [testserver, --stdio, --tools, "4000"]}
models:
  chat: {provider: script, path: chat.yaml}
agents:
  default: {model: chat, tools: {include: [get_weather]}}
`);
  await p.serve();
});

test.afterAll(async () => {
  await p.end();
});

test("UX-12 the tokens of definitions are a bar by server, with a remedy from 50,000 on", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/tools");
  const bar = page.getByRole("img", { name: /tokens: many .*, demo / });
  await expect(bar).toBeVisible();
  await expect(page.getByRole("alert")).toContainText("tool_search.threshold");
  await page.getByText("by server").click();
  await expect(page.getByRole("list", { name: "Weights" })).toContainText("in 4000 tools");
  expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
  await page.getByLabel("Server").selectOption("demo");
  await expect(page.getByRole("alert")).toHaveCount(0);
  expect(wrong).toEqual([]);
});

test("UX-12 the waterfall of a run is above the fold, with a scale", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p);
  await page.getByLabel("Question").fill("How is Oslo?");
  await page.getByRole("button", { name: "Send" }).click();
  await expect(page.getByRole("log")).toContainText("Mild.");
  await page.goto(`${p.url}/runs`);
  await page.getByRole("link", { name: "How is Oslo?" }).first().click();
  const waterfall = page.getByRole("region", { name: "Waterfall" });
  await expect(waterfall).toContainText("get_weather");
  const box = (await waterfall.boundingBox())!;
  expect(box.y + box.height).toBeLessThan(800);
  expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
  expect(wrong).toEqual([]);
});

import fs from "node:fs";
import path from "node:path";
import AxeBuilder from "@axe-core/playwright";
import { Project, expect, test, visit } from "./tenon";

// UX-10 and UX-13: workflows are made and changed in the page, as a form and as text.

let p: Project;
const report = `# Greets the city.
kind: workflow
version: 1
name: report
description: Says what a city sold. # briefly

parameters:
  city: {type: string, description: Which city}
steps:
  # a table of its own
  - {id: sales, table: {rows: [{city: London, amount: 3}, {city: Rome, amount: 4}]}}
  - id: total
    sql: SELECT sum(amount) AS n FROM sales WHERE city = :city
    params: {city: params.city}
  - {id: words, template: "{{ params.city }} sold {{ steps.total.rows[0].n }}"} # for people
message: words
`;

test.beforeAll(async () => {
  p = new Project();
  p.write("report.yaml", report);
  p.write("tenon.yaml", `version: 1
name: edits
servers:
  demo: {command: ${p.tenon}, args: [testserver]}
# the tools
tools:
  report: {kind: workflow, path: report.yaml}
`);
  await p.serve();
});

test.afterAll(() => p.end());

const agree = async (page: import("@playwright/test").Page) => {
  const command = await page.getByLabel("Command").innerText();
  const id = /prp_\w+/.exec(command)![0];
  const shown = JSON.parse(await p.runBeside("-c", "tenon.yaml", "proposals", "show", id, "-o", "json"));
  await p.runBeside("-c", "tenon.yaml", "proposals", "accept", id, "--digest", shown.digest);
};

test("UX-10: one field is changed, and only its bytes differ; what waits is agreed to on the command line", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/workflows/report");
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  const text = page.getByLabel("Text of the workflow");
  await expect(text).toHaveValue(report);
  await expect(page.locator("[data-flow-step]")).toHaveCount(3);
  await page.locator('[data-flow-step="words"]').click();
  await page.getByRole("group", { name: "Step words" }).getByLabel("Text", { exact: true }).fill("In {{ params.city }}: {{ steps.total.rows[0].n }}");
  const want = report.replace("{{ params.city }} sold {{", "In {{ params.city }}: {{");
  await expect(text).toHaveValue(want);
  await expect(page.getByRole("status", { name: "Check" })).toHaveText(/No mistakes/);
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    expect((await new AxeBuilder({ page }).analyze()).violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`)).toEqual([]);
  }
  await page.getByRole("button", { name: "Show what changes" }).click();
  await expect(page.getByLabel("Difference")).toContainText("+ ");
  await page.getByRole("button", { name: "Save it" }).click();
  expect(p.read("report.yaml")).toBe(report); // nothing is written before the owner agrees
  await agree(page);
  await expect(page).toHaveURL(/\/workflows\/report$/);
  expect(p.read("report.yaml")).toBe(want);
  await page.getByLabel(/^city/).fill("London");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page.getByLabel("Message of the workflow")).toHaveText("In London: 3");
  expect(wrong).toEqual([]);
});

test("UX-10: a step that is renamed is renamed wherever it is named", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/workflows/report?edit=1");
  const text = page.getByLabel("Text of the workflow");
  await expect(page.locator("[data-flow-step]")).toHaveCount(3);
  const before = await text.inputValue();
  await page.locator('[data-flow-step="total"]').click();
  await page.getByRole("group", { name: "Step total" }).getByLabel("Name", { exact: true }).fill("words"); // taken
  await expect(page.getByText("An input or another step has this name.")).toBeVisible();
  await page.getByRole("group", { name: "Step total" }).getByLabel("Name", { exact: true }).fill("sum");
  await expect(text).toHaveValue(before); // not yet complete
  await page.getByRole("group", { name: "Step total" }).getByLabel("Name", { exact: true }).press("Enter");
  await expect(text).toHaveValue(before.replace("id: total", "id: sum").replace("steps.total.rows", "steps.sum.rows"));
  await expect(page.getByRole("status", { name: "Check" })).toHaveText(/No mistakes/);
  expect(wrong).toEqual([]);
});

test("UX-13: mistakes are said as one types, with their places and remedies, and the graph follows", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/workflows/report?edit=1");
  const text = page.getByLabel("Text of the workflow");
  await expect(page.locator("[data-flow-step]")).toHaveCount(3);
  await text.fill(p.read("report.yaml").replace("message: words", "message: wodrs").replace("FROM sales", "FROM slaes"));
  const mistakes = page.getByRole("list", { name: "Mistakes" });
  await expect(mistakes).toContainText("report.yaml:16:10");
  await expect(mistakes).toContainText("did you mean 'words'?");
  await expect(page.getByRole("button", { name: "Show what changes" })).toBeDisabled();
  await text.fill(p.read("report.yaml").replace("FROM sales", "FROM slaes"));
  await expect(mistakes).toContainText("no such table: slaes");
  await expect(mistakes).toContainText("did you mean 'sales'?");
  await text.fill("kind: [workflow");
  await expect(mistakes).toContainText("report.yaml:1:");
  await text.fill(p.read("report.yaml"));
  await expect(page.getByRole("status", { name: "Check" })).toHaveText(/No mistakes/);
  await page.getByLabel("Add a step").selectOption("tool");
  await expect(page.locator('[data-flow-step="tool"]')).toBeVisible();
  const step = page.getByRole("group", { name: "Step tool" });
  await step.getByLabel("Tool", { exact: true }).selectOption({ label: "add (demo)" });
  await expect(mistakes).toContainText("the tool needs the argument 'a'");
  await step.getByLabel(/^a \*/).fill("2");
  await step.getByLabel("b is").selectOption("cel");
  await step.getByLabel(/^b \*/).fill("steps.total.rows[0].n");
  await expect(text).toHaveValue(/tool: "?add"?, args: \{a: 2, b: "?steps\.total\.rows\[0\]\.n"?\}/);
  await expect(page.getByRole("status", { name: "Check" })).toHaveText(/No mistakes/);
  expect(wrong).toEqual([]);
});

test("UX-10: a workflow from nothing, and a file that somebody else changed meanwhile", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/workflows");
  await page.getByRole("button", { name: "New workflow" }).click();
  await page.getByLabel("Name", { exact: true }).first().fill("hello");
  await expect(page.getByLabel("Text of the workflow")).toHaveValue(/name: hello\n/);
  await expect(page.getByRole("status", { name: "Check" })).toHaveText(/No mistakes/);
  await page.getByRole("button", { name: "Show what changes" }).click();
  await expect(page.getByLabel("Difference")).toHaveCount(2);
  await page.getByRole("button", { name: "Save it" }).click();
  await agree(page);
  await expect(page).toHaveURL(/\/workflows\/hello$/);
  await page.getByLabel(/^name/).fill("Ada");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page.getByLabel("Message of the workflow")).toHaveText("Hello, Ada!");
  expect(p.read("tenon.yaml")).toContain("# the tools\ntools:\n  report: {kind: workflow, path: report.yaml}\n");

  await page.goto(`${p.url}/workflows/hello?edit=1`);
  const text = page.getByLabel("Text of the workflow");
  await expect(text).toHaveValue(/Hello/);
  fs.appendFileSync(path.join(p.dir, "hello.yaml"), "# by hand\n");
  await text.fill(`${await text.inputValue()}# in the page\n`);
  await expect(page.getByRole("button", { name: "Show what changes" })).toBeEnabled();
  await page.getByRole("button", { name: "Show what changes" }).click();
  await expect(page.getByRole("alert").filter({ hasText: "changed meanwhile" })).toBeVisible();
  await page.getByRole("button", { name: /Load the file again/ }).click();
  await expect(text).toHaveValue(/# by hand\n$/);
  expect(wrong).toEqual([]);
});

test("UX-10: the editor at 400 px, without findings of axe", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/workflows?new=1", { width: 400, height: 800 });
  await expect(page.getByRole("status", { name: "Check" })).toHaveText(/No mistakes/);
  await page.getByRole("group", { name: "Step greeting" }).getByRole("button").first().click();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(400);
  expect((await new AxeBuilder({ page }).analyze()).violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`)).toEqual([]);
  expect(wrong).toEqual([]);
});

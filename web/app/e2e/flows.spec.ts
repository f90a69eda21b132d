import fs from "node:fs";
import path from "node:path";
import { Project, expect, test, visit } from "./tenon";

// Workflows, tables, the doctor, and what else shows how a thing came to be.

let p: Project;

test.beforeAll(async () => {
  p = new Project();
  p.write("chat.yaml", `steps:
  - text: Let me look first.
    calls: [{name: echo, arguments: {text: looked}}]
  - text: It is done.
`);
  p.write("report.yaml", `kind: workflow
version: 1
name: report
description: Totals the sales of a city, and tells of it.
parameters:
  city: {type: string, description: Which city}
  wait: {type: integer, default: 1, description: How long}
inputs:
  - {name: sales, type: table, description: Rows of sales, columns: {amount: integer}}
steps:
  - {id: total, sql: "SELECT :city AS city, count(*) AS n, sum(amount) AS total FROM sales", params: {city: params.city}}
  - {id: note, server: demo, tool: counter, args: {}}
  - {id: never, when: "params.wait > 100", template: "skipped"}
  - {id: words, template: "{{ params.city }}: {{ steps.total.rows[0].total }} after {{ steps.note.text }}"}
outputs:
  - {name: totals, description: The total of the city, from: total}
message: words
`);
  p.write("tables.yaml", `kind: workflow
version: 1
name: big
description: Makes a large table.
steps:
  - {id: rows, sql: "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49999) SELECT i AS number, i * 2 AS amount, 'text of ' || i AS words FROM n"}
outputs:
  - {name: rows, description: Many rows, from: rows}
`);
  p.write("tenon.yaml", `version: 1
name: flows
servers:
  demo: {command: ${p.tenon}, args: [testserver]}
  dead: {command: /nonexistent/server}
models:
  chat: {provider: script, path: chat.yaml}
agents:
  default: {model: chat}
tools:
  report: {kind: workflow, path: report.yaml}
`);
  p.run("workflows", "run", "tables.yaml", "-c", "tenon.yaml", "--out", "rows=big.arrow");
  await p.serve();
});

test.afterAll(() => p.end());

test("workflow: run with a form and a table, live steps, an approval, the table that comes out", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/workflows");
  await page.getByRole("link", { name: /^report/ }).click();
  await expect(page.locator("[data-flow-step]")).toHaveCount(4);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page.getByRole("alert").filter({ hasText: "is required" })).toBeVisible();
  await expect(page.getByRole("alert").filter({ hasText: "choose a table" })).toBeVisible();
  await page.getByLabel(/^city/).fill("London");
  await page.getByRole("combobox", { name: /^sales/ }).selectOption({ label: "big.arrow" });
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page).toHaveURL(/\/workflows\/report\?run=run_/);
  const step = (id: string) => page.locator(`[data-flow-step="${id}"]`);
  await expect(step("note")).toHaveAttribute("data-state", "asking");
  await expect(step("total")).toHaveAttribute("data-state", "ok");
  await expect(step("never")).toHaveAttribute("data-state", "skipped");
  await expect(step("words")).toHaveAttribute("data-state", "waiting");
  await page.getByRole("article", { name: /Decision about/ }).getByRole("button", { name: "Allow once" }).click();
  await expect(step("note")).toHaveAttribute("data-state", "ok");
  await expect(step("words")).toHaveAttribute("data-state", "ok");
  await expect(page.getByLabel("Message of the workflow")).toHaveText(/^London: 2499950000 after \d+/);
  await page.reload();
  await expect(step("words")).toHaveAttribute("data-state", "ok");
  // A step leads to its place in the run.
  await step("total").click();
  await expect(page).toHaveURL(/\/runs\/run_[^?]+\?step=total$/);
  await expect(step("total")).toHaveAttribute("aria-pressed", "true");
  await page.getByRole("list", { name: "Tables of the run" }).getByRole("listitem").filter({ hasText: "output" }).getByRole("link", { name: "totals" }).click();
  await expect(page.getByRole("table", { name: "Rows" }).getByRole("cell", { name: "2499950000" })).toBeVisible();
  expect(wrong).toEqual([]);
});

test("a run is replayed, and the page says that it is the same", async ({ chrome }) => {
  p.run("run", "-c", "tenon.yaml", "--yes", "Replay me.");
  const { page, wrong } = await visit(chrome, p, "/runs");
  await page.getByRole("link", { name: "Replay me." }).click();
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  await expect(page.getByRole("status", { name: "Replay" })).toHaveText(/give the same run/);
  expect(wrong).toEqual([]);
});

test("tables: a large one as a grid, one that is brought, and what is no table", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/tables");
  await page.getByRole("link", { name: "big.arrow" }).click();
  const grid = page.getByRole("table", { name: "Table big.arrow" });
  await expect(grid).toHaveAttribute("aria-rowcount", "50001");
  await expect(grid.getByRole("cell", { name: "text of 0", exact: true })).toBeVisible();
  expect(await grid.getByRole("row").count()).toBeLessThan(100);
  await page.getByLabel("Go to row").fill("43210");
  await page.getByRole("button", { name: "Go", exact: true }).click();
  await expect(grid.getByRole("cell", { name: "text of 43210" })).toBeVisible();
  await page.getByTitle("show row 43210").click();
  await expect(page.getByRole("dialog", { name: "Row 43210" })).toContainText("86420");
  await page.keyboard.press("Escape");
  const data = fs.readFileSync(path.join(p.dir, "big.arrow"));
  await page.getByLabel("Table to upload").setInputFiles({ name: "brought.arrow", mimeType: "application/octet-stream", buffer: data });
  await expect(page.getByRole("table", { name: "Table brought.arrow" })).toBeVisible();
  await page.getByLabel("Table to upload").setInputFiles({ name: "brought.arrow", mimeType: "application/octet-stream", buffer: data });
  await expect(page.getByRole("alert")).toContainText("already");
  const large = path.join(p.dir, "..", `${path.basename(p.dir)}-large.arrow`); // above the size of other bodies
  fs.writeFileSync(large, Buffer.alloc(20 << 20, "no table "));
  await page.getByLabel("Table to upload").setInputFiles(large);
  await expect(page.getByRole("alert")).toContainText("large.arrow");
  fs.rmSync(large);
  await page.getByLabel("Table to upload").setInputFiles({ name: "none.arrow", mimeType: "application/octet-stream", buffer: Buffer.from("no table") });
  await expect(page.getByRole("alert")).toContainText("none.arrow");
  await page.getByRole("button", { name: "Remove brought.arrow" }).click();
  await expect(page.getByRole("link", { name: "brought.arrow" })).toHaveCount(0);
  await page.goto(`${p.url}/tables?file=${encodeURIComponent("project:../../etc/passwd.arrow")}`);
  await expect(page.getByRole("alert")).toContainText("there is no table");
  expect(wrong).toEqual([]);
});

test("the doctor says what is wrong and what to do", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/doctor");
  const first = page.getByRole("list", { name: "Checks" }).getByRole("listitem").first();
  await expect(first).toHaveAttribute("data-status", "fail");
  await expect(first).toContainText("/nonexistent/server");
  await expect(first).toContainText("What to do");
  await expect(page.getByRole("list", { name: "Checks" })).toContainText("demo");
  expect(wrong).toEqual([]);
});

test("server card: a test with its phases, what is exchanged, how fast it answers", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/tools/add");
  await page.getByLabel(/^a/).fill("20260");
  await page.getByLabel(/^b/).fill("7");
  await page.getByRole("button", { name: "Call the tool" }).click();
  await expect(page.getByText("20267")).toBeVisible();
  await page.goto(`${p.url}/servers/demo`);
  const card = page.getByRole("article", { name: "Server demo" });
  await expect(card.getByLabel("Calls of the last day")).toContainText("p95");
  await expect(card.getByLabel("Capabilities")).toContainText("tools");
  await card.getByRole("button", { name: "Test" }).click();
  await expect(card.getByRole("list", { name: "Checks" }).getByRole("listitem").filter({ hasText: "server" })).toHaveAttribute("data-status", "ok");
  await card.getByRole("tab", { name: "Protocol" }).click();
  await card.getByLabel("Filter frames").fill("20260");
  const frames = card.getByRole("list", { name: "Frames" });
  await expect(frames.getByRole("listitem").first()).toContainText("tools/call");
  await frames.getByRole("button").last().click();
  await expect(frames).toContainText("20260");
  expect(wrong).toEqual([]);
});

test("branch from any message, and ask a question otherwise", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p);
  await page.getByLabel("Question").fill("The first question.");
  await page.keyboard.press("Enter");
  const allow = page.getByRole("button", { name: "Allow once" });
  await expect(page.getByText("It is done.").or(allow).first()).toBeVisible();
  if (await allow.isVisible()) await allow.click();
  await expect(page.getByText("It is done.")).toBeVisible();
  const session = page.url();
  await page.getByRole("button", { name: "Branch from here" }).first().click();
  await expect(page).not.toHaveURL(session);
  await expect(page.getByLabel("From the session that this one left")).toContainText("Let me look first.");
  await expect(page.getByText("It is done.")).toHaveCount(0);
  await page.goto(session);
  await page.getByRole("button", { name: "Edit and ask again" }).click();
  await expect(page).toHaveURL(`${p.url}/`);
  await expect(page.getByLabel("Question")).toHaveValue("The first question.");
  expect(wrong).toEqual([]);
});

test("results: a picture, numbers with all their digits, and five megabytes of text", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/tools/multi");
  const call = () => page.getByRole("button", { name: "Call the tool" }).click();
  await call();
  await expect(page.getByRole("img", { name: "a picture from the tool" })).toBeVisible();
  await page.goto(`${p.url}/tools/structured`);
  await call();
  await page.getByRole("tab", { name: "json" }).click();
  await expect(page.getByText("9007199254740993", { exact: true }).first()).toBeVisible();
  await page.goto(`${p.url}/tools/big`);
  await call();
  // The page draws a part, and answers.
  await expect(page.getByRole("link", { name: "the call as a run" })).toBeVisible();
  await expect(page.locator("pre").first()).toContainText("quick brown fox");
  expect(await page.evaluate(() => document.body.innerText.length)).toBeLessThan(200_000);
  // Digits that JavaScript's numbers have no room for reach the tool.
  await page.goto(`${p.url}/tools/add`);
  await page.getByRole("button", { name: "JSON" }).click();
  await page.getByRole("textbox").last().fill('{"a": 9007199254740993, "b": 0}');
  await call();
  await page.getByRole("link", { name: "the call as a run" }).click();
  await expect(page).toHaveURL(/\/runs\/run_/);
  await expect(page.getByText("9007199254740993").first()).toBeVisible();
  const run = page.url().split("/").pop()!;
  expect(p.run("runs", "events", run, "-c", "tenon.yaml", "-o", "jsonl")).toContain('"a":9007199254740993');
  expect(wrong).toEqual([]);
});

test("a token that holds no longer: the page says so and since when, and takes the new one", async ({ chrome }) => {
  const own = new Project();
  try {
    own.run("init");
    await own.serve();
    const { page, wrong } = await visit(chrome, own, "/servers");
    await expect(page.getByRole("article", { name: "Server demo" })).toBeVisible();
    await own.stop();
    await expect(page.getByText("No connection to tenon serve")).toBeVisible();
    own.write(".tenon/serve.token", `${"another-token-".repeat(4)}\n`);
    await own.serve();
    const told = page.getByRole("status").filter({ hasText: "The token is not valid any more: what is shown is as of" });
    await expect(told).toBeVisible();
    await told.getByRole("button", { name: "Sign in" }).click();
    await page.getByLabel("Token").fill(own.token());
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByRole("article", { name: "Server demo" })).toBeVisible();
    expect(wrong).toEqual([]);
  } finally {
    await own.end();
  }
});

test("a page whose parts cannot be loaded says so, and is loaded when tenon serve is back", async ({ chrome }) => {
  const { page } = await visit(chrome, p);
  await page.route("**/assets/runs-*", (route) => route.abort());
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Runs" }).click();
  await expect(page.getByRole("alert")).toContainText("This page could not be loaded");
  await page.unroute("**/assets/runs-*");
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.getByRole("heading", { name: "Runs" })).toBeVisible();
});

test("a newcomer: init, serve --model demo, and the call that the page asks about", async ({ chrome }) => {
  const first = new Project();
  try {
    first.run("init");
    await first.serve("--model", "demo");
    const { page, wrong } = await visit(chrome, first);
    await page.getByLabel("Question").fill("Count one up.");
    await page.keyboard.press("Enter");
    await page.getByRole("article", { name: "Decision about counter" }).getByRole("button", { name: "Allow once" }).click();
    await expect(page.getByText("That tool may change something, so it runs only where you allow it.")).toBeVisible();
    expect(wrong).toEqual([]);
  } finally {
    await first.end();
  }
});

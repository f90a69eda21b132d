// What results hold besides text, runs whose process died, and analytics without gaps.

import fs from "node:fs";
import AxeBuilder from "@axe-core/playwright";
import { Project, expect, test, visit } from "./tenon";

let p: Project;

const config = (models: string, agent: string) => `version: 1
name: artifacts
servers:
  demo: {command: ${p.tenon}, args: [testserver]}
  media: {command: ${process.execPath}, args: [media.mjs]}
models:
${models}
agents:
  default: {model: ${agent}}
`;
const both = "  chat: {provider: script, path: chat.yaml}\n  hangs: {provider: script, path: hangs.yaml}";

test.beforeAll(async () => {
  p = new Project();
  p.write("chat.yaml", `steps:
  - calls:
      - {name: image, arguments: {}}
      - {name: resource, arguments: {}}
      - {name: big, arguments: {bytes: 300000}}
      - {name: media, arguments: {}}
  - text: Here they are.
`);
  p.write("hangs.yaml", "steps:\n  - {delay: 1h, text: Never.}\n");
  p.write("media.mjs", `import readline from "node:readline";
const b64 = (t) => Buffer.from(t).toString("base64");
const content = [
  { type: "audio", mimeType: "audio/wav", data: b64("RIFF") },
  { type: "resource", resource: { uri: "test://page.html", mimeType: "text/html", blob: b64("<script>parent.pwned = 1</script>the page") } },
  { type: "image", mimeType: "image/png", data: Buffer.alloc(9 << 20).toString("base64") },
];
const answers = {
  initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "media", version: "1" } },
  "tools/list": { tools: [{ name: "media", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }] },
  "tools/call": { content },
};
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const m = JSON.parse(line);
  if (m.id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id: m.id, result: answers[m.method] ?? {} }));
});
`);
  p.write("tenon.yaml", config(both, "chat"));
  await p.serve();
  p.run("run", "-c", "tenon.yaml", "Show me", "--remote", p.url, "--token-file", ".tenon/serve.token", "--yes");
});

test.afterAll(() => p.end());

test("UX-12 pictures, sounds and files of a run stand at their steps, in the run and in the chat", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/runs");
  await page.getByRole("link", { name: "Show me" }).click();
  const list = page.getByRole("list", { name: "Artifacts" });
  await expect(list.getByRole("img", { name: "a picture from the tool" })).toHaveCount(1); // the picture of 9 MiB is not drawn
  await expect(list).toContainText("9.0 MiB");
  await expect(list.locator("audio")).toHaveCount(1);
  const html = list.locator("div").filter({ hasText: /^test:\/\/page\.html/ }).last();
  await html.getByRole("button", { name: "Show as text" }).click();
  await expect(list).toContainText("<script>parent.pwned = 1</script>the page");
  expect(await page.evaluate(() => "pwned" in window)).toBe(false);
  const [file] = await Promise.all([page.waitForEvent("download"), html.getByRole("button", { name: "Download" }).click()]);
  expect(file.suggestedFilename()).toBe("page.html");
  expect(fs.readFileSync(await file.path(), "utf8")).toContain("the page");
  await page.getByRole("button", { name: "Conversation" }).click();
  const log = page.getByRole("log");
  await expect(log.getByRole("img", { name: "a picture from the tool" })).toHaveCount(1);
  await expect(log.locator("audio")).toHaveCount(1);
  await expect(log.getByRole("button", { name: "Show as text" })).toHaveCount(1);
  expect(wrong).toEqual([]);
});

test("UX-12 the whole of a large result is read and saved from its step", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/runs");
  await page.getByRole("link", { name: "Show me" }).click();
  const list = page.getByRole("list", { name: "Artifacts" });
  await list.getByRole("button", { name: "Show the whole" }).click();
  const whole = page.getByRole("region", { name: "The whole result" });
  await expect(whole.getByRole("button", { name: /show all 300/ })).toBeVisible();
  const [file] = await Promise.all([page.waitForEvent("download"), list.getByRole("button", { name: "Download the whole" }).click()]);
  expect(fs.statSync(await file.path()).size).toBe(300_000);
  expect(wrong).toEqual([]);
});

test("UX-12 analytics have a value for every figure without a pointer over them", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/stats");
  const legend = page.locator(".u-legend");
  await expect(legend).toContainText("demo.image");
  await expect(legend).not.toContainText("--");
  const plot = page.locator(".u-over");
  await plot.hover();
  await page.mouse.move(1, 1);
  await expect(legend).not.toContainText("--");
  expect(wrong).toEqual([]);
});

for (const width of [1440, 400]) {
  for (const theme of ["light", "dark"]) {
    test(`UX-12 artifacts pass axe at ${width} px, ${theme}`, async ({ chrome }) => {
      const { page } = await visit(chrome, p, "/runs", { width, height: 900 });
      await page.getByRole("link", { name: "Show me" }).click();
      await page.evaluate((t) => { document.documentElement.dataset.theme = t; }, theme);
      await expect(page.getByRole("list", { name: "Artifacts" })).toContainText("page.html");
      expect((await new AxeBuilder({ page }).analyze()).violations.map((v) => `${v.id}: ${v.nodes[0]?.html}`)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
    });
  }
}

test("UX-12 a run whose process died is shown as interrupted", async ({ chrome }) => {
  await fetch(`${p.url}/api/v1/runs`, { method: "POST", headers: { Authorization: `Bearer ${p.token()}`, "Content-Type": "application/json" }, body: JSON.stringify({ question: "Never ends", model: "hangs" }) });
  let { page } = await visit(chrome, p, "/runs");
  const row = () => page.getByRole("row").filter({ hasText: "Never ends" });
  await expect(row()).toContainText("working");
  await p.stop("SIGKILL");
  p.write("tenon.yaml", config("  chat: {provider: script, path: chat.yaml}", "chat")); // so that the run cannot be resumed here
  await p.serve();
  ({ page } = await visit(chrome, p, "/runs"));
  await expect(row()).toContainText("interrupted");
  await expect(row()).not.toContainText("working");
  await expect(page.getByRole("row").filter({ hasText: "Show me" })).toContainText("completed");
  await row().getByRole("link").first().click();
  await expect(page.locator("header").getByText("interrupted")).toBeVisible();
  await expect(page.getByText("working", { exact: true })).toHaveCount(0);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "What to go to" }).fill("never ends");
  await expect(page.getByRole("option").filter({ hasText: "Never ends" })).toContainText("session, interrupted");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Conversation" }).click();
  await expect(page.getByText("The process of this run died.")).toBeVisible();
  await expect(page.getByText("Thinking…")).toHaveCount(0);
  expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
});

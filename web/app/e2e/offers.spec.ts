// The pages of prompts and resources, and the messages of the protocol.

import fs from "node:fs";
import AxeBuilder from "@axe-core/playwright";
import { Project, expect, test, visit } from "./tenon";

let p: Project;

test.beforeAll(async () => {
  p = new Project();
  p.write("chat.yaml", "steps:\n  - text: Thank you.\n");
  p.write("tenon.yaml", `version: 1
name: offers
servers:
  demo: {command: ${p.tenon}, args: [testserver, --prompts]}
models:
  chat: {provider: script, path: chat.yaml}
agents:
  default: {model: chat}
`);
  await p.serve();
});

test.afterAll(async () => {
  await p.end();
});

test("UX-11 a prompt is filled in, previewed and used in a chat", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/prompts");
  await page.getByLabel("Filter prompts").fill("review");
  await page.getByRole("link", { name: "review" }).click();
  await page.getByRole("button", { name: "Preview" }).click();
  await expect(page.getByRole("list", { name: "Messages" })).toHaveCount(0); // the browser asks for the argument first
  await page.getByLabel("what").fill("poem");
  await page.getByRole("button", { name: "Preview" }).click();
  const messages = page.getByRole("list", { name: "Messages" }).getByRole("listitem");
  await expect(messages).toHaveCount(3);
  await expect(messages.nth(0)).toContainText("Review poem .\\u{202e}");
  await expect(messages.nth(2)).toContainText("test://notes");
  await page.getByRole("button", { name: "Use in a new chat" }).click();
  await expect(page.getByLabel("Question")).toHaveValue(/Review poem[^]*Show it\.[^]*the change/);
  expect(wrong).toEqual([]);
});

test("UX-11 a resource is read, previewed, saved and attached", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/resources");
  await page.getByRole("link", { name: "notes" }).click();
  await page.getByRole("button", { name: "Read" }).click();
  await expect(page.getByRole("list", { name: "Contents" })).toContainText("the notes\\u{1b}[31m say 42");
  await page.getByRole("link", { name: "pixel" }).click();
  await page.getByRole("button", { name: "Read" }).click();
  await expect(page.getByRole("list", { name: "Contents" }).getByRole("img")).toBeVisible();
  await page.getByRole("link", { name: "raw" }).click();
  await page.getByRole("button", { name: "Read" }).click();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
  expect([...fs.readFileSync(await file.path())]).toEqual([0, 1, 2]);
  await page.getByRole("button", { name: "Attach to a new chat" }).click();
  await expect(page.getByRole("list", { name: "Attached" })).toContainText("demo: raw");
  expect(wrong).toEqual([]);
});

test("UX-11 a template makes the URI that is read, and a missing resource is an error", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/resources");
  await page.getByRole("link", { name: "day (template)" }).click();
  await page.getByLabel("date").fill("2026 11");
  await expect(page.getByRole("status").filter({ hasText: "test://day" })).toHaveText("test://day/2026%2011");
  await page.getByRole("button", { name: "Read" }).click();
  await expect(page.getByRole("alert")).toContainText("resource not found: test://day/2026%2011");
  expect(wrong).toEqual([]);
});

test("RP-11 a template is attached in the chat, with the values that its server completes", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p);
  await page.getByRole("button", { name: "Attach a resource" }).click();
  await page.getByRole("button", { name: /day \(template\)/ }).click();
  const date = page.getByRole("dialog").getByLabel("date", { exact: true });
  await date.fill("day-14");
  await expect.poll(() => date.evaluate((i: HTMLInputElement) => [...(i.list?.options ?? [])].map((o) => o.value))).toContain("day-147");
  await page.getByRole("button", { name: "Attach", exact: true }).click();
  await expect(page.getByRole("list", { name: "Attached" })).toContainText("demo: day");
  expect(wrong).toEqual([]);
});

test("UX-6 the lists of a server that hangs are shown at once with their age", async ({ chrome }) => {
  const slow = new Project();
  slow.write("start.sh", `if [ -e hang ]; then exec sleep 1000; fi\nexec "${slow.tenon}" testserver --stdio --prompts\n`);
  slow.write("tenon.yaml", `version: 1
name: slow
servers:
  slow: {command: sh, args: [start.sh], timeout: 1h}
`);
  slow.run("prompts", "list", "-c", "tenon.yaml");
  slow.run("resources", "list", "-c", "tenon.yaml");
  slow.write("hang", "");
  await slow.serve();
  try {
    const { page, wrong } = await visit(chrome, slow, "/prompts");
    await expect(page.getByRole("link", { name: "review" })).toBeVisible();
    await expect(page.getByRole("status").filter({ hasText: /prompts?, as listed/ })).toBeVisible();
    await page.getByRole("button", { name: "Ask the servers" }).click();
    await expect(page.getByRole("button", { name: "Ask the servers" })).toBeDisabled();
    await expect(page.getByRole("link", { name: "review" })).toBeVisible(); // what is known stays while a server is waited for
    await page.goto(`${slow.url}/resources`);
    await expect(page.getByRole("link", { name: "notes" })).toBeVisible();
    expect(wrong).toEqual([]);
  } finally {
    await slow.end();
  }
});

test("UX-11 a message of the protocol is pinned, exported and sent again in its form", async ({ chrome }) => {
  p.run("tools", "call", "-c", "tenon.yaml", "get_weather", "location=Paris", "--remote", p.url, "--token-file", ".tenon/serve.token");
  const { page, wrong } = await visit(chrome, p, "/servers/demo");
  await page.getByRole("tab", { name: "Protocol" }).click();
  await page.getByLabel("Direction").selectOption("sent");
  const frames = page.getByRole("list", { name: "Frames", exact: true });
  await page.getByLabel("Filter frames").fill("tools/call");
  await frames.getByRole("button", { expanded: false }).click();
  await frames.getByRole("button", { name: "Pin" }).click();
  await expect(page.getByRole("list", { name: "Pinned frames" }).getByRole("listitem")).toHaveCount(1);
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  const lines = fs.readFileSync(await file.path(), "utf8").trim().split("\n").map((l) => JSON.parse(l) as { method: string; text: string });
  expect(lines.map((l) => l.method)).toEqual(["tools/call"]);
  await frames.getByRole("link", { name: "Send again, in its form" }).click();
  await expect(page.getByLabel("location")).toHaveValue("Paris");
  expect(wrong).toEqual([]);
});

test("UX-11 messages appear while the pane is open, and again after a pause", async ({ chrome }) => {
  const call = (place: string) => p.run("tools", "call", "-c", "tenon.yaml", "get_weather", `location=${place}`, "--remote", p.url, "--token-file", ".tenon/serve.token");
  const { page, wrong } = await visit(chrome, p, "/servers/demo");
  await page.getByRole("tab", { name: "Protocol" }).click();
  await page.getByLabel("Direction").selectOption("sent");
  await page.getByLabel("Filter frames").fill("Lisbon");
  const frames = page.getByRole("list", { name: "Frames", exact: true }).getByRole("listitem");
  await expect(frames).toHaveCount(0);
  call("Lisbon");
  await expect(frames).toHaveCount(1);
  await page.getByRole("button", { name: "Pause" }).click();
  await expect(page.getByRole("button", { name: "Continue" })).toHaveAttribute("aria-pressed", "true");
  call("Lisbon");
  await page.getByRole("button", { name: "Continue" }).click();
  await expect(frames).toHaveCount(2);
  expect(wrong).toEqual([]);
});

for (const width of [1440, 400]) {
  for (const theme of ["light", "dark"]) {
    test(`UX-11 the pages pass axe at ${width} px, ${theme}`, async ({ chrome }) => {
      for (const at of ["/prompts/demo/review", "/resources/demo%2Ftest%3A%2F%2Fnotes"]) {
        const { page } = await visit(chrome, p, at, { width, height: 900 });
        await page.evaluate((t) => { document.documentElement.dataset.theme = t; }, theme);
        await expect(page.getByRole("button", { name: /Preview|Read/ })).toBeVisible();
        expect((await new AxeBuilder({ page }).analyze()).violations.map((v) => `${v.id}: ${v.nodes[0]?.html}`)).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
      }
    });
  }
}

test("UX-11 a server's page says what tenon does not offer to it, and the key that offers it", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/servers/demo");
  const missing = page.getByRole("region", { name: "Not offered" });
  await expect(missing.getByRole("listitem")).toHaveText([/^roots.*servers\.demo\.roots: \[\.\]$/, /^sampling.*servers\.demo\.sampling: ask$/]);
  for (const width of [1440, 400]) {
    for (const theme of ["light", "dark"]) {
      await page.setViewportSize({ width, height: 900 });
      await page.evaluate((t) => { document.documentElement.dataset.theme = t; }, theme);
      expect((await new AxeBuilder({ page }).analyze()).violations.map((v) => `${v.id}: ${v.nodes[0]?.html}`)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
    }
  }
  expect(wrong).toEqual([]);
});

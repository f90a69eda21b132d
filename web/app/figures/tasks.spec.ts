// The same ten tasks in MCP Inspector and in the workbench, each from a page that was just opened to the result that
// is seen: clicks (a field that is filled counts as one) and seconds. Both have the same server configured. The
// Inspector's own server needs Node 22.19: TENON_INSPECTOR_NODE names one.

import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import type { Browser, Locator, Page } from "@playwright/test";
import { Project, expect, test } from "../e2e/tenon";

const rounds = Number(process.env.TENON_ROUNDS ?? 3);

function tell(id: string, value: number): void {
  const line = JSON.stringify({ id, value });
  console.log(line);
  if (process.env.TENON_FIGURES) fs.appendFileSync(process.env.TENON_FIGURES, `${line}\n`);
}

/** A hand that counts what it does. */
class Hand {
  clicks = 0;
  constructor(readonly page: Page) {}
  async click(at: Locator): Promise<void> {
    this.clicks++;
    await at.click();
  }
  async fill(at: Locator, text: string): Promise<void> {
    this.clicks++;
    await at.fill(text);
  }
  button = (name: string | RegExp) => this.page.getByRole("button", { name, exact: true });
  see = (what: Locator) => expect(what.first()).toBeVisible({ timeout: 60_000 });
}

/** How a task is done in the Inspector: it connects first, since its connection belongs to the page. */
const its = {
  page: (h: Hand, name: string) => h.click(h.page.getByRole("radiogroup").first().getByText(name, { exact: true })),
  async connect(h: Hand) {
    h.clicks++;
    await h.page.getByRole("switch", { name: /Connect or disconnect/ }).first().click({ force: true });
    await h.see(h.page.getByRole("radiogroup").first());
  },
  async tool(h: Hand, name: string) {
    await its.connect(h);
    await its.page(h, "Tools");
    if (name) await h.click(h.button(name));
  },
  call: (h: Hand) => h.click(h.button("Execute Tool")),
  field: (h: Hand, name: string) => h.page.getByRole("textbox", { name, exact: true }),
  result: (h: Hand, text: string) => h.see(h.page.getByText(text, { exact: true })),
};

const ours = {
  page: (h: Hand, name: string) => h.click(h.page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true })),
  async tool(h: Hand, name: string) {
    await ours.page(h, "Tools");
    if (name) await h.click(h.page.getByRole("region", { name: "List of tools" }).getByRole("link", { name: new RegExp(`^${name}\\b`) }).first());
  },
  call: (h: Hand) => h.click(h.button("Call the tool")),
  field: (h: Hand, name: string) => h.page.getByLabel(new RegExp(`^${name}\\b`)).first(),
};

interface Task { id: string; name: string; inspector: (h: Hand) => Promise<void>; own: (h: Hand) => Promise<void> }

const add = async (h: Hand, at: typeof its | typeof ours) => {
  await at.tool(h, "add");
  await h.fill(at.field(h, "a"), "2");
  await h.fill(at.field(h, "b"), "3");
  await at.call(h);
};

const tasks: Task[] = [
  { id: "tools", name: "see the tools of a server",
    inspector: async (h) => { await its.tool(h, ""); await h.see(h.button("reverse_string")); },
    own: async (h) => { await ours.tool(h, ""); await h.see(h.page.getByRole("region", { name: "List of tools" }).getByText("reverse_string")); } },
  { id: "search", name: "find a tool by a word",
    inspector: async (h) => { await its.tool(h, ""); await h.fill(h.page.getByPlaceholder("Search tools..."), "weather"); await h.see(h.button("get_weather")); await expect(h.button("add")).toHaveCount(0); },
    own: async (h) => { await ours.tool(h, ""); await h.fill(h.page.getByRole("searchbox"), "weather"); const list = h.page.getByRole("region", { name: "List of tools" }); await h.see(list.getByText("get_weather")); await expect(list.getByText("reverse_string")).toHaveCount(0); } },
  { id: "call", name: "call a tool with two arguments, and see the result",
    inspector: async (h) => { await add(h, its); await its.result(h, "5"); },
    own: async (h) => { await add(h, ours); await h.see(h.page.getByText("5", { exact: true })); } },
  { id: "again", name: "the same, and once more with another argument",
    inspector: async (h) => { await add(h, its); await its.result(h, "5"); await h.click(h.button("Close results")); await h.fill(its.field(h, "a"), "40"); await its.call(h); await its.result(h, "43"); },
    own: async (h) => { await add(h, ours); await h.see(h.page.getByText("5", { exact: true })); await h.fill(ours.field(h, "a"), "40"); await ours.call(h); await h.see(h.page.getByText("43", { exact: true })); } },
  { id: "message", name: "the same call, and its message on the wire",
    inspector: async (h) => { await add(h, its); await its.result(h, "5"); await h.click(h.page.getByRole("radiogroup", { name: "Monitoring screen" }).getByText("Protocol")); await h.click(h.button("Expand").first()); await h.see(h.page.getByText("Parameters:")); },
    own: async (h) => { await add(h, ours); await h.see(h.page.getByText("5", { exact: true })); await h.click(h.button("Protocol")); await h.click(h.page.getByRole("list", { name: "Frames" }).getByRole("button", { name: /tools\/call.*request/ }).first()); await h.see(h.page.getByText(/"method": ?"tools\/call"/)); } },
  { id: "error", name: "call a tool that fails, and see why",
    inspector: async (h) => { await its.tool(h, "fail"); await its.call(h); await h.see(h.page.getByText(/error|fail/i).last()); await h.see(h.page.getByRole("heading", { name: "Results" })); },
    own: async (h) => { await ours.tool(h, "fail"); await ours.call(h); await h.see(h.page.getByText("the call as a run")); await h.see(h.page.getByText(/✕/)); } },
  { id: "picture", name: "call a tool that returns a picture",
    inspector: async (h) => { await its.tool(h, "image"); await its.call(h); await h.see(h.page.locator('img[src^="data:image"]')); },
    own: async (h) => { await ours.tool(h, "image"); await ours.call(h); await h.see(h.page.locator('main img[src^="data:image"], main img[src^="blob:"]')); } },
  { id: "question", name: "call a tool that asks, and answer",
    inspector: async (h) => { await its.tool(h, "ask_form"); await its.call(h); const d = h.page.getByRole("dialog"); await h.fill(d.getByRole("textbox", { name: "Your name" }), "Ada"); await h.click(d.getByRole("button", { name: "Submit" })); await h.see(h.page.getByRole("heading", { name: "Results" })); },
    own: async (h) => { await ours.tool(h, "ask_form"); await ours.call(h); await h.fill(h.page.getByLabel(/^Your name/), "Ada"); await h.click(h.button("Send")); await h.see(h.page.getByText(/Ada/).last()); } },
  { id: "resource", name: "read a resource",
    inspector: async (h) => { await its.connect(h); await its.page(h, "Resources"); await h.click(h.page.getByRole("region", { name: /URIs/ }).getByRole("button").first()); await h.see(h.page.getByText("what is in a")); },
    own: async (h) => { await ours.page(h, "Resources"); await h.click(h.page.getByRole("main").getByRole("link", { name: /test:\/\/a|^a\b/ }).first()); await h.see(h.page.getByText("what is in a")); } },
  { id: "prompt", name: "fill in a prompt",
    inspector: async (h) => { await its.connect(h); await its.page(h, "Prompts"); await h.click(h.page.getByRole("button", { name: /greet_user/ })); await h.fill(its.field(h, "name"), "Ada"); await h.click(h.button("Get Prompt")); await h.see(h.page.getByText(/Ada/)); },
    own: async (h) => { await ours.page(h, "Prompts"); await h.click(h.page.getByRole("main").getByRole("link", { name: /greet_user/ })); await h.fill(ours.field(h, "name"), "Ada"); await h.click(h.button("Preview")); await h.see(h.page.getByRole("list", { name: "Messages" }).getByText(/Ada/)); } },
];

let p: Project;
let inspector: ChildProcess | undefined;
let address = "";

test.beforeAll(async () => {
  const home = path.join(process.env.TENON_INSPECTOR ?? "", "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
  test.skip(!process.env.TENON_INSPECTOR || !fs.existsSync(home), "TENON_INSPECTOR names no folder with @modelcontextprotocol/inspector");
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  test.skip(!process.env.TENON_INSPECTOR_NODE && (major < 22 || (major === 22 && minor < 19)), "the Inspector needs Node 22.19: TENON_INSPECTOR_NODE names one");
  p = new Project();
  p.write("tenon.yaml", `version: 1\nservers:\n  demo: {command: ${p.tenon}, args: [testserver]}\n`);
  p.write("mcp.json", JSON.stringify({ mcpServers: { demo: { command: p.tenon, args: ["testserver"] } } }));
  await p.serve();
  const node = process.env.TENON_INSPECTOR_NODE ?? process.execPath;
  inspector = spawn(node, [home, "--web", "--config", path.join(p.dir, "mcp.json")], { env: { PATH: `${path.dirname(node)}:${process.env.PATH}`, HOME: p.dir, MCP_AUTO_OPEN_ENABLED: "false" }, stdio: ["ignore", "pipe", "pipe"], detached: true });
  let said = "";
  for (const out of [inspector.stdout!, inspector.stderr!]) out.on("data", (b: Buffer) => (said += b.toString()));
  await expect.poll(() => (address = /http:\/\/127\.0\.0\.1:\d+\?MCP_INSPECTOR_API_TOKEN=\w+/.exec(said)?.[0] ?? ""), { timeout: 120_000 }).not.toBe("");
});

test.afterAll(async () => {
  if (inspector?.pid) process.kill(-inspector.pid, "SIGTERM");
  await p?.end();
});

async function once(chrome: Browser, at: string, how: (h: Hand) => Promise<void>): Promise<[number, number]> {
  const page = await (await chrome.newContext({ viewport: { width: 1400, height: 900 } })).newPage();
  const began = performance.now();
  await page.goto(at);
  const h = new Hand(page);
  await how(h);
  const took = (performance.now() - began) / 1000;
  await page.context().close();
  return [h.clicks, took];
}

for (const t of tasks)
  test(`WB.tasks: ${t.name}`, async ({ chrome }) => {
    for (let i = 0; i < rounds; i++) {
      const [clicks, seconds] = await once(chrome, address, t.inspector);
      const [own, took] = await once(chrome, `${p.url}/#token=${p.token()}`, t.own);
      tell(`WB.tasks.${t.id}.clicks`, own);
      tell(`WB.tasks.${t.id}.clicks.inspector`, clicks);
      tell(`WB.tasks.${t.id}.seconds`, took);
      tell(`WB.tasks.${t.id}.seconds.inspector`, seconds);
      expect(own, "clicks of ours, fewer than the Inspector's").toBeLessThan(clicks);
    }
  });

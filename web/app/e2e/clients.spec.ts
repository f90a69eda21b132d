// The page of the clients of the gateway.

import AxeBuilder from "@axe-core/playwright";
import { type Page } from "@playwright/test";
import { Project, expect, test, visit } from "./tenon";

let p: Project;

test.beforeAll(async () => {
  p = new Project();
  p.write("tenon.yaml", `version: 1
name: clients
servers:
  demo: {command: ${p.tenon}, args: [testserver]}
gateway:
  endpoints:
    sums: {description: Adds numbers., tools: [add]}
policy:
  defaults: {approval: never}
`);
  await p.serve();
});

test.afterAll(() => p.end());

/** Calls a tool as a client of the older era does. */
async function call(name: string, args: object, endpoint = "") {
  const headers: Record<string, string> = { "Content-Type": "application/json", Accept: "application/json, text/event-stream", Authorization: `Bearer ${p.token()}` };
  const send = (body: object) => fetch(`${p.url}/mcp${endpoint}`, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...body }) });
  const begun = await send({ id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "tester\u202e", version: "1.2" } } });
  await begun.text();
  headers["Mcp-Session-Id"] = begun.headers.get("Mcp-Session-Id") ?? "";
  headers["Mcp-Protocol-Version"] = "2025-11-25";
  await (await send({ method: "notifications/initialized" })).text();
  await (await send({ id: 2, method: "tools/call", params: { name, arguments: args } })).text();
}

const passesAxe = async (page: Page) => {
  for (const width of [1440, 400]) {
    for (const theme of ["light", "dark"]) {
      await page.setViewportSize({ width, height: 900 });
      await page.evaluate((t) => { document.documentElement.dataset.theme = t; }, theme);
      expect((await new AxeBuilder({ page }).analyze()).violations.map((v) => `${v.id}: ${v.nodes[0]?.html}`)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
      if (process.env.TENON_PICTURES) await page.screenshot({ path: `${process.env.TENON_PICTURES}/clients-${width}-${theme}-${await page.getByRole("listitem", { name: /^Client / }).count()}.png` });
    }
  }
};

test("GW-30 the page has the endpoints, and says how a client is connected", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/clients");
  const endpoints = page.getByRole("list", { name: "Endpoints" }).getByRole("listitem");
  await expect(endpoints).toHaveText([/\/mcp.*all tools/s, /\/mcp\/sums.*tools add: Adds numbers\./s]);
  await expect(page.getByText("tenon gateway connect claude")).toBeVisible();
  await passesAxe(page);
  expect(wrong).toEqual([]);
});

test("GW-30 a client is shown with its era, its principal, and what the rules said to its calls", async ({ chrome }) => {
  await call("add", { a: 2, b: 3 });
  await call("no_such_tool", {});
  const { page, wrong } = await visit(chrome, p, "/clients");
  const client = page.getByRole("listitem", { name: /^Client tester/ });
  await expect(client).toContainText("tester\\u{202e}");
  await expect(client).toContainText("legacy 2025-11-25");
  await expect(client).toContainText("principal local, endpoint /mcp");
  await expect(client).toContainText("2 calls");
  await passesAxe(page);
  expect(wrong).toEqual([]);
});

// What a person should know of a handoff: settings of the question that the next model is not sent.

import AxeBuilder from "@axe-core/playwright";
import { Project, expect, test, visit } from "./tenon";

let p: Project;

test.beforeAll(async () => {
  p = new Project();
  p.write("lead.yaml", "steps:\n  - calls: [{name: transfer_to_support, arguments: {}}]\n");
  p.write("support.yaml", "steps:\n  - text: \"Final Answer: Done.\"\n");
  p.write("tenon.yaml", `version: 1
name: handoff
models:
  lead: {provider: script, path: lead.yaml}
  support: {provider: script, path: support.yaml}
agents:
  default: {model: lead, handoffs: [support]}
  support: {model: support, mode: react, description: Helps}
`);
  await p.serve();
  const res = await fetch(`${p.url}/v1/chat/completions`, { method: "POST", headers: { Authorization: `Bearer ${p.token()}`, "Content-Type": "application/json" }, body: JSON.stringify({ model: "default", stop: ["END"], messages: [{ role: "user", content: "Help me" }] }) });
  expect(res.status).toBe(200);
});

test.afterAll(() => p.end());

for (const width of [1440, 400]) {
  for (const theme of ["light", "dark"]) {
    test(`RP-4 a dropped setting is said on the page of the run and in the chat, at ${width} px, ${theme}`, async ({ chrome }) => {
      const { page, wrong } = await visit(chrome, p, "/runs", { width, height: 900 });
      await page.evaluate((t) => { document.documentElement.dataset.theme = t; }, theme);
      await page.getByRole("link", { name: "Help me" }).first().click();
      await expect(page.getByRole("status").filter({ hasText: "handed over to support: stop is dropped" })).toBeVisible();
      expect((await new AxeBuilder({ page }).analyze()).violations.map((v) => `${v.id}: ${v.nodes[0]?.html}`)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/handoff-${width}-${theme}.png` });
      await page.getByRole("button", { name: "Conversation" }).click();
      await expect(page.getByRole("log")).toContainText("stop is dropped after the handoff to agent 'support'");
      expect(wrong).toEqual([]);
    });
  }
}

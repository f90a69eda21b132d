// The prompts of servers, as commands of the conversation.

import { Project, expect, test, visit } from "./tenon";

let p: Project;

test.beforeAll(async () => {
  p = new Project();
  p.write("chat.yaml", "steps:\n  - text: Thank you.\n");
  p.write("tenon.yaml", `version: 1
name: prompts
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

test("RP-11 the form of a prompt offers the values that its server completes", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p);
  await page.getByLabel("Question").fill("/review");
  await page.getByRole("button", { name: "/demo:review" }).click();
  await page.getByLabel("what").fill("poem");
  const tone = page.getByLabel("tone");
  await tone.fill("ca");
  await expect.poll(() => tone.evaluate((i: HTMLInputElement) => [...(i.list?.options ?? [])].map((o) => o.value))).toEqual(["calm", "careful", "cantabile"]);
  expect(wrong).toEqual([]);
});

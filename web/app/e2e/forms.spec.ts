// Forms and pages that servers ask for (elicitation): filled in, declined, cancelled.

import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { Project, expect, test, visit } from "./tenon";

let p: Project;

test.beforeAll(async () => {
  p = new Project();
  p.write("form.yaml", `steps:
  - calls: [{name: ask_form, arguments: {}}]
  - text: Thank you.
`);
  p.write("page.yaml", `steps:
  - calls: [{name: ask_url, arguments: {url: "https://example.com/sign", message: Sign there.}}]
  - text: That was the page.
`);
  p.write("tenon.yaml", `version: 1
name: forms
servers:
  demo: {command: ${p.tenon}, args: [testserver]}
models:
  form: {provider: script, path: form.yaml}
  page: {provider: script, path: page.yaml}
agents:
  form: {model: form}
  page: {model: page}
`);
  await p.serve();
});

test.afterAll(() => p.end());

const card = (page: Page, tool: string) => page.getByRole("article", { name: new RegExp(`^Decision about ${tool}`) });

const ask = async (page: Page, agent: string) => {
  await page.getByLabel("Agent").selectOption(agent);
  await page.getByLabel("Question").fill("Ask me.");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Allow once" }).click();
  await expect(page.getByRole("button", { name: "Decline" })).toBeVisible();
  await expect(page.getByRole("article")).not.toContainText("destructive"); // which was the reason of the approval
};

/** What the tool got from the person; the tools of the test server end with the answer as their result. */
const answered = async (page: Page, end: string, action: string) => {
  await expect(page.getByText(end)).toBeVisible();
  await page.locator('[data-step="1.0"]').getByRole("button").first().click();
  await expect(page.locator('[data-step="1.0"]')).toContainText(`"action":"${action}"`);
};

test("a form that a server asks for is filled in on the page", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p);
  await ask(page, "form");
  const form = card(page, "ask_form");
  await form.getByLabel(/^Your name/).fill("Ann");
  await form.getByLabel(/^age/).fill("young");
  await form.getByLabel(/^colour/).selectOption("red");
  await form.getByRole("button", { name: "Send" }).click();
  await expect(form.getByRole("alert")).toHaveText("a number is needed");
  await form.getByLabel(/^age/).fill("30");
  await form.getByRole("button", { name: "Send" }).click();
  await answered(page, "Thank you.", "accept");
  expect(wrong).toEqual([]);
});

for (const [button, action] of [["Decline", "decline"], ["Cancel", "cancel"]] as const) {
  test(`UX-9 a form is answered with ${button}, which the keyboard reaches`, async ({ chrome }) => {
    const { page, wrong } = await visit(chrome, p);
    await ask(page, "form");
    const form = card(page, "ask_form");
    await form.getByLabel(/^Your name/).focus();
    for (let i = 0; i < 8 && !(await form.getByRole("button", { name: button }).evaluate((b) => b === document.activeElement)); i++) await page.keyboard.press("Tab");
    await expect(form.getByRole("button", { name: button })).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(form).toHaveCount(0);
    await answered(page, "Thank you.", action);
    expect(wrong).toEqual([]);
  });
}

test("UX-9 a page that a server asks for is cancelled", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p);
  await ask(page, "page");
  await expect(card(page, "ask_url").getByRole("button", { name: "Done" })).toBeVisible();
  await card(page, "ask_url").getByRole("button", { name: "Cancel" }).click();
  await answered(page, "That was the page.", "cancel");
  expect(wrong).toEqual([]);
});

test("UX-9 keys of the approvals: a goes to the form, c cancels it, d declines it", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/approvals");
  for (const [key, action] of [["c", "cancel"], ["d", "decline"]] as const) {
    await p.runBeside("run", "-c", "tenon.yaml", "--detach", "--agent", "form", "Ask me.");
    const form = card(page, "ask_form");
    await expect(form.getByRole("button", { name: "Allow once" })).toBeVisible();
    await page.keyboard.press("a");
    await expect(form.getByRole("button", { name: "Decline" })).toBeVisible();
    await page.keyboard.press("a");
    await expect(form.getByLabel(/^Your name/)).toBeFocused();
    await page.keyboard.type("ccdd"); // letters of a name, not keys
    await expect(form.getByLabel(/^Your name/)).toHaveValue("ccdd");
    await page.getByRole("heading", { name: "Approvals" }).click();
    for (const scheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
    }
    await page.keyboard.press(key);
    await expect(form).toHaveCount(0);
    await expect.poll(() => p.run("runs", "events", "-c", "tenon.yaml", "-1", "-o", "json")).toMatch(new RegExp(`action[\\\\"]+:[\\\\"]+${action}`));
  }
  expect(wrong).toEqual([]);
});

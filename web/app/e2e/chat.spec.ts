import AxeBuilder from "@axe-core/playwright";
import { Project, expect, test, visit } from "./tenon";

let p: Project;

test.beforeAll(async () => {
  p = new Project();
  p.write("rich.yaml", `steps:
  - text: |
      The area is $\\\\pi r^2$, and in full:

      $$\\\\int_0^1 x^2\\\\,dx = \\\\frac{1}{3}$$

      It costs $5 to $10.

      \`\`\`go
      func main() { println("hello") }
      \`\`\`
`.replaceAll("\\\\\\\\", "\\\\").replaceAll("\\\\", "\\"));
  p.write("stop.yaml", `steps:
  - {text: "${"One word follows another here. ".repeat(200)}", chunk: 30, chunk_delay: 100ms}
`);
  p.write("many.yaml", `steps:
  - calls: [${[1, 2, 3, 4, 5].map((n) => `{name: echo, arguments: {text: "call ${n}"}}`).join(", ")}]
  - calls: [{name: multi, arguments: {}}]
  - text: Five calls and a picture.
`);
  p.write("fails.yaml", `steps:
  - error: {code: internal, message: the model fell over}
`);
  p.write("tenon.yaml", `version: 1
name: chat
servers:
  demo: {command: ${p.tenon}, args: [testserver]}
models:
  rich: {provider: script, path: rich.yaml}
  stop: {provider: script, path: stop.yaml}
  many: {provider: script, path: many.yaml}
  fails: {provider: script, path: fails.yaml}
agents:
  default: {model: rich}
  stop: {model: stop}
  many: {model: many}
  fails: {model: fails}
policy:
  defaults: {approval: never}
`);
  await p.serve();
});

test.afterAll(() => p.end());

const ask = async (page: import("@playwright/test").Page, question: string, agent = "") => {
  if (agent) await page.getByLabel("Agent").selectOption(agent);
  await page.getByLabel("Question").fill(question);
  await page.keyboard.press("Enter");
};

test("UX-9 an answer: formulas as MathML, code in colours, copied with a button", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await ask(page, "How large?");
  await expect(page.locator("math")).toHaveCount(2);
  await expect(page.locator("math msup").first()).toBeVisible();
  await expect(page.locator('math[display="block"] mfrac')).toBeVisible();
  await expect(page.getByText("It costs $5 to $10.")).toBeVisible();
  await expect(page.locator("pre .hljs-keyword")).toHaveText("func");
  await page.getByRole("button", { name: "Copy the code" }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('func main() { println("hello") }');
  await page.getByRole("button", { name: "Copy the answer" }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain("```go");
  expect(wrong).toEqual([]);
});

test("UX-9 a question is shown at once, and its text is back if it cannot be sent", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p);
  let answer = () => {};
  await page.route("**/api/v1/runs", async (r) => {
    if (r.request().method() !== "POST") return r.continue();
    await new Promise<void>((done) => (answer = done));
    await r.abort();
  });
  await ask(page, "Is anybody there?");
  await expect(page.getByLabel("The question that is being sent")).toContainText("Is anybody there?");
  await expect(page.getByLabel("Question", { exact: true })).toHaveValue("");
  answer();
  await expect(page.getByRole("alert")).toBeVisible();
  await expect(page.getByLabel("Question", { exact: true })).toHaveValue("Is anybody there?");
  await page.unroute("**/api/v1/runs");
  await page.keyboard.press("Enter");
  await expect(page.getByText("It costs $5 to $10.")).toBeVisible();
  expect(wrong).toEqual([]);
});

test("UX-9 Stop keeps what was said, and the view follows the end only until the person scrolls", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/", { width: 1200, height: 400 });
  await ask(page, "Tell me a lot.", "stop");
  const log = page.getByRole("log", { name: "Conversation" });
  await expect(log).toContainText("One word follows");
  await expect.poll(() => log.evaluate((b) => b.scrollTop)).toBeGreaterThan(0);
  await log.evaluate((b) => b.scrollTo(0, 0));
  const before = await log.evaluate((b) => b.scrollHeight);
  await expect.poll(() => log.evaluate((b) => b.scrollHeight)).toBeGreaterThan(before);
  expect(await log.evaluate((b) => b.scrollTop)).toBe(0);
  await page.getByRole("button", { name: "To the end of the conversation" }).click();
  await expect(page.getByRole("button", { name: "To the end of the conversation" })).toHaveCount(0);
  await page.getByLabel("Tell the agent something while it works").fill("In two words");
  await page.keyboard.press("Enter");
  await expect(log).toContainText("In two words");
  await page.getByRole("button", { name: "Stop" }).click();
  await expect(page.getByLabel("Question", { exact: true })).toHaveValue("In two words");
  await expect(page.getByLabel("Question", { exact: true })).toBeFocused();
  await expect(log).toContainText("One word follows");
  await expect(log.getByText(/stopped in the workbench/)).toHaveCount(1);
  await expect(page.getByText("It was stopped here.")).toHaveCount(0); // said once, below the answer
  const text = await log.innerText();
  expect(text.indexOf("stopped in the workbench")).toBeGreaterThan(text.lastIndexOf("One word follows"));
  await page.reload(); // UX-8: the journal has it
  await expect(log.getByText(/stopped in the workbench/)).toHaveCount(1);
  await expect(log).toContainText("One word follows");
  await page.getByRole("link", { name: "What happened" }).click();
  await expect(page.getByRole("heading", { name: "Answer until it was stopped" })).toBeVisible();
  expect(wrong).toEqual([]);
});

test("UX-9 calls of one tool in a row are a group, and a picture is seen without unfolding", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p);
  await ask(page, "Call often.", "many");
  await expect(page.getByText("Five calls and a picture.")).toBeVisible();
  const group = page.getByRole("group", { name: "5 calls of echo" });
  await expect(group).toBeVisible();
  await expect(page.locator('[data-step="1.0"]')).toHaveCount(0);
  await expect(page.getByRole("img", { name: "a picture from the tool" })).toBeVisible();
  await group.getByRole("button").first().click();
  await expect(group.locator("[data-step]")).toHaveCount(5);
  expect(wrong).toEqual([]);
});

test("UX-9 after a failure the run is tried again, or the question is asked once more; the error is said once", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p);
  await ask(page, "Fall over.", "fails");
  await expect(page.getByText(/the model fell over/)).toHaveCount(1);
  p.write("fails.yaml", "steps:\n  - text: I stand again.\n");
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.getByText(/the model fell over/)).not.toHaveCount(0);
  const session = page.url();
  await page.getByRole("button", { name: /Ask again|Answer again/ }).click();
  await expect(page).not.toHaveURL(session);
  await expect(page.getByRole("log", { name: "Conversation" }).getByText("Fall over.", { exact: true })).toBeVisible();
  expect(wrong).toEqual([]);
});

test("UX-9 files are dropped on the page", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p);
  const data = await page.evaluateHandle(() => {
    const d = new DataTransfer();
    d.items.add(new File(["dropped"], "dropped.txt", { type: "text/plain" }));
    return d;
  });
  await page.dispatchEvent("main", "dragover", { dataTransfer: data });
  await expect(page.getByText("Drop files to attach them")).toBeVisible();
  await page.dispatchEvent("main", "drop", { dataTransfer: data });
  await expect(page.getByText("Drop files to attach them")).toHaveCount(0);
  await expect(page.getByRole("list", { name: "Attached" })).toContainText("dropped.txt");
  await ask(page, "What is in it?");
  await expect(page.getByText("It costs $5 to $10.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Answer again" })).toHaveCount(0); // it would go without the file
  expect(wrong).toEqual([]);
});

test("UX-9 what went with a question stays in the conversation: names, sizes, pictures", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p);
  const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
  await page.getByLabel("Files to attach").setInputFiles([{ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("eleven long") }, { name: "dot.png", mimeType: "image/png", buffer: png }]);
  await ask(page, "What is this?");
  for (const again of [false, true]) {
    if (again) await page.reload();
    const sent = page.getByRole("list", { name: "Attached to the question" });
    await expect(sent).toContainText("notes.txt, 11 B");
    await expect(sent.getByRole("img")).toBeVisible();
    expect(await sent.getByRole("img").evaluate((i: HTMLImageElement) => i.naturalWidth)).toBe(1);
  }
  expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/attached.png` });
  expect(wrong).toEqual([]);
});

test("UX-13 the list of runs on narrow screens: the state under the question, times in one line", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/", { width: 400, height: 800 });
  await ask(page, "Fall over.", "fails");
  await expect(page.getByText(/the model fell over/)).not.toHaveCount(0);
  await page.goto(`${p.url}/runs`);
  const row = page.getByRole("row").nth(1);
  await expect(row.getByText(/completed|cancelled|failed/).first()).toBeVisible();
  const list = page.getByRole("region", { name: "Runs" });
  expect(await list.evaluate((b) => b.scrollWidth - b.clientWidth)).toBe(0);
  for (const twice of ["failed error", "cancelled cancelled"]) expect((await list.innerText()).replace(/\s+/g, " ")).not.toContain(twice);
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/runs-400.png` });
  await page.setViewportSize({ width: 900, height: 800 });
  expect(await list.evaluate((b) => b.scrollWidth - b.clientWidth)).toBe(0);
  const heights = await page.getByRole("row").evaluateAll((all) => all.slice(1).map((r) => (r.children[3] as HTMLElement).getBoundingClientRect().height));
  expect(Math.max(...heights)).toBeLessThan(45); // one line
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/runs-900.png` });
  await page.getByRole("group", { name: "State" }).getByRole("button", { name: "interrupted" }).click();
  await expect(page.getByText("There is no such run.")).toBeVisible();
  expect(wrong).toEqual([]);
});

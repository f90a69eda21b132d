// The way to a first answer without writing YAML: a provider's key, a model from a form, and changes in forms.

import AxeBuilder from "@axe-core/playwright";
import { Project, expect, test, visit } from "./tenon";

let p: Project;

test.beforeAll(async () => {
  p = new Project();
  p.write("chat.yaml", "steps:\n  - text: Good morning.\n");
  p.write("tenon.yaml", "# ours\nversion: 1\n");
  await p.serve();
});

test.afterAll(async () => {
  await p.end();
});

test("UX-10 a key is asked for where there is no model, kept outside of the project, and removed", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p);
  const first = page.getByRole("region", { name: "A first model" });
  await expect(first).toContainText("Connect a model");
  await expect(first.getByText("Looking for Ollama")).toHaveCount(0);
  await expect(first).toContainText("tenon servers add demo -- tenon testserver --stdio"); // the script would find no tools
  await expect(first.getByRole("link", { name: "Try it" })).toHaveCount(0);
  expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
  await first.getByLabel("Provider").selectOption("OpenAI");
  await first.getByLabel("API key").fill("sk-wrong key");
  await first.getByRole("button", { name: "Save the key" }).click();
  await expect(first.getByRole("alert")).toContainText("this is no key of openai");
  await first.getByLabel("API key").fill("sk-e2e-1");
  await first.getByRole("button", { name: "Save the key" }).click();
  await expect(first).toHaveCount(0); // there is a model now
  expect(p.read("tenon.yaml")).toBe("# ours\nversion: 1\n");
  expect(p.run("models", "list", "--no-probe")).toContain("openai/gpt-5");

  await page.goto(`${p.url}/settings`);
  const keys = page.locator("section", { hasText: "Provider keys" });
  await expect(keys).toContainText("in place of OPENAI_API_KEY");
  expect(await page.content()).not.toContain("sk-e2e-1");
  await keys.getByRole("button", { name: "Remove the key of openai" }).click();
  await expect(keys).toContainText("No key is saved");
  expect(p.run("models", "list", "--no-probe")).not.toContain("openai");
  expect(wrong).toEqual([]);
});

test("UX-10 a model, an agent and a budget are made in forms, and answer", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/settings");
  const section = (title: string) => page.locator("section", { has: page.getByRole("heading", { name: title, exact: true }) });
  // What may send data somewhere, or loosens a limit, waits for the owner on the command line.
  const agree = async () => {
    const open = page.getByRole("dialog");
    const command = open.getByLabel("Command");
    await expect.poll(async () => (await command.isVisible()) || (await open.count()) === 0).toBe(true);
    if (await command.isVisible()) {
      const id = /prp_\w+/.exec((await command.textContent()) ?? "")![0];
      const shown = JSON.parse(await p.runBeside("-c", "tenon.yaml", "proposals", "show", id, "-o", "json")) as { digest: string };
      await p.runBeside("-c", "tenon.yaml", "proposals", "accept", id, "--digest", shown.digest);
    }
    await expect(open).toHaveCount(0);
  };
  const write = async (name: string, fill: () => Promise<void>) => {
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").first().fill(name);
    await fill();
    await dialog.getByRole("button", { name: "Show what changes" }).click();
    await expect(dialog).toContainText(`+  ${name}:`);
    await dialog.getByRole("button", { name: "Propose it" }).click();
    await agree();
  };
  await section("Models").getByRole("button", { name: "Add a model" }).click();
  const dialog = page.getByRole("dialog");
  await write("main", async () => {
    await dialog.getByLabel(/^provider/).selectOption("script");
    await dialog.getByText("More settings").click();
    await dialog.getByLabel(/^path/).fill("chat.yaml");
    expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
  });
  await section("Agents").getByRole("button", { name: "Add an agent" }).click();
  await write("helper", async () => {
    const model = dialog.getByLabel(/^model/).first();
    const offers = `datalist[id="${await model.getAttribute("list")}"] option`;
    expect(await dialog.locator(offers).evaluateAll((o) => o.map((x) => (x as HTMLOptionElement).value))).toContain("main");
    await model.fill("main");
    await dialog.getByLabel(/^instructions/).fill("Be nice to people.\nAnswer in one sentence.");
    await expect(dialog.getByText(/^(object|array)$/)).toHaveCount(0);
    await dialog.getByLabel(/^max_turns/).fill("7");
    await dialog.getByText("More settings").click();
    const json = dialog.getByPlaceholder("JSON").first();
    await json.fill("no JSON");
    await expect(dialog.getByText("this is not JSON")).toBeVisible();
    await expect(dialog.getByRole("button", { name: "Show what changes" })).toBeDisabled();
    await json.fill("");
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/agent.png` });
  });
  expect(p.read("tenon.yaml")).toMatch(/Be nice to people\.[\s\S]*Answer in one sentence\./);
  await expect(section("Agents").getByRole("list")).toContainText("model: main");
  expect(p.read("tenon.yaml")).toContain("# ours\nversion: 1\n");
  expect(p.read("tenon.yaml")).toContain("max_turns: 7");

  // One value changes; a comment that somebody wrote stays.
  p.write("tenon.yaml", p.read("tenon.yaml").replace("  helper:", "  # the helper\n  helper:"));
  await page.reload();
  await section("Agents").getByRole("button", { name: "Edit agent helper" }).click();
  await dialog.getByLabel(/^max_turns/).fill("8");
  await dialog.getByRole("button", { name: "Show what changes" }).click();
  await dialog.getByRole("button", { name: "Propose it" }).click();
  await agree();
  expect(p.read("tenon.yaml")).toContain("  # the helper\n  helper:");
  expect(p.read("tenon.yaml")).toContain("max_turns: 8");

  // Limits and conditional rules; a rule is found by its number, which the file's digest holds.
  await section("Limits of a run").getByRole("button", { name: "Set limits" }).click();
  await dialog.getByLabel(/^max_turns/).fill("6");
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/limits.png` });
  await dialog.getByRole("button", { name: "Show what changes" }).click();
  await dialog.getByRole("button", { name: "Propose it" }).click();
  await agree();
  await expect(section("Limits of a run").getByRole("list")).toContainText("max_turns: 6");
  // A slow server: the next dialog must not begin with a list of before the last change.
  await page.route("**/api/v1/config/entries", async (r) => {
    await new Promise((done) => setTimeout(done, 1500));
    await r.continue();
  });
  for (const [verdict, when] of [["deny", 'tool.name == "rm"'], ["ask", 'tool.name == "mv"']]) {
    await section("Rules with conditions").getByRole("button", { name: "Add a conditional rule" }).click();
    await dialog.getByLabel(/^verdict/).selectOption(verdict!);
    await dialog.getByLabel(/^when/).fill(when!);
    expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
    await dialog.getByRole("button", { name: "Show what changes" }).click();
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/rule-${verdict}.png` });
    await dialog.getByRole("button", { name: "Propose it" }).click();
    await agree();
  }
  await page.unroute("**/api/v1/config/entries");
  const rules = section("Rules with conditions").getByRole("list");
  await expect(rules.getByRole("listitem")).toHaveCount(2);
  await section("Rules with conditions").getByRole("button", { name: "Remove conditional rule 1" }).click();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await agree();
  await expect(rules.getByRole("listitem")).toHaveCount(1);
  await expect(rules).toContainText('tool.name == "mv"');
  expect(p.read("tenon.yaml")).not.toContain('"rm"');
  if (process.env.SHOTS) {
    for (const [width, theme] of [[1440, "light"], [400, "dark"]] as const) {
      await page.setViewportSize({ width, height: 900 });
      await page.evaluate((t) => { document.documentElement.dataset.theme = t; }, theme);
      await section("Limits of a run").scrollIntoViewIfNeeded();
      await page.screenshot({ path: `${process.env.SHOTS}/settings-${width}-${theme}.png` });
    }
  }

  await page.goto(p.url);
  await page.getByLabel("Question").fill("Hello");
  await page.getByRole("button", { name: "Send" }).click();
  await expect(page.getByRole("log")).toContainText("Good morning.");

  await page.goto(`${p.url}/settings`);
  await section("Agents").getByRole("button", { name: "Remove agent helper" }).click();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await agree();
  expect(p.read("tenon.yaml")).not.toContain("max_turns: 8");
  expect(wrong).toEqual([]);
});

test("UX-10 the first server, from a folder without a file: it is there without a restart, and the chat stays", async ({ chrome }) => {
  const bare = new Project();
  bare.bare = true;
  await bare.serve();
  try {
    const { page, wrong } = await visit(chrome, bare, "/?model=demo");
    await page.getByLabel("Question").fill("Hello");
    await page.keyboard.press("Enter");
    await expect(page.getByRole("link", { name: "What happened" })).toBeVisible();
    const chat = page.url();
    await page.getByRole("link", { name: "Servers", exact: true }).click();
    await page.getByRole("button", { name: "Add a server" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("bad name!");
    await dialog.getByLabel("Command line").fill(`${bare.tenon} testserver --stdio`);
    await expect(dialog.getByRole("alert")).toContainText("letters, digits");
    await expect(dialog.getByLabel("Name")).toHaveAttribute("aria-invalid", "true");
    await expect(dialog.getByRole("button", { name: "Show what changes" })).toBeDisabled();
    await dialog.getByLabel("Name").fill("first");
    await dialog.getByRole("button", { name: "Show what changes" }).click();
    await dialog.getByRole("button", { name: "Propose it" }).click();
    const id = /prp_\w+/.exec((await dialog.getByLabel("Command", { exact: true }).textContent()) ?? "")![0];
    const shown = JSON.parse(await bare.runBeside("proposals", "show", id, "-o", "json")) as { digest: string };
    expect(await bare.runBeside("proposals", "accept", id, "--digest", shown.digest)).toContain("it holds now");
    await expect(dialog).toHaveCount(0);
    await expect(page.getByRole("main").getByText("first", { exact: true }).first()).toBeVisible();
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/first-server.png` });
    await page.goto(`${bare.url}/settings`);
    await expect(page.getByText("Changes that wait for you")).toHaveCount(0);
    await bare.stop();
    await bare.serve();
    await page.goto(chat); // the same token, the same store
    await expect(page.getByRole("log")).toContainText("Hello");
    await page.goto(`${bare.url}/servers`);
    await expect(page.getByRole("main").getByText("first", { exact: true }).first()).toBeVisible();
    expect(wrong).toEqual([]);
  } finally {
    await bare.end();
  }
});

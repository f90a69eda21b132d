// The sources of an answer, and the pictures that a model made, in the chat and on the page of the run.

import AxeBuilder from "@axe-core/playwright";
import { Project, expect, test, visit } from "./tenon";

let p: Project;

const green = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkWPz/PwAEWgKgi4UIJQAAAABJRU5ErkJggg==";

test.beforeAll(async () => {
  p = new Project();
  p.write("chat.yaml", `steps:
  - text: "The **Thames** is 346 km long. Its name is old."
    citations:
      - {title: "River Thames", url: "https://rivers.example/thames", quote: "The Thames is 346 km long.", start: 0, end: 30}
      - {title: "Names of <b>rivers</b>", file: "names.pdf", start: 31, end: 47}
      - {title: "No web", url: "javascript:alert(1)"}
    media: [{mime_type: image/png, data: "${green}"}]
`);
  p.write("tenon.yaml", "version: 1\nname: cited\nmodels:\n  main: {provider: script, path: chat.yaml}\nagents:\n  default: {model: main}\n");
  await p.serve();
  p.run("run", "-c", "tenon.yaml", "How long is the Thames?", "--remote", p.url, "--token-file", ".tenon/serve.token");
});

test.afterAll(() => p.end());

test("MD-4 an answer names its sources in the text and below it, and shows the picture that the model made", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/runs");
  await page.getByRole("link", { name: "How long is the Thames?" }).click();
  const shown = async (in_: ReturnType<typeof page.locator>) => {
    const mark = in_.getByRole("link", { name: "Source 1: River Thames" });
    await expect(mark).toHaveText("[1]");
    await expect(mark).toHaveAttribute("href", "https://rivers.example/thames");
    await expect(mark).toHaveAttribute("rel", /noopener noreferrer/);
    const list = in_.getByRole("region", { name: "Sources" });
    await expect(list.getByRole("listitem")).toHaveCount(3);
    await expect(list.getByRole("link")).toHaveCount(1); // a file and an address that is not of the web are none
    await expect(list).toContainText("Names of <b>rivers</b>");
    await list.getByText("The passage").click();
    await expect(list).toContainText("The Thames is 346 km long.");
  };
  const answer = page.locator("section", { has: page.getByRole("heading", { name: "Answer" }) }).last();
  await shown(answer);
  const made = page.getByRole("list", { name: "Artifacts" });
  await expect(made.getByRole("img", { name: "a picture that the model made" })).toHaveCount(1);
  const [file] = await Promise.all([page.waitForEvent("download"), made.getByRole("button", { name: "Download" }).click()]);
  expect(file.suggestedFilename()).toBe("1-1.png");
  await page.getByRole("button", { name: "Conversation" }).click();
  const log = page.getByRole("log");
  await shown(log);
  await expect(log.getByRole("img", { name: "a picture that the model made" })).toHaveCount(1);
  await log.getByRole("button", { name: "Branch from here" }).first().click();
  const shared = page.getByRole("region", { name: "From the session that this one left" });
  await expect(shared.getByRole("link", { name: "Source 1: River Thames" })).toHaveText("[1]");
  await expect(shared.getByRole("img", { name: "a picture that the model made" })).toHaveCount(1);
  expect(wrong).toEqual([]);
});

for (const width of [1440, 400]) {
  for (const theme of ["light", "dark"]) {
    test(`MD-4 sources pass axe at ${width} px, ${theme}`, async ({ chrome }) => {
      const { page } = await visit(chrome, p, "/runs", { width, height: 900 });
      await page.getByRole("link", { name: "How long is the Thames?" }).first().click();
      await page.evaluate((t) => { document.documentElement.dataset.theme = t; }, theme);
      await expect(page.getByRole("region", { name: "Sources" })).toBeVisible();
      await page.getByText("The passage").click();
      expect((await new AxeBuilder({ page }).analyze()).violations.map((v) => `${v.id}: ${v.nodes[0]?.html}`)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/cited-run-${width}-${theme}.png` });
      await page.getByRole("button", { name: "Conversation" }).click();
      await expect(page.getByRole("region", { name: "Sources" })).toBeVisible();
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/cited-chat-${width}-${theme}.png` });
    });
  }
}

// The picture of the workbench in README.md, from a real run: `make pictures`.

import path from "node:path";
import { Project, expect, test, visit } from "../e2e/tenon";

const picture = path.resolve(import.meta.dirname, "../../../docs/pictures/workbench.png");

test("a run with an approval", async ({ chrome }) => {
  const p = new Project();
  try {
    p.write(
      "orders.yaml",
      `steps:
  - text: I look up the weather and book the delivery.
    calls:
      - {name: get_weather, arguments: {location: London}}
      - {name: get_bank_balance, arguments: {account_id: A-1042}}
      - {name: counter, arguments: {}}
  - text: It is 15°C and cloudy in London. The delivery is booked.
`,
    );
    p.write(
      "tenon.yaml",
      `version: 1
name: deliveries
servers:
  demo: {command: ${p.tenon}, args: [testserver]}
models:
  scripted: {provider: script, path: orders.yaml}
agents:
  default: {model: scripted}
`,
    );
    await p.serve();
    const { page, wrong } = await visit(chrome, p, "/", { width: 1100, height: 720 });
    await page.getByLabel("Question").fill("Can we deliver in London today?");
    await page.keyboard.press("Enter");
    await expect(page.getByRole("article", { name: "Decision about counter" })).toBeVisible();
    await expect(page.locator('[data-step="1.0"]')).toBeVisible();
    await page.locator('[data-step="1.0"] button').first().click();
    await page.screenshot({ path: picture, animations: "disabled" });
    expect(wrong).toEqual([]);
  } finally {
    await p.end();
  }
});

// WB.paint: what a browser shows before it has read a script.

import AxeBuilder from "@axe-core/playwright";
import { Project, expect, test } from "./tenon";

let p: Project;

test.beforeAll(async () => {
  p = new Project();
  p.write("tenon.yaml", `version: 1\nname: first\nservers:\n  demo: {command: ${p.tenon}, args: [testserver]}\n`);
  await p.serve();
});

test.afterAll(() => p.end());

for (const [width, scheme, chosen] of [[1200, "light", ""], [400, "dark", ""], [1200, "dark", "light"]] as const)
  test(`UX-13 the frame is painted before the scripts, at ${width} px, ${scheme}${chosen && `, ${chosen} chosen`}`, async ({ chrome }) => {
    const context = await chrome.newContext({ viewport: { width, height: 800 }, colorScheme: scheme });
    const page = await context.newPage();
    if (chosen) await page.addInitScript((t) => localStorage.setItem("tenon.theme", t), chosen);
    let go = () => {};
    const held = new Promise<void>((resolve) => (go = resolve));
    await page.route(/\/assets\/(?!theme-).*\.js$/, async (route) => {
      await held;
      await route.continue();
    });
    await page.goto(`${p.url}/tools#token=${p.token()}`, { waitUntil: "commit" });
    const links = page.locator("nav a:visible");
    await expect(links.filter({ hasText: "Settings" })).toBeVisible();
    const places = () => links.evaluateAll((all) => all.slice(-13).map((a) => ((r) => [r.x, r.y, r.width, r.height].map(Math.round))(a.getBoundingClientRect())));
    const before = await places();
    expect(before).toHaveLength(13);
    expect(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint").length)).toBe(1);
    await expect(page.locator("html")).toHaveAttribute("data-theme", chosen || scheme);
    await expect(page.locator("#root > [inert]")).toHaveCount(1); // a click would lose the token of the address
    go();
    await expect(page.getByRole("region", { name: "List of tools" })).toBeVisible();
    await expect(page.locator("#root > [inert]")).toHaveCount(0);
    if (width > 800) expect(await places()).toEqual(before); // nothing has moved under the pointer; a narrow line of pages scrolls
    expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
  });

test("UX-13 without a token, the frame is not shown before the sign-in page", async ({ chrome }) => {
  const page = await (await chrome.newContext()).newPage();
  let go = () => {};
  const held = new Promise<void>((resolve) => (go = resolve));
  await page.route(/\/assets\/(?!theme-).*\.js$/, async (route) => {
    await held;
    await route.continue();
  });
  await page.goto(p.url, { waitUntil: "commit" });
  await expect(page.locator("nav")).toHaveCount(1);
  await expect(page.locator("nav")).toBeHidden();
  go();
  await expect(page.getByRole("button", { name: /Sign in|Go on|Open/ })).toBeVisible();
  await expect(page.locator("nav")).toHaveCount(0);
});

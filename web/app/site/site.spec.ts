// The documentation site in a browser: what its pages fetch, how they look at 400 and 1440 px in both themes, what axe
// finds, and the search. internal/docsite has checked links and completeness before.

import AxeBuilder from "@axe-core/playwright";
import { type Browser, type BrowserContext, type Page, chromium, expect, test as base } from "@playwright/test";
import fs from "node:fs";
import http from "node:http";
import type net from "node:net";
import path from "node:path";
import { pathToFileURL } from "node:url";

const folder = path.resolve(process.env.TENON_SITE ?? "../../testresults/site");
const version = "dev";
const types: Record<string, string> = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png", ".md": "text/markdown", ".txt": "text/plain" };

interface Site {
  chrome: Browser;
  url: string; // of the version, with a slash at the end
}

const test = base.extend<object, { site: Site }>({
  site: [async ({}, use) => {
    const found = [process.env.TENON_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => p && fs.existsSync(p));
    if (!found) throw new Error("no Chromium: install the distribution's, or name one in TENON_CHROMIUM");
    const server = http.createServer((request, answer) => {
      const file = path.join(folder, decodeURIComponent(new URL(request.url ?? "/", "http://site").pathname));
      if (!file.startsWith(folder) || !fs.existsSync(file) || fs.statSync(file).isDirectory()) {
        answer.writeHead(404).end();
        return;
      }
      answer.writeHead(200, { "content-type": `${types[path.extname(file)] ?? "application/octet-stream"}; charset=utf-8` }).end(fs.readFileSync(file));
    });
    await new Promise<void>((done) => { server.listen(0, "127.0.0.1", done); });
    const chrome = await chromium.launch({ executablePath: found, args: ["--no-sandbox"] });
    await use({ chrome, url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/${version}/` });
    await chrome.close();
    server.closeAllConnections();
    await new Promise((done) => { server.close(done); });
  }, { scope: "worker" }],
});

/** A page that fails the test if it asks another host, if something is missing, or if a script fails. */
async function open(context: BrowserContext, url: string): Promise<{ page: Page; wrong: string[] }> {
  const page = await context.newPage(), wrong: string[] = [];
  page.on("request", (r) => { if (!r.url().startsWith(new URL(url).origin) && !r.url().startsWith("data:")) wrong.push(`asks ${r.url()}`); });
  page.on("response", (r) => { if (r.status() >= 400) wrong.push(`${r.status()} ${r.url()}`); });
  page.on("pageerror", (e) => wrong.push(e.message));
  page.on("console", (m) => { if (m.type() === "error") wrong.push(m.text()); });
  return { page, wrong };
}

const looks = ["index.html", "guide/getting-started.html", "decisions/index.html", "project/comparison.html"];

for (const width of [1440, 400]) {
  for (const colorScheme of ["light", "dark"] as const) {
    test(`REL-site pages pass axe at ${width} px, ${colorScheme}`, async ({ site }) => {
      const context = await site.chrome.newContext({ viewport: { width, height: 900 }, colorScheme });
      const { page, wrong } = await open(context, site.url);
      for (const name of looks) {
        await page.goto(site.url + name);
        await expect(page.locator(".search")).toBeVisible();
        if (process.env.TENON_SHOTS) await page.screenshot({ path: path.join(process.env.TENON_SHOTS, `${width}-${colorScheme}-${name.replaceAll("/", "-")}.png`) });
        const { violations } = await new AxeBuilder({ page }).analyze();
        expect(violations.map((v) => `${name}: ${v.id}: ${v.nodes[0]?.html ?? ""}`)).toEqual([]);
      }
      expect(wrong).toEqual([]);
      await context.close();
    });
  }
}

test("REL-site no page is wider than 400 px or asks another host", async ({ site }) => {
  const context = await site.chrome.newContext({ viewport: { width: 400, height: 800 } });
  const { page, wrong } = await open(context, site.url);
  const list = /^window\.tenonVersions = (.*);$/s.exec(fs.readFileSync(path.join(folder, "versions.js"), "utf8").trim());
  const { pages } = (JSON.parse(list?.[1] ?? "[]") as { name: string; pages: string[] }[]).find((v) => v.name === version) ?? { pages: [] };
  expect(pages.length).toBeGreaterThan(150);
  const wide: string[] = [];
  // Pages of commands have the same parts, so every tenth is looked at.
  for (const name of pages.filter((p, i) => !p.startsWith("reference/cli/") || i % 10 === 0)) {
    await page.goto(site.url + name, { waitUntil: "domcontentloaded" });
    const found = await page.evaluate(() => {
      const over = [...document.querySelectorAll("article *")].filter((e) => !e.closest("pre") && e.getBoundingClientRect().right > innerWidth + 1);
      return document.documentElement.scrollWidth > innerWidth ? "the page" : over[0]?.outerHTML.slice(0, 120);
    });
    if (found) wide.push(`${name}: ${found}`);
  }
  expect(wide).toEqual([]);
  expect(wrong).toEqual([]);
  await context.close();
});

test("REL-site the search finds pages by keys, from files too", async ({ site }) => {
  const context = await site.chrome.newContext();
  for (const url of [site.url, `${pathToFileURL(path.join(folder, version)).href}/`]) {
    const page = await context.newPage();
    await page.goto(`${url}guide/servers.html`);
    await page.keyboard.press("/");
    for (const [query, first] of [
      ["approvals", "Rules and approvals"], ["tenon tools list", "tenon tools list"], ["exit codes", "Exit codes"], ["sse_read_timeout", "sse_read_timeout"], ["cassettes", "Cassettes"],
    ] as const) {
      await page.getByRole("combobox", { name: "Search" }).fill(query);
      await expect(page.getByRole("option").first()).toContainText(first, { ignoreCase: true });
    }
    const { violations } = await new AxeBuilder({ page }).analyze();
    expect(violations.map((v) => `${v.id}: ${v.nodes[0]?.html ?? ""}`)).toEqual([]);
    if (process.env.TENON_SHOTS) await page.screenshot({ path: path.join(process.env.TENON_SHOTS, "search.png") });
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await expect(page).toHaveURL(/\/reference\/cassettes\.html/);
    await page.getByRole("combobox", { name: "Search" }).fill("zzzqqq");
    await expect(page.getByRole("status")).toContainText("Nothing contains");
    await page.close();
  }
  await context.close();
});

test("REL-site recordings of terminals play when they are opened, without scripts", async ({ site }) => {
  const context = await site.chrome.newContext({ viewport: { width: 400, height: 800 }, javaScriptEnabled: false });
  const { page, wrong } = await open(context, site.url);
  await page.goto(`${site.url}guide/getting-started.html`);
  const recordings = page.locator("details.recording");
  await expect(recordings).toHaveCount(3);
  const recording = recordings.first(), picture = recording.locator("img");
  await expect(picture).toBeHidden();
  await recording.locator("summary").click();
  await expect(picture).toBeVisible();
  await expect.poll(async () => (await picture.boundingBox())?.height ?? 0).toBeGreaterThan(100);
  const first = await picture.screenshot();
  await expect.poll(async () => (await picture.screenshot()).equals(first)).toBe(false);
  const href = await recording.locator("a").getAttribute("href");
  expect((await context.request.get(new URL(href ?? "", page.url()).href)).status()).toBe(200);
  expect(wrong).toEqual([]);
  const still = await site.chrome.newContext({ reducedMotion: "reduce" });
  const calm = await still.newPage();
  await calm.goto(`${site.url}docs/pictures/recordings/first.svg`);
  const visibility = (frame: string) => calm.evaluate((f) => getComputedStyle(document.querySelector(f)!).visibility, frame);
  expect(await visibility("g.end")).toBe("visible"); // the last frame
  expect(await visibility("g.f:not(.end)")).toBe("hidden");
  await still.close();
  await context.close();
});

test("REL-site theme, menu and versions work; pages can be read without scripts", async ({ site }) => {
  const context = await site.chrome.newContext({ viewport: { width: 400, height: 800 }, colorScheme: "light" });
  const page = await context.newPage();
  await page.goto(`${site.url}guide/servers.html`);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.getByRole("button", { name: "Dark" }).click();
  expect(await ground()).not.toBe(light);
  await page.reload();
  await expect(page.getByRole("button", { name: "Light" })).toBeVisible();
  expect(await ground()).not.toBe(light);
  await expect(page.getByRole("link", { name: "Workflows" })).toBeHidden();
  await page.getByRole("button", { name: "Menu" }).click();
  await expect(page.getByRole("combobox", { name: "Version" })).toHaveValue(`${site.url}guide/servers.html`);
  if (process.env.TENON_SHOTS) await page.screenshot({ path: path.join(process.env.TENON_SHOTS, "menu.png") });
  await page.getByRole("link", { name: "Workflows", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Workflows");
  const plain = await site.chrome.newContext({ javaScriptEnabled: false });
  const silent = await plain.newPage();
  await silent.goto(`${site.url}guide/servers.html`);
  await silent.getByRole("link", { name: "Workflows", exact: true }).click();
  await expect(silent.getByRole("heading", { level: 1 })).toHaveText("Workflows");
  await expect(silent.getByRole("combobox", { name: "Search" })).toBeHidden();
  await Promise.all([context.close(), plain.close()]);
});

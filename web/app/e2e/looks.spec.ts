import { execFileSync } from "node:child_process";
import { type Page } from "@playwright/test";
import { Project, expect, test, visit } from "./tenon";

// How the main pages look, compared with the pictures in e2e/looks, at 1440 and 400 px in light and dark. What differs
// from run to run (ids, times, durations, folders) is replaced in the page before a picture is taken, and all text is
// in the fonts that `make chromium` installs. `make looks` takes the pictures anew.

let p: Project;
let session = "";

test.beforeAll(async () => {
  p = new Project();
  p.write("chat.yaml", `steps:
  - text: Let me add them.
    calls: [{name: add, arguments: {a: 2, b: 3}}]
  - text: |
      The sum is **5**.

      | number | square |
      | ------ | ------ |
      | 2      | 4      |
      | 3      | 9      |

      \`\`\`go
      fmt.Println(2 + 3)
      \`\`\`
`);
  p.write("report.yaml", `kind: workflow
version: 1
name: report
description: Says what a city sold.
parameters:
  city: {type: string, description: Which city, default: London}
steps:
  - {id: sales, table: {rows: [{city: London, amount: 3}, {city: Rome, amount: 4}]}}
  - {id: total, sql: "SELECT sum(amount) AS n FROM sales WHERE city = :city", params: {city: params.city}}
  - {id: words, template: "{{ params.city }} sold {{ steps.total.rows[0].n }}"}
message: words
`);
  p.write("tenon.yaml", `version: 1
name: looks
servers:
  demo: {command: ${p.tenon}, args: [testserver]}
models:
  chat: {provider: script, path: chat.yaml}
agents:
  default: {model: chat}
policy:
  defaults: {approval: never}
tools:
  report: {kind: workflow, path: report.yaml}
`);
  p.run("run", "-c", "tenon.yaml", "--yes", "What is 2 and 3?");
  session = JSON.parse(p.run("sessions", "list", "-c", "tenon.yaml", "-o", "json"))[0].id;
  await p.serve();
});

test.afterAll(() => p.end());

const style = `*, *::before, *::after { font-family: "DejaVu Sans" !important; animation: none !important; transition: none !important; caret-color: transparent !important }
.font-mono, .font-mono *, code, pre, pre *, textarea.font-mono, input.font-mono { font-family: "DejaVu Sans Mono" !important }`;

/** Replaces what no two runs share. */
const settle = (page: Page) => page.evaluate(() => {
  const fixed: [RegExp, string][] = [
    [/\b(run|ses|prp|apr|gr)_[0-9a-z]{6,}(\/[\w.]+)?/g, "$1_0"], [/\/(?:tmp|var)\/\S+/g, "/folder"], [/127\.0\.0\.1:\d+/g, "127.0.0.1:8420"],
    [/\b\d+(\.\d+)? (ms|s|min)( \d+ s)?( ago)?\b/g, "1 s$4"], [/\bnow\b/g, "1 s ago"], [/\d{4}-\d\d-\d\d(T[\d:.]+Z)?/g, "2026-01-02"], [/\d{1,2}:\d\d:\d\d( [AP]M)?/g, "03:04:05"],
    [/\bv?\d+\.\d+\.\d+[-+.\w]*|\(devel\)|\bdevel\b/g, "v1"], [/sha256:[0-9a-f]+/g, "sha256:0"], [/pid \d+/g, "pid 1"],
  ];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    let t = n.nodeValue ?? "";
    for (const [from, to] of fixed) t = t.replace(from, to);
    if (t !== n.nodeValue) n.nodeValue = t;
  }
  for (const e of document.querySelectorAll<HTMLElement>("[data-span], [style*='left'], [style*='width']")) if (/%/.test(e.style.cssText)) Object.assign(e.style, { left: "0%", width: "50%" });
});

const pages: { name: string; at: string; ready: (page: Page) => Promise<void> }[] = [
  { name: "chat", at: "", ready: async (page) => {
    await expect(page.getByText("The sum is")).toBeVisible();
    await expect(page.locator("code span[class*=hl-], code span").first()).toBeVisible();
  } },
  { name: "runs", at: "/runs", ready: async (page) => expect(page.getByRole("link", { name: "What is 2 and 3?" })).toBeVisible() },
  { name: "servers", at: "/servers", ready: async (page) => expect(page.getByText(/\d+ tools|Tools/).first()).toBeVisible() },
  { name: "tools", at: "/tools/add", ready: async (page) => expect(page.getByLabel(/^a/).first()).toBeVisible() },
  { name: "workflow", at: "/workflows/report", ready: async (page) => expect(page.locator("[data-flow-step]")).toHaveCount(3) },
  { name: "editor", at: "/workflows/report?edit=1", ready: async (page) => expect(page.getByRole("status", { name: "Check" })).toHaveText(/No mistakes/) },
  { name: "settings", at: "/settings", ready: async (page) => expect(page.getByRole("heading", { name: "Models", exact: true })).toBeVisible() },
];

const fonts = () => /DejaVuSans\.ttf/.test(execFileSync("fc-list", { encoding: "utf8" }));

for (const { name, at, ready } of pages) {
  test(`WB-looks: ${name}`, async ({ chrome }) => {
    test.skip(!fonts(), "the fonts of the pictures are not installed: fonts-dejavu-core");
    for (const width of name === "editor" ? [1440] : [1440, 400]) { // at 400 px, flowedit.spec.ts looks at the editor
      for (const scheme of ["light", "dark"] as const) {
        const { page } = await visit(chrome, p, "/approvals", { width, height: width === 400 ? 720 : 900 });
        await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
        await page.goto(`${p.url}${at || `/sessions/${session}`}`);
        await ready(page);
        await page.evaluate((css) => { const sheet = new CSSStyleSheet(); sheet.replaceSync(css); document.adoptedStyleSheets.push(sheet); }, style); // a tag is refused by the page's policy
        await page.waitForTimeout(500); // the stream of changes never ends, so the network is never idle
        await settle(page);
        await expect.soft(page).toHaveScreenshot(`${name}-${width}-${scheme}.png`, { maxDiffPixelRatio: 0.01, threshold: 0.3, timeout: 20_000 });
        await page.context().close();
      }
    }
  });
}

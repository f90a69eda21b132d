// B12: 300 hostile texts in every field that a server or a model writes. None runs,
// none makes a page ask another host, none becomes markup, and what cannot be seen is
// shown. Each part also sees that the texts were there at all.

import path from "node:path";
import type { Page } from "@playwright/test";
import { payloads, quoted, unseen } from "./payloads";
import { Project, type Watched, expect, ready, test, visit } from "./tenon";

let p: Project;
const turns = Array.from({ length: 10 }, (_, n) => payloads.slice(n * 30, n * 30 + 30));
const pad = (i: number) => String(i).padStart(3, "0");

/** A script of a model whose every text, reasoning and argument is hostile. */
function script(call: (i: number) => string, how: string): string {
  const steps = turns.map((texts, n) => {
    const calls = texts.map((t, k) => `      - {name: ${call(n * 30 + k)}, raw: ${quoted(JSON.stringify({ text: how, [t]: t, more: { [t]: [t] } }))}}`);
    return `  - text: ${quoted(texts.join("\n\n"))}\n    thinking: ${quoted(texts.join("\n"))}\n    calls:\n${calls.join("\n")}\n`;
  });
  return `steps:\n${steps.join("")}  - text: ${quoted(payloads.join("\n\n"))}\n`;
}

test.beforeAll(async () => {
  p = new Project();
  p.write("texts.json", JSON.stringify(payloads));
  for (const how of ["shows", "error", "fails"]) p.write(`${how}.yaml`, script((i) => `shows_${pad(i)}`, how));
  p.write("waits.yaml", script((i) => `waits_${pad(i)}`, "shows"));
  p.write("ask.yaml", `steps:\n  - calls: [${[0, 1, 2, 3, 4].map((n) => `{name: ask_${n}}`).join(", ")}]\n  - text: Thank you.\n`);
  p.write("broken.yaml", `conversations:\n${turns.map((t, n) => `  - match: "number ${n};"\n    steps: [{text: ${quoted(t[0]!)}, error: {code: model_error, message: ${quoted(t.join("\n"))}}}]\n`).join("")}`);
  // What a table holds may have come from anywhere: a text in each cell, and in the names of some columns.
  const rows = payloads.map((t, i) => `{text: ${quoted(t)}${i === 0 ? payloads.slice(0, 12).map((n) => `, ${quoted(n)}: ${quoted(n)}`).join("") : ""}}`).join(", ");
  p.write("cells.yaml", `kind: workflow\nversion: 1\nname: cells\ndescription: Makes a table of texts.\nsteps:\n  - {id: rows, table: {rows: [${rows}]}}\n  - {id: some, sql: SELECT text FROM rows LIMIT 60}\n  - {id: words, template: "{{ steps.some.rows.map(r, r.text) }}"}\noutputs:\n  - {name: out, description: The texts, from: rows}\nmessage: words\n`);
  const server = path.join(import.meta.dirname, "hostile.mjs");
  const models = ["shows", "error", "fails", "waits", "ask", "broken"];
  p.write("tenon.yaml", `version: 1
name: hostile
servers:
${["shows", "packs", "waits", "names", "asks", "broken"].map((k) => `  ${k}: {command: ${quoted(process.execPath)}, args: [${quoted(server)}, texts.json, ${k}]}`).join("\n")}
models:
${models.map((m) => `  ${m}: {provider: script, path: ${m}.yaml}`).join("\n")}
agents:
  default: {model: shows, limits: {max_turns: 20}, description: ${quoted(payloads.join(" "))}}
${models.slice(1).map((m) => `  ${m}: {model: ${m}, limits: {max_turns: 20, parallel_tools: 8}}`).join("\n")}
tools:
  cells: {kind: workflow, path: cells.yaml}
policy:
  rules:
    - {when: 'tool.server == "shows"', verdict: allow}
`);
  await p.serve();
});

test.afterAll(() => p.end());

interface Guarded extends Watched {
  /** Opens everything that opens, and notes the marks of all texts that are on the page. */
  look: (within?: string) => Promise<Set<string>>;
}

/** A page whose every change is watched: for code that runs, and for markup that only a text could have made. */
async function guarded(chrome: Parameters<typeof visit>[0], at: string): Promise<Guarded> {
  const w = await visit(chrome, p, at);
  await w.page.context().exposeFunction("wrongdoing", (what: string) => w.wrong.push(what));
  const guard = () => {
    const tell = (window as unknown as { wrongdoing: (w: string) => void }).wrongdoing;
    Object.assign(window, { pwned: () => tell("something ran") });
    document.addEventListener("securitypolicyviolation", (e) => tell(`the policy stopped ${e.violatedDirective} ${e.blockedURI}`));
    const never = "script,iframe,object,embed,style,meta,base,template,math,marquee,foreignObject,use,animate,set,video,source,feImage,frame,frameset,applet,area,portal";
    const check = (e: Element) => {
      const ours = (v: string | null) => v !== null && ((v.startsWith("/") && !v.startsWith("//")) || v.startsWith(`${location.origin}/`) || v === "#main");
      if (e.parentElement === document.head && ours(e.getAttribute("href") ?? e.getAttribute("src"))) return; // parts of the workbench
      if (e.parentElement === document.head && e.tagName === "META" && !e.hasAttribute("http-equiv")) return;
      if (e.matches(`${never},link`)) tell(`an element ${e.outerHTML.slice(0, 200)}`);
      for (const a of e.attributes) {
        const url = /^(href|src|action|formaction|data|poster|xlink:href|background|srcset|ping)$/i.test(a.name);
        const data = a.name === "src" && /^data:(image\/(png|jpeg|gif|webp|avif)|audio\/[\w.+-]+);base64,/.test(a.value);
        const web = a.name === "href" && e.tagName === "A" && /^(https?|mailto):/.test(a.value) && e.getAttribute("rel")?.includes("noopener");
        if (/^on/i.test(a.name) || a.name === "srcdoc" || (a.name === "style" && /url\(|expression|binding|behavior|position:\s*fixed/i.test(a.value)) || (url && !ours(a.value) && !data && !web)) tell(`an attribute ${a.name}=${a.value.slice(0, 200)}`);
      }
    };
    new MutationObserver((list) => {
      for (const m of list) {
        if (m.type === "attributes") check(m.target as Element);
        for (const n of m.addedNodes) if (n instanceof Element) [n, ...n.querySelectorAll("*")].forEach(check);
      }
    }).observe(document, { subtree: true, childList: true, attributes: true });
  };
  await w.page.addInitScript(guard);
  await w.page.reload();
  await ready(w.page);
  return { ...w, look: (within = "body") => look(w, within) };
}

async function look({ page, wrong }: Watched, within: string): Promise<Set<string>> {
  const { marks, text } = await page.evaluate(async (root) => {
    const box = document.querySelector(root)!;
    const drawn = () => new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
    await drawn(); // what was scrolled or gone to just now
    for (let round = 0; round < 12; round++) {
      const shut = [...box.querySelectorAll<HTMLElement>("button[aria-expanded=false]:not([role=combobox])")].filter((b) => !b.dataset.looked);
      if (shut.length === 0) break;
      for (const b of shut) {
        b.dataset.looked = "1";
        b.click();
      }
      await drawn();
    }
    let all = "";
    const read = () => {
      all += box.textContent;
      for (const e of box.querySelectorAll("*")) {
        for (const n of ["title", "aria-label", "alt", "placeholder"]) all += ` ${e.getAttribute(n) ?? ""}`;
        // What can be edited is as it is, and is said to have what cannot be seen.
        if ((e instanceof HTMLInputElement || e instanceof HTMLTextAreaElement) && !e.nextElementSibling?.textContent?.includes("not seen")) all += ` ${e.value}`;
      }
      all += document.title;
    };
    read();
    const tabs = new Set([...box.querySelectorAll<HTMLElement>("[role=tab]")].map((t) => t.textContent));
    for (const name of tabs) {
      for (const t of box.querySelectorAll<HTMLElement>("[role=tab]")) if (t.textContent === name) t.click();
      await drawn();
      for (let i = 0; i < 3; i++) {
        for (const b of box.querySelectorAll<HTMLElement>("[role=tabpanel] button[aria-expanded=false]")) b.click();
        await drawn();
      }
      read();
    }
    return { marks: [...new Set(all.match(/P[0-2]\d\d/g))], text: all };
  }, within);
  const bad = unseen.exec(text);
  if (bad) wrong.push(`U+${bad[0].codePointAt(0)!.toString(16)} is on the page: ${JSON.stringify(text.slice(Math.max(0, bad.index - 60), bad.index + 60))}`);
  return new Set(marks);
}

const missing = (seen: Set<string>) => payloads.map((t) => t.slice(0, 4)).filter((m) => !seen.has(m));

const to = (page: Page, at: string) => page.evaluate((a) => {
  history.pushState(null, "", a);
  dispatchEvent(new PopStateEvent("popstate"));
}, at);

/** Asks, and waits until the run has come to rest. */
async function ask(page: Page, agent: string, question = "Go.", rest = true): Promise<{ id: string; session: string; state: string }> {
  return page.evaluate(async ([agent, question, rest]) => {
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${sessionStorage.getItem("tenon.token")}` };
    const res = await fetch("/api/v1/runs", { method: "POST", headers, body: JSON.stringify({ agent, question }) });
    if (!res.ok) throw new Error(await res.text());
    const { run } = (await res.json()) as { run: { id: string; session: string } };
    for (;;) {
      const now = (await (await fetch(`/api/v1/runs/${run.id}`, { headers })).json()) as { run?: { state: string }; state?: string };
      const state = now.run?.state ?? now.state!;
      if (state !== "working" || !rest) return { ...run, state };
      await new Promise((r) => setTimeout(r, 200));
    }
  }, [agent, question, rest] as const);
}

for (const how of ["shows", "error", "fails"])
  test(`B12 results and model texts: ${how === "shows" ? "every kind of content" : how === "error" ? "errors of the protocol" : "errors of tools"}`, async ({ chrome }) => {
    const g = await guarded(chrome, "/runs");
    const run = await ask(g.page, how === "shows" ? "default" : how, "Go.");
    expect(run.state).toBe("completed");
    await to(g.page, `/sessions/${run.session}`);
    await expect(g.page.locator('[data-step="10.29"]')).toBeVisible();
    const seen = await g.look("main");
    for (let n = 0; n < 60 && (await g.page.locator('[data-step="1.0"]').count()) === 0; n++) {
      // In one go: it is replaced by what it stands for as soon as it comes into sight.
      await g.page.evaluate(() => [...document.querySelectorAll("button")].find((b) => b.textContent?.includes("earlier step"))?.scrollIntoView());
      for (const m of await g.look("main")) seen.add(m);
    }
    expect(missing(seen)).toEqual([]);
    await to(g.page, `/runs/${run.id}`);
    await expect(g.page.getByRole("region", { name: "Waterfall" })).toBeVisible();
    await g.look("main");
    for (const step of ["1", "1.0", "4.7", "10.29"]) {
      await to(g.page, `/runs/${run.id}?step=${step}`);
      expect((await g.look("main")).size).toBeGreaterThan(0);
    }
    expect(g.wrong).toEqual([]);
  });

test("B12 tools: names, titles, descriptions, schemas, in the list and one by one", async ({ chrome }) => {
  const g = await guarded(chrome, "/tools?server=shows");
  await expect(g.page.getByText(/^300 tools/)).toBeVisible();
  const listed = new Set<string>();
  const list = g.page.getByRole("region", { name: "List of tools" });
  for (let top = 0; top < 300 * 52; top += 600) {
    await list.evaluate((e, y) => e.scrollTo(0, y), top);
    for (const m of await g.look("main")) listed.add(m);
  }
  expect(missing(listed)).toEqual([]);
  const seen = new Set<string>();
  for (let i = 0; i < 30; i++) { // ten texts each
    await to(g.page, `/tools/packs_${pad(i)}`);
    await g.page.getByRole("heading", { name: `packs_${pad(i)}` }).waitFor();
    if (i % 10 === 0) await g.page.getByRole("button", { name: /Edit arguments and rules|Create an entry/ }).click();
    for (const m of await g.look("main")) seen.add(m);
    if (i % 10 === 0) await g.page.getByRole("button", { name: "Close" }).first().click();
  }
  expect(missing(seen)).toEqual([]);
  await to(g.page, "/tools?server=names");
  await g.look("main");
  expect(g.wrong).toEqual([]);
});

// These texts hold a NUL. As a key of an argument that is refused (SEC-F8), so those calls never wait.
const refused = ["P114", "P115", "P116", "P252", "P253", "P254"];

test("B12 approvals: arguments of calls that wait", async ({ chrome }) => {
  expect(payloads.filter((t) => t.includes("\u0000")).map((t) => t.slice(0, 4))).toEqual(refused);
  const g = await guarded(chrome, "/approvals");
  const seen = new Set<string>();
  const run = await ask(g.page, "waits");
  for (let turn = 1; turn <= 10; turn++) {
    const cards = g.page.locator(`[data-approval*="/${turn}."]`);
    const waiting = 30 - refused.filter((m) => Math.floor(Number(m.slice(1)) / 30) === turn - 1).length;
    await expect(cards).toHaveCount(waiting, { timeout: 90_000 });
    for (const m of await g.look("main")) seen.add(m);
    if (turn === 1) {
      await g.page.getByRole("button", { name: "Edit arguments" }).first().click();
      await g.look("main");
      await to(g.page, `/sessions/${run.session}`);
      await expect(g.page.getByRole("article", { name: /Decision about/ })).toHaveCount(30);
      await g.look("main");
      await to(g.page, "/approvals");
      await expect(g.page.locator('[data-approval*="/1."]')).toHaveCount(30);
    }
    await g.page.evaluate(async () => {
      const headers = { "Content-Type": "application/json", Authorization: `Bearer ${sessionStorage.getItem("tenon.token")}` };
      const cards = [...document.querySelectorAll<HTMLElement>("[data-approval]")];
      await Promise.all(cards.map((a) => fetch(`/api/v1/approvals/${encodeURIComponent(a.dataset.approval!)}/decide`, { method: "POST", headers, body: '{"verdict":"allow"}' })));
    });
  }
  expect(missing(seen).filter((m) => !refused.includes(m))).toEqual([]);
  expect(g.wrong).toEqual([]);
});

test("B12 servers: what they are called, say in their logs, and ask for", async ({ chrome }) => {
  const g = await guarded(chrome, "/servers/shows");
  await g.page.getByRole("button", { name: /Connect|Restart/ }).click();
  await expect(g.page.getByText("ready").first()).toBeVisible();
  await g.page.reload();
  await expect(g.page.getByRole("list", { name: "Log" }).getByText("P299").first()).toBeVisible();
  await g.page.getByText("Status as JSON").click();
  expect(missing(await g.look("main"))).toEqual([]);
  await to(g.page, "/servers/broken");
  await g.page.getByRole("button", { name: /Connect|Restart/ }).click();
  await expect(g.page.getByRole("alert").first()).toBeVisible();
  expect((await g.look("main")).size).toBeGreaterThan(0);
  await to(g.page, "/servers");
  await g.look("main");
  const run = await ask(g.page, "ask", "Go.", false); // the server waits, and the run with it
  for (const at of ["/approvals", `/sessions/${run.session}`]) {
    await to(g.page, at);
    await expect(g.page.getByRole("article", { name: /Decision about/ })).toHaveCount(5);
    expect(missing(await g.look("main"))).toEqual([]);
  }
  expect(g.wrong).toEqual([]);
});

test("B12 prompts, resources, the palette, searches, statistics, settings, errors of models", async ({ chrome }) => {
  const g = await guarded(chrome, "/");
  for (let n = 0; n < 10; n++) {
    const run = await ask(g.page, "broken", `number ${n}; ${turns[n]!.join(" ")}`);
    expect(run.state).toBe("failed");
    await to(g.page, `/sessions/${run.session}`);
    await expect(g.page.getByRole("alert").first()).toBeVisible();
    const seen = await g.look("main");
    expect(turns[n]!.map((t) => t.slice(0, 4)).filter((m) => !seen.has(m))).toEqual([]);
  }
  await to(g.page, "/");
  const seen = new Set<string>();
  for (let n = 0; n < 30; n++) {
    await g.page.getByLabel("Question").fill(`/p${pad(n).slice(1)}`);
    await expect(g.page.getByRole("list", { name: "Prompts" }).getByText(`/shows:p${pad(n).slice(1)}0`)).toBeVisible();
    for (const m of await g.look("main")) seen.add(m);
  }
  expect(missing(seen)).toEqual([]);
  await g.page.getByRole("button", { name: /p290/ }).click();
  expect((await g.look("dialog")).size).toBeGreaterThan(0);
  await g.page.getByRole("dialog").getByRole("textbox").first().fill("x");
  await g.page.getByRole("button", { name: "Take the prompt" }).click();
  await expect(g.page.getByLabel("Question")).toHaveValue(/P000/);
  await g.page.getByLabel("Question").fill("");
  await g.page.getByRole("button", { name: "Attach a resource" }).click();
  const resources = new Set<string>();
  for (let n = 0; n < 30; n++) {
    await g.page.getByLabel("Filter resources").fill(`P${pad(n).slice(1)}`);
    await expect(g.page.getByRole("list", { name: "Resources" }).getByRole("button")).toHaveCount(n < 2 ? 20 : 10); // with the 20 templates
    for (const m of await g.look("dialog")) resources.add(m);
  }
  expect(missing(resources)).toEqual([]);
  await g.page.getByRole("list", { name: "Resources" }).getByRole("button").first().click();
  await g.look("main");
  await g.page.keyboard.press("Control+k");
  for (const words of ["names P0", "names P1", "names P2", "session", "number"]) {
    await g.page.getByRole("combobox", { name: "What to go to" }).fill(words);
    await g.look("dialog");
  }
  await g.page.keyboard.press("Escape");
  const found = g.page.waitForResponse(/search/);
  await g.page.getByLabel("Search in all sessions").fill("pwned");
  await found;
  await g.look("body");
  for (const at of ["/runs", "/stats", "/settings"]) {
    await to(g.page, at);
    await expect(g.page.getByRole("heading", { level: 1 })).toBeVisible();
    await g.look("main");
  }
  expect(g.wrong).toEqual([]);
});

test("B12 tables, and what a workflow made of them: cells, names of columns, its message", async ({ chrome }) => {
  const run = (JSON.parse(p.run("workflows", "run", "cells", "-c", "tenon.yaml", "-o", "json")) as { run: string }).run;
  const g = await guarded(chrome, `/runs/${run}`);
  await expect(g.page.locator('[data-flow-step="words"]')).toHaveAttribute("data-state", "ok");
  expect((await g.look("main")).size).toBeGreaterThan(0);
  await to(g.page, `/workflows/cells?run=${run}`);
  await expect(g.page.getByLabel("Message of the workflow")).toBeVisible();
  expect((await g.look("main")).size).toBeGreaterThan(0);
  await g.page.getByRole("list", { name: "Tables of the run" }).getByRole("link", { name: "out" }).click();
  const grid = g.page.getByRole("table", { name: "Rows" });
  await expect(grid).toHaveAttribute("aria-rowcount", "301");
  const seen = new Set<string>();
  for (let top = 0; top < 300 * 27; top += 400) {
    await grid.evaluate((e, y) => {
      e.scrollTo(y % 800, y);
      return new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
    }, top);
    await expect(grid.getByRole("cell", { name: "…", exact: true })).toHaveCount(0);
    for (const m of await g.look("main")) seen.add(m);
  }
  expect(missing(seen)).toEqual([]);
  await grid.evaluate((e) => e.scrollTo(0, 0));
  await g.page.getByTitle("show row 0").click();
  await expect(g.page.getByRole("dialog", { name: "Row 0" }).getByText("P000").first()).toBeVisible();
  expect((await g.look("dialog")).size).toBeGreaterThan(0);
  expect(g.wrong).toEqual([]);
});

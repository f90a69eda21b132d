// The figures of the workbench: how long a page that holds much stands still, how even
// it scrolls, when the first page is painted, beside MCP Inspector on the same machine.
// Each line of the file that TENON_FIGURES names is one figure of one round.

import fs from "node:fs";
import http from "node:http";
import type net from "node:net";
import path from "node:path";
import zlib from "node:zlib";
import type { Browser, Page } from "@playwright/test";
import { Project, expect, test } from "../e2e/tenon";

const rounds = Number(process.env.TENON_ROUNDS ?? 5);
const steps = 2000;

function tell(id: string, value: number): void {
  const line = JSON.stringify({ id, value });
  console.log(line);
  if (process.env.TENON_FIGURES) fs.appendFileSync(process.env.TENON_FIGURES, `${line}\n`);
}

let p: Project;

test.beforeAll(async () => {
  p = new Project();
  p.write("many.yaml", `steps:\n  - {text: Again., calls: [{name: echo, arguments: {text: one}}, {name: echo, arguments: {text: two}}], repeat: ${steps / 2}}\n  - text: All is done.\n`);
  p.write("tenon.yaml", `version: 1
name: figures
servers:
  demo: {command: ${p.tenon}, args: [testserver]}
  many: {command: ${p.tenon}, args: [testserver, --tools, "5000"]}
models:
  many: {provider: script, path: many.yaml}
agents:
  default: {model: many, tools: {include: [echo]}, limits: {max_turns: ${steps}}}
`);
  p.run("run", "-c", "tenon.yaml", "--yes", "Do much.");
  await p.serve();
});

test.afterAll(() => p.end());

/** A new page that notes every task that holds it up for more than 50 ms. */
async function open(chrome: Browser, at: string): Promise<Page> {
  const page = await (await chrome.newContext({ viewport: { width: 1200, height: 800 } })).newPage();
  await page.addInitScript(() => {
    const tasks: number[] = [];
    Object.assign(window, { tasks });
    new PerformanceObserver((l) => tasks.push(...l.getEntries().map((e) => e.duration))).observe({ type: "longtask", buffered: true });
  });
  await page.goto(`${p.url}${at}#token=${p.token()}`);
  return page;
}

const longest = (page: Page) => page.evaluate(() => Math.max(0, ...(window as unknown as { tasks: number[] }).tasks));

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  tdur?: number; // CPU time, in µs
  args?: Record<string, unknown>;
}

/** CPU time of the longest task of the pages' main threads, in ms: unlike its time it does not count what else the machine does. */
async function traced(chrome: Browser, what: () => Promise<void>): Promise<number> {
  await chrome.startTracing(undefined, { categories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"] });
  await what();
  const { traceEvents } = JSON.parse((await chrome.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  const thread = (e: TraceEvent) => `${e.pid} ${e.tid}`;
  const main = new Set(traceEvents.filter((e) => e.name === "thread_name" && e.args?.name === "CrRendererMain").map(thread));
  // Chrome has pages of its own.
  const ours = new Set(traceEvents.filter((e) => main.has(thread(e)) && JSON.stringify(e.args ?? {}).includes(p.url)).map(thread));
  const tasks = traceEvents.filter((e) => e.name === "RunTask" && ours.has(thread(e)) && e.tdur !== undefined).map((e) => e.tdur! / 1000);
  if (tasks.length === 0) throw new Error("the trace has no task of a page");
  return Math.max(...tasks);
}

/** Scrolls with the wheel over 15,000 pixels; returns the 95th percentile of the time between two frames, in ms. */
async function scroll(page: Page, region: string): Promise<number> {
  await page.getByRole("region", { name: region }).or(page.getByRole("log", { name: region })).hover();
  await page.evaluate(() => {
    const frames: number[] = [];
    Object.assign(window, { frames });
    let last = performance.now();
    const next = (now: number) => {
      frames.push(now - last);
      last = now;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  const way = region === "Conversation" ? -300 : 300;
  for (let i = 0; i < 50; i++) await page.mouse.wheel(0, way);
  await page.waitForTimeout(300);
  return page.evaluate(() => {
    const all = (window as unknown as { frames: number[] }).frames.slice(1).sort((a, b) => a - b);
    return all[Math.floor(all.length * 0.95)] ?? 0;
  });
}

test("5,000 tools", async ({ chrome }) => {
  for (let i = 0; i < rounds; i++) {
    const look = async (say: typeof tell) => {
      const page = await open(chrome, "/tools?server=many");
      await expect(page.getByText(/^5000 tools/)).toBeVisible({ timeout: 60_000 });
      say("WB.scroll.tools", await scroll(page, "List of tools"));
      await page.getByRole("searchbox").fill("tool_4999");
      await expect(page.getByText(/^5000 tools/)).toHaveCount(0); // the search is the server's and bounds what it finds
      say("WB.tools", await longest(page));
      await page.context().close();
    };
    await look(tell);
    tell("WB.cpu.tools", await traced(chrome, () => look(() => {}))); // a trace costs time
  }
});

for (const [id, at, region] of [["run", "runs", "Events"], ["chat", "sessions", "Conversation"]] as const)
  test(`a run of 2,000 calls: ${id}`, async ({ chrome }) => {
    const run = JSON.parse(p.run("runs", "list", "-c", "tenon.yaml", "-o", "json"))[0] as { id: string; session: string };
    for (let i = 0; i < rounds; i++) {
      const look = async (say: typeof tell) => {
        const page = await open(chrome, `/${at}/${id === "run" ? run.id : run.session}`);
        await expect(page.getByText("All is done.").first()).toBeVisible({ timeout: 60_000 });
        await page.waitForTimeout(500);
        say(`WB.scroll.${id}`, await scroll(page, region));
        say(`WB.${id}`, await longest(page));
        await page.context().close();
      };
      await look(tell);
      tell(`WB.cpu.${id}`, await traced(chrome, () => look(() => {})));
    }
  });

const painted = (page: Page) =>
  page.evaluate(() => new Promise<number>((resolve) => new PerformanceObserver((l) => resolve(l.getEntriesByName("first-contentful-paint")[0]!.startTime)).observe({ type: "paint", buffered: true })));

test("first paint beside MCP Inspector", async ({ chrome }) => {
  const inspector = await inspect();
  test.skip(!inspector, "TENON_INSPECTOR names no folder with @modelcontextprotocol/inspector");
  const its = `http://127.0.0.1:${(inspector!.address() as net.AddressInfo).port}/`;
  try {
    for (let i = 0; i < rounds; i++) {
      const times: number[] = [];
      for (const at of i % 2 ? [its, `${p.url}/#token=${p.token()}`] : [`${p.url}/#token=${p.token()}`, its]) {
        const page = await (await chrome.newContext()).newPage();
        await page.addInitScript(() => {
          new MutationObserver((_, o) => {
            if (!document.querySelector("textarea")) return;
            Object.assign(window, { ready: performance.now() });
            o.disconnect();
          }).observe(document, { childList: true, subtree: true });
        });
        await page.goto(at);
        const t = await painted(page);
        if (at.startsWith(p.url)) {
          times[0] = t;
          await expect(page.locator("textarea")).toBeVisible();
          tell("WB.ready", await page.evaluate(() => (window as unknown as { ready: number }).ready));
        } else times[1] = t;
        await page.context().close();
      }
      tell("WB.paint", times[0]! / times[1]!);
      tell("WB.paint.own", times[0]!);
      tell("WB.paint.inspector", times[1]!);
    }
  } finally {
    inspector!.close();
  }
});

/** Serves the built pages of the Inspector, compressed as ours are; its own server needs a newer Node than many have. */
function inspect(): Promise<http.Server | undefined> {
  const home = path.join(process.env.TENON_INSPECTOR ?? "", "node_modules/@modelcontextprotocol/inspector/clients/web/dist");
  if (!process.env.TENON_INSPECTOR || !fs.existsSync(home)) return Promise.resolve(undefined);
  const kinds: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
  const packed = new Map<string, Buffer>();
  const server = http.createServer((req, res) => {
    const at = path.join(home, path.normalize(new URL(req.url!, "http://x").pathname));
    const file = at.startsWith(home) && fs.existsSync(at) && fs.statSync(at).isFile() ? at : path.join(home, "index.html");
    if (!packed.has(file)) packed.set(file, zlib.gzipSync(fs.readFileSync(file), { level: 9 }));
    res.writeHead(200, { "Content-Type": kinds[path.extname(file)] ?? "application/octet-stream", "Content-Encoding": "gzip" }).end(packed.get(file));
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

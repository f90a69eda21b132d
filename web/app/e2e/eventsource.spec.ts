// A browser's own EventSource follows runs: through a proxy that cuts the connection, it
// comes again with Last-Event-ID, and has each stored event once, in order.

import net from "node:net";
import type { Page } from "@playwright/test";
import { Project, expect, test, visit } from "./tenon";

let p: Project;
const turns = 30;

test.beforeAll(async () => {
  p = new Project();
  const steps = Array.from({ length: turns }, (_, n) => `  - {text: "This is turn ${n} of a long answer", delay: 20ms, calls: [{name: add, arguments: {a: ${n}, b: 1}}]}`);
  p.write("long.yaml", `steps:\n${steps.join("\n")}\n  - text: That is all.\n`);
  p.write("waits.yaml", "steps:\n  - calls: [{name: counter, arguments: {}}]\n  - text: It is done.\n");
  p.write("tenon.yaml", `version: 1
servers:
  t: {command: ${JSON.stringify(p.tenon)}, args: [testserver, --stdio]}
models:
  long: {provider: script, path: long.yaml}
  waits: {provider: script, path: waits.yaml}
agents:
  default: {model: long, limits: {max_turns: 100}}
serve:
  auth:
    tokens: {ann: {file: ann.token}}
`);
  p.write("ann.token", "token-of-ann-0123456789\n");
  await p.serve();
});

test.afterAll(() => p.end());

/** A proxy that passes bytes on and can cut all connections; it keeps the heads of requests. */
class Cutter {
  readonly heads: string[] = [];
  /** Cuts each connection once so many bytes of answers have passed; 0: never. */
  after = 0;
  url = "";
  private readonly open = new Set<net.Socket>();
  private readonly server = net.createServer((from) => {
    const to = net.connect(Number(new URL(p.url).port), "127.0.0.1");
    for (const s of [from, to]) {
      this.open.add(s);
      s.on("error", () => {});
      s.on("close", () => {
        this.open.delete(s);
        from.destroy();
        to.destroy();
      });
    }
    from.on("data", (b) => {
      this.heads.push(b.toString("latin1"));
      to.write(b);
    });
    let passed = 0;
    to.on("data", (b) => {
      const left = this.after ? this.after - passed : b.length;
      from.write(b.subarray(0, left)); // and so is cut in the middle of whatever it is
      if (!this.after) return;
      passed += b.length;
      if (passed >= this.after) {
        from.end();
        to.destroy();
      }
    });
  });

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.server.address() as net.AddressInfo).port}`;
  }

  cut(): void {
    for (const s of this.open) s.destroy();
  }

  async end(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

async function ask<T>(method: string, at: string, body?: unknown, token = p.token()): Promise<T> {
  const res = await fetch(p.url + at, { method, headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", Accept: "application/json" }, body: body && JSON.stringify(body) });
  expect(res.ok, `${method} ${at}: ${res.status}`).toBe(true);
  return (await res.json()) as T;
}

async function begin(agentModel?: string): Promise<string> {
  const r = await ask<{ run: { id: string } }>("POST", "/api/v1/runs", { question: "Tell me", ...(agentModel ? { model: agentModel } : {}) });
  return r.run.id;
}

/** The numbers of all stored events of a run. */
async function stored(run: string): Promise<number[]> {
  const all: number[] = [];
  for (let cursor = ""; ; ) {
    const page = await ask<{ items: { seq: number }[]; next_cursor?: string }>("GET", `/api/v1/runs/${run}/events?limit=7${cursor && `&cursor=${cursor}`}`);
    all.push(...page.items.map((e) => e.seq));
    if (!page.next_cursor) return all;
    cursor = page.next_cursor;
  }
}

interface Heard {
  ids: number[];
  opens: number;
  waiting: number;
  closed: boolean;
}

/** Follows a run in a page of the proxy's origin. */
async function follow(page: Page, run: string, token = p.token()): Promise<() => Promise<Heard>> {
  await page.evaluate(
    ({ run, token }) => {
      const heard: Heard = { ids: [], opens: 0, waiting: 0, closed: false };
      (window as unknown as { heard: Heard }).heard = heard;
      const s = new EventSource(`/api/v1/runs/${run}/events?access_token=${encodeURIComponent(token)}`);
      s.onopen = () => void heard.opens++;
      s.onmessage = (e) => {
        const seq = (JSON.parse(e.data as string) as { seq: number }).seq;
        heard.ids.push(String(seq) === e.lastEventId ? seq : -1);
      };
      s.addEventListener("waiting", () => void heard.waiting++);
      s.onerror = () => void (heard.closed = s.readyState === EventSource.CLOSED);
    },
    { run, token },
  );
  return () => page.evaluate(() => (window as unknown as { heard: Heard }).heard);
}

test("an EventSource that is cut off has each event once", async ({ chrome }) => {
  const cutter = new Cutter();
  await cutter.start();
  const { page, wrong } = await visit(chrome, p);
  await page.context().unroute("**/*"); // the proxy is another address
  await page.goto(cutter.url);
  cutter.after = 12_000; // more than any one event has, and a few times less than all
  const run = await begin();
  const heard = await follow(page, run);
  await expect.poll(async () => (await heard()).closed, { timeout: 300_000, intervals: [500] }).toBe(true); // 204: it does not come again
  cutter.after = 0;
  const got = await heard();
  expect(got.ids).toEqual(await stored(run));
  expect(got.ids.length).toBeGreaterThan(turns * 3);
  expect(got.opens).toBeGreaterThan(2);
  const again = cutter.heads.filter((h) => h.startsWith("GET /api/v1/runs/") && /^Last-Event-ID: \d+\r$/im.test(h));
  expect(again.length).toBeGreaterThan(2);
  expect(wrong).toEqual([]);

  // The run has ended: who comes anew is told all of it at once, and then no more.
  const late = await follow(page, run);
  await expect.poll(async () => (await late()).closed).toBe(true);
  expect((await late()).ids).toEqual(got.ids);

  // Somebody else has no such run, and an EventSource does not try again.
  const other = await follow(page, run, "token-of-ann-0123456789");
  await expect.poll(async () => (await other()).closed).toBe(true);
  expect(await other()).toMatchObject({ ids: [], opens: 0 });
  await page.context().close();
  await cutter.end();
});

test("an EventSource goes on after a decision and after tenon was started anew", async ({ chrome }) => {
  const { page } = await visit(chrome, p);
  const run = await begin("waits");
  const heard = await follow(page, run);
  await expect.poll(async () => (await heard()).waiting).toBeGreaterThan(0);
  await p.stop();
  await p.serve();
  const before = (await heard()).ids.length;
  expect(before).toBeGreaterThan(0);
  await ask("POST", `/api/v1/runs/${run}/decide`, { step: "1.0", verdict: "deny" });
  await expect.poll(async () => (await heard()).closed, { timeout: 120_000 }).toBe(true);
  const got = await heard();
  expect(got.ids).toEqual(await stored(run));
  expect(got.ids.length).toBeGreaterThan(before);
  await page.context().close();
});

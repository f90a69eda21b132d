// A project in a temporary folder with a `tenon serve` at work in it, and a browser that
// has its token.

import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { type Browser, type Page, test as base, chromium, expect } from "@playwright/test";

function chromiumPath(): string {
  const found = [process.env.TENON_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => p && fs.existsSync(p));
  if (!found) throw new Error("no Chromium: install the distribution's, or name one in TENON_CHROMIUM");
  return found;
}

/** The program under test, which build.ts has built. */
function program(): string {
  if (!process.env.TENON_BIN) throw new Error("no program: the Playwright configuration needs globalSetup e2e/build.ts");
  return process.env.TENON_BIN;
}

// A port below those that the system gives to whoever asks for any: a server that is
// stopped finds it free when it comes back, whatever runs beside.
async function freePort(): Promise<number> {
  for (let i = 0; i < 100; i++) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const free = await new Promise<boolean>((resolve) => {
      const s = net.createServer();
      s.on("error", () => resolve(false));
      s.listen(port, "127.0.0.1", () => s.close(() => resolve(true)));
    });
    if (free) return port;
  }
  throw new Error("no port is free");
}

export class Project {
  readonly dir = fs.mkdtempSync(path.join(os.tmpdir(), "tenon-e2e-"));
  readonly tenon = program();
  url = "";
  /** Without a file that is named: the store is the user's. */
  bare = false;
  private served?: ChildProcess;
  private log = "";

  write(name: string, text: string): void {
    fs.writeFileSync(path.join(this.dir, name), text, { mode: 0o600 }); // tokens are refused if others can read them
  }

  read(name: string): string {
    return fs.readFileSync(path.join(this.dir, name), "utf8");
  }

  /** Runs the command line in the project's folder and returns what it prints. */
  run(...args: string[]): string {
    return execFileSync(this.tenon, args, { cwd: this.dir, env: this.env(), encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  /** The same while this process goes on, which may serve what the command asks. */
  async runBeside(...args: string[]): Promise<string> {
    return (await promisify(execFile)(this.tenon, args, { cwd: this.dir, env: this.env(), encoding: "utf8" })).stdout;
  }

  private env(): NodeJS.ProcessEnv {
    return { PATH: process.env.PATH, HOME: this.dir, TMPDIR: os.tmpdir() };
  }

  async serve(...args: string[]): Promise<void> {
    const port = this.url ? new URL(this.url).port : await freePort();
    this.url = `http://127.0.0.1:${port}`;
    this.served = spawn(this.tenon, ["serve", ...(this.bare ? [] : ["-c", "tenon.yaml"]), "--listen", `127.0.0.1:${port}`, ...args], { cwd: this.dir, env: this.env(), stdio: ["ignore", "ignore", "pipe"] });
    this.served.stderr!.on("data", (b: Buffer) => (this.log += b.toString()));
    for (let i = 0; i < 1800; i++) {
      if (this.served.exitCode !== null) throw new Error(`tenon serve ended:\n${this.log}`);
      const ok = await fetch(`${this.url}/healthz`).then((r) => r.ok, () => false);
      if (ok) return;
      await new Promise((r) => setTimeout(r, 50));
    }
    throw new Error(`tenon serve does not answer:\n${this.log}`);
  }

  token(): string {
    return this.read(this.bare ? ".local/state/tenon/serve.token" : ".tenon/serve.token").trim();
  }

  stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const p = this.served;
    if (!p || p.exitCode !== null) return Promise.resolve();
    this.served = undefined;
    return new Promise((resolve) => {
      p.on("exit", () => resolve());
      p.kill(signal);
    });
  }

  async end(): Promise<void> {
    await this.stop();
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}

export interface Watched {
  page: Page;
  /** What the page did that it must not: errors, requests to elsewhere. */
  wrong: string[];
}

/** Opens a page with the project's token; whatever it asks of others, or breaks, is noted. */
export async function visit(browser: Browser, project: Project, at = "/", size = { width: 1200, height: 800 }): Promise<Watched> {
  const context = await browser.newContext({ viewport: size });
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on("pageerror", (e) => wrong.push(`error: ${e.message}`));
  page.on("console", (m) => {
    if (m.type() === "error" && !m.text().startsWith("Failed to load resource")) wrong.push(`console: ${m.text()}`);
  });
  page.on("dialog", (d) => {
    wrong.push(`dialog: ${d.message()}`);
    void d.dismiss();
  });
  await context.route("**/*", (route) => {
    const url = route.request().url();
    if (!url.startsWith(project.url) && !/^(data|blob):/.test(url)) wrong.push(`request: ${url}`);
    return route.continue();
  });
  await page.goto(`${project.url}${at}#token=${project.token()}`);
  await ready(page);
  return { page, wrong };
}

/** The frame of the page is drawn before the scripts run. Until then it takes no clicks and no keys. */
export async function ready(page: Page): Promise<void> {
  await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
  await expect(page.locator("#root > [inert]")).toHaveCount(0);
}

/** The tests share one browser. What a test opened in it is closed behind it: pages that are
 * left ask for servers and tools, which starts what the next test wants to start itself. */
export const test = base.extend<{ closing: void }, { chrome: Browser }>({
  closing: [
    async ({ chrome }, use) => {
      await use();
      for (const c of chrome.contexts()) {
        await c.unrouteAll({ behavior: "ignoreErrors" });
        await c.close();
      }
    },
    { auto: true },
  ],
  chrome: [
    async ({}, use) => {
      const b = await chromium.launch({ executablePath: chromiumPath(), args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
      await use(b);
      await b.close();
    },
    { scope: "worker" },
  ],
});

export { expect };

// Servers that a registry lists: searched, chosen, and added after the owner agreed in the terminal.

import http from "node:http";
import type net from "node:net";
import AxeBuilder from "@axe-core/playwright";
import { Project, expect, test, visit } from "./tenon";

let p: Project;
let registry: http.Server;

const listed = {
  servers: [
    { server: { name: "io.example/files", title: "Files", description: "Reads the files of a folder. <img src=x onerror=alert(1)>", version: "1.2.0", repository: { url: "https://example.com/files" },
      packages: [{ registryType: "npm", identifier: "@example/files", version: "1.2.0", transport: { type: "stdio" },
        packageArguments: [{ type: "positional", valueHint: "folder", isRequired: true }], environmentVariables: [{ name: "FILES_TOKEN", isSecret: true }] }],
      remotes: [{ type: "streamable-http", url: "https://files.example.com/mcp" }] } },
    { server: { name: "io.example/old", description: "It cannot run.", version: "1" }, _meta: { "io.modelcontextprotocol.registry/official": { status: "deprecated" } } },
  ],
  metadata: {},
};

test.beforeAll(async () => {
  registry = http.createServer((req, res) => {
    const words = new URL(req.url!, "http://x").searchParams.get("search") ?? "";
    res.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify({ ...listed, servers: listed.servers.filter((s) => s.server.name.includes(words)) }));
  });
  await new Promise<void>((done) => registry.listen(0, "127.0.0.1", done));
  p = new Project();
  p.write("tenon.yaml", `version: 1\nname: registry\nregistry:\n  url: http://127.0.0.1:${(registry.address() as net.AddressInfo).port}\n`);
  await p.serve();
});

test.afterAll(async () => {
  await p.end();
  registry.close();
});

for (const width of [1440, 400]) {
  for (const theme of ["light", "dark"]) {
    test(`UX-10 servers of the registry pass axe at ${width} px, ${theme}`, async ({ chrome }) => {
      const { page } = await visit(chrome, p, "/servers", { width, height: 900 });
      await page.evaluate((t) => { document.documentElement.dataset.theme = t; }, theme);
      await page.getByRole("button", { name: "Add a server" }).first().click();
      await page.getByRole("tab", { name: "Registry" }).click();
      await expect(page.getByRole("list", { name: "Servers of the registry" }).getByRole("listitem")).toHaveCount(2);
      expect((await new AxeBuilder({ page }).analyze()).violations.map((v) => `${v.id}: ${v.nodes[0]?.html}`)).toEqual([]);
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/registry-${width}-${theme}.png` });
      await page.getByRole("button", { name: "Use io.example/files with npx" }).click();
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/registry-form-${width}-${theme}.png` });
    });
  }
}

test("UX-10 a server of the registry is chosen, its form is filled in, and it waits for the owner in the terminal", async ({ chrome }) => {
  const { page, wrong } = await visit(chrome, p, "/servers");
  await page.getByRole("button", { name: "Add a server" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("tab", { name: "Registry" }).click();
  const list = dialog.getByRole("list", { name: "Servers of the registry" });
  await expect(list.getByRole("listitem")).toHaveCount(2);
  await expect(list).toContainText("It cannot be run from here.");
  await expect(list).toContainText("deprecated");
  await expect(list).toContainText("<img src=x onerror=alert(1)>");
  await dialog.getByLabel("Search").fill("files");
  await dialog.getByRole("button", { name: "Search" }).click();
  await expect(list.getByRole("listitem")).toHaveCount(1);

  await list.getByRole("button", { name: "Use io.example/files with http" }).click();
  await expect(dialog.getByLabel("URL")).toHaveValue("https://files.example.com/mcp");
  await dialog.getByRole("tab", { name: "Registry" }).click();
  await list.getByRole("button", { name: "Use io.example/files with npx" }).first().click();
  await expect(dialog.getByLabel("Name")).toHaveValue("files");
  const line = dialog.getByLabel("Command line");
  await expect(line).toHaveValue("npx -y @example/files@1.2.0 <folder>");
  await expect(dialog.getByLabel("Environment")).toHaveValue("FILES_TOKEN=${FILES_TOKEN}");
  await expect(dialog).toContainText("Still to be filled in: <folder>");
  await expect(dialog.getByRole("button", { name: "Show what changes" })).toBeDisabled();
  await line.fill("npx -y @example/files@1.2.0 /srv/files");
  await dialog.getByLabel("Environment").fill("");
  await dialog.getByRole("button", { name: "Show what changes" }).click();
  await expect(dialog).toContainText("registry_name: io.example/files");
  await dialog.getByRole("button", { name: "Propose it" }).click();
  const command = dialog.getByLabel("Command", { exact: true });
  await expect(command).toBeVisible();
  expect(p.read("tenon.yaml")).not.toContain("npx"); // nothing starts without the terminal
  const id = /prp_\w+/.exec((await command.textContent()) ?? "")![0];
  const shown = JSON.parse(await p.runBeside("-c", "tenon.yaml", "proposals", "show", id, "-o", "json")) as { digest: string };
  await p.runBeside("-c", "tenon.yaml", "proposals", "accept", id, "--digest", shown.digest);
  await expect(dialog).toHaveCount(0);
  expect(p.read("tenon.yaml")).toContain("registry_name: io.example/files");

  await page.getByRole("button", { name: "Add a server" }).first().click();
  await dialog.getByRole("tab", { name: "Registry" }).click();
  await expect(list).toContainText("configured as files");
  expect(wrong).toEqual([]);
});

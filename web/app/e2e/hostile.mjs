// An MCP server (stdio, revision 2025-06-18) that writes hostile texts into every field
// that is its own: node hostile.mjs TEXTS.json KIND, where KIND says what it offers.

import fs from "node:fs";
import readline from "node:readline";

const texts = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const kind = process.argv[3];
const all = texts.join("\n");
const pad = (i) => String(i).padStart(3, "0");
const say = (m) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...m })}\n`);

// A tool whose names or values have what cannot be seen is withheld: those texts stand beside them.
const plain = (t) => /^[ -~\n]*$/.test(t);
const named = (t) => (plain(t) ? t : "other");

const tool = (t, i) => ({
  name: kind === "names" ? t : `${kind}_${pad(i)}`,
  title: t,
  description: t,
  inputSchema: { type: "object", title: t, description: t, properties: { [named(t)]: { type: "string", title: t, description: t, ...(plain(t) ? { default: t, examples: [t], enum: [t, "x"] } : {}) }, text: { type: "string", description: t } }, additionalProperties: true },
  outputSchema: { type: "object", title: t, description: t },
  annotations: { title: t, readOnlyHint: kind === "shows" },
  _meta: { [t]: t },
});

/** A tool with ten texts in each of its fields. */
const packed = (ten, i) => ({
  name: `packs_${pad(i)}`,
  title: ten.join(" "),
  description: ten.join("\n"),
  inputSchema: { type: "object", title: ten.join(" "), description: ten.join("\n"), properties: Object.assign({}, ...ten.map((t) => tool(t, 0).inputSchema.properties), Object.fromEntries(ten.map((t, k) => [`text${k}`, { type: "string", title: t, description: t }]))), additionalProperties: true },
  outputSchema: { type: "object", title: ten.join(" "), description: ten.join("\n") },
  annotations: { title: ten.join(" "), readOnlyHint: true },
  _meta: Object.fromEntries(ten.map((t) => [t, t])),
});

const svg = (t) => Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" onload="parent.pwned(1)"><script>pwned(1)</script><text>${t}</text></svg>`).toString("base64");

const result = (t) => ({
  content: [
    { type: "text", text: t },
    { type: "image", mimeType: t, data: "AAAA" },
    { type: "image", mimeType: "image/png", data: t },
    { type: "image", mimeType: "image/svg+xml", data: svg(t) },
    { type: "audio", mimeType: `audio/x" onerror="pwned(1)`, data: t },
    { type: "audio", mimeType: "audio/wav", data: "AAAA" },
    { type: "resource", resource: { uri: t, mimeType: "text/html", text: t } },
    { type: "resource", resource: { uri: `javascript:pwned(1)//${t}`, mimeType: "image/svg+xml", blob: svg(t) } },
    { type: "resource_link", uri: `javascript:pwned(1)//${t}`, name: t, title: t, description: t, mimeType: t },
    { type: t, text: t },
  ],
  structuredContent: { rows: [{ [t]: t, [`b${t}`]: { [t]: [t] } }] },
  _meta: { [t]: t },
});

/** One of five forms, each with the fields that a fifth of the texts make; a form may have 64. */
const form = (n) => ({ type: "object", properties: Object.fromEntries(texts.slice(n * 60, n * 60 + 60).map((t, i) => [`f${pad(i)}`, i % 2 ? { type: "string", title: t, description: t, enum: [t, "x"], enumNames: [t, t] } : { type: "string", title: t, description: t, default: t }])) });

let asked = 0;
const waits = new Map();

function answer(m) {
  const { method, params, id } = m;
  switch (method) {
    case "initialize":
      if (kind === "broken") return say({ id, error: { code: -32000, message: all, data: { [texts[0]]: all } } });
      return say({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: {}, prompts: {}, resources: {}, logging: {}, ...Object.fromEntries(texts.slice(0, 20).map((t) => [t, {}])) }, serverInfo: { name: all, title: all, version: all }, instructions: all } });
    case "notifications/initialized":
      for (const t of texts) {
        say({ method: "notifications/message", params: { level: "error", logger: t, data: t } });
        process.stderr.write(`${t.replace(/[\r\n]/g, " ")}\n`);
      }
      return;
    case "tools/list": return say({ id, result: { tools: kind === "asks" ? [0, 1, 2, 3, 4].map((n) => ({ name: `ask_${n}`, description: all, inputSchema: { type: "object" }, annotations: { readOnlyHint: true } })) : kind === "packs" ? Array.from({ length: 30 }, (_, i) => packed(texts.slice(i * 10, i * 10 + 10), i)) : texts.map(tool) } });
    case "prompts/list": return say({ id, result: { prompts: kind === "shows" ? texts.map((t, i) => ({ name: `p${pad(i)}`, title: t, description: t, arguments: i % 10 ? undefined : [{ name: t, description: t }] })) : [] } });
    case "prompts/get": return say({ id, result: { description: all, messages: [{ role: "user", content: { type: "text", text: all } }] } });
    case "resources/list": return say({ id, result: { resources: kind === "shows" ? texts.map((t, i) => ({ uri: `x:${i}/${t}`, name: t, title: t, description: t, mimeType: t })) : [] } });
    case "resources/templates/list": return say({ id, result: { resourceTemplates: kind === "shows" ? texts.slice(0, 20).map((t) => ({ uriTemplate: `x:{a}/${t}`, name: t, description: t })) : [] } });
    case "resources/read": return say({ id, result: { contents: [{ uri: params.uri, mimeType: "text/html", text: all }] } });
    case "tools/call": {
      if (params.name.startsWith("ask_")) {
        const n = `ask-${++asked}`;
        waits.set(n, id);
        return say({ id: n, method: "elicitation/create", params: { message: all, requestedSchema: form(Number(params.name.slice(4))) } });
      }
      const t = texts[Number(params.name.slice(-3))] ?? all;
      if (params._meta?.progressToken !== undefined) say({ method: "notifications/progress", params: { progressToken: params._meta.progressToken, progress: 1, total: 2, message: t } });
      const how = params.arguments?.text;
      if (how === "error") return say({ id, error: { code: -32000, message: t, data: { [t]: t } } });
      return say({ id, result: how === "fails" ? { content: [{ type: "text", text: t }], isError: true } : result(t) });
    }
    case "ping": case "logging/setLevel": return say({ id, result: {} });
  }
  if (id !== undefined && method) say({ id, error: { code: -32601, message: "no such method" } });
  else if (id !== undefined && waits.has(id)) {
    const call = waits.get(id);
    waits.delete(id);
    say({ id: call, result: { content: [{ type: "text", text: JSON.stringify(m.result ?? {}) }] } });
  }
}

readline.createInterface({ input: process.stdin }).on("line", (line) => answer(JSON.parse(line)));

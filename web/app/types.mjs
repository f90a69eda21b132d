// Writes src/api.gen.ts, the shapes of the API, from openapi.json: node types.mjs

import fs from "node:fs";

const { components } = JSON.parse(fs.readFileSync(new URL("../../httpapi/openapi.json", import.meta.url), "utf8"));
const name = (k) => (/^[A-Za-z_$][\w$]*$/.test(k) ? k : JSON.stringify(k));

function type(s, indent) {
  if (s === true || Object.keys(s).length === 0) return "unknown";
  if (s.$ref) return s.$ref.split("/").pop();
  if (s.enum) return s.enum.map((v) => JSON.stringify(v)).join(" | ");
  if (s.const !== undefined) return JSON.stringify(s.const);
  for (const [k, sep] of [["allOf", " & "], ["oneOf", " | "], ["anyOf", " | "]]) if (s[k]) return s[k].map((x) => (k === "allOf" ? type(x, indent) : `(${type(x, indent)})`)).join(sep);
  if (Array.isArray(s.type)) return s.type.map((t) => type({ ...s, type: t }, indent)).join(" | ");
  switch (s.type) {
    case "string": case "boolean": case "null": return s.type;
    case "integer": case "number": return "number";
    case "array": return `${wrap(type(s.items ?? {}, indent))}[]`;
    case "object": {
      const props = Object.entries(s.properties ?? {});
      if (props.length === 0) return typeof s.additionalProperties === "object" ? `Record<string, ${type(s.additionalProperties, indent)}>` : "Record<string, unknown>";
      const inner = `${indent}  `;
      return `{\n${props.map(([k, p]) => `${comment(p.description, inner)}${inner}${name(k)}${s.required?.includes(k) ? "" : "?"}: ${type(p, inner)};\n`).join("")}${indent}}`;
    }
  }
  return "unknown";
}

const wrap = (t) => (/[|&]/.test(t) && !t.startsWith("{") ? `(${t})` : t);
const comment = (text, indent) => (text ? `${indent}/** ${text.replaceAll("*/", "* /").replaceAll("\n", " ")} */\n` : "");

const out = Object.entries(components.schemas).map(([k, s]) => `${comment(s.description, "")}export type ${k} = ${type(s, "")};\n`);
fs.writeFileSync(new URL("src/api.gen.ts", import.meta.url), `// Made from httpapi/openapi.json by types.mjs; do not edit.\n\n${out.join("\n")}`);

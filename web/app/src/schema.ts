// What a form made from a JSON Schema starts with, and what is wrong with what was
// filled in. The server validates again; this is to say it beside the field.

import { Exact } from "./exact";
import type { Schema } from "./types";

/** What a person typed where JSON is needed, and is none. */
export class Unreadable {
  constructor(readonly text: string) {}
}

export type Shape = "text" | "number" | "boolean" | "choice" | "object" | "list" | "json";

export function typeOf(s: Schema): string {
  const t = Array.isArray(s.type) ? s.type.find((x) => x !== "null") : s.type;
  if (t) return t;
  return s.properties ? "object" : "";
}

/** How a value of a schema is asked for. */
export function shapeOf(s: Schema): Shape {
  if (choices(s)) return "choice";
  switch (typeOf(s)) {
    case "string": return "text";
    case "number": case "integer": return "number";
    case "boolean": return "boolean";
    case "object": return s.properties && Object.keys(s.properties).length > 0 ? "object" : "json";
    case "array": return s.items && (["text", "number", "choice"] as Shape[]).includes(shapeOf(s.items)) ? "list" : "json";
  }
  return "json";
}

export function choices(s: Schema): { value: unknown; label: string }[] | null {
  if (s.enum) return s.enum.map((v) => ({ value: v, label: typeof v === "string" ? v : JSON.stringify(v) }));
  const all = s.oneOf ?? s.anyOf;
  if (all?.length && all.every((o) => o.const !== undefined)) return all.map((o) => ({ value: o.const, label: o.title ?? String(o.const) }));
  return null;
}

/** The value that a form begins with: the defaults, and nothing made up. */
export function initial(s: Schema): unknown {
  if (s.default !== undefined) return s.default;
  if (shapeOf(s) !== "object") return undefined;
  const out: Record<string, unknown> = {};
  for (const [k, p] of Object.entries(s.properties ?? {})) {
    const v = initial(p);
    if (v !== undefined && !(shapeOf(p) === "object" && !s.required?.includes(k) && Object.keys(v as object).length === 0)) out[k] = v;
  }
  return out;
}

/** What is wrong with a value, by path ("" is the value itself). */
export function problems(s: Schema, v: unknown, path = ""): Record<string, string> {
  const out: Record<string, string> = {};
  if (v instanceof Unreadable) return { [path]: "this is not JSON; correct it or empty the field" };
  const allowed = choices(s);
  if (allowed) {
    if (!allowed.some((c) => JSON.stringify(c.value) === JSON.stringify(v))) out[path] = "choose one of the values";
    return out;
  }
  switch (typeOf(s)) {
    case "string":
      if (typeof v !== "string") out[path] = "a text is needed";
      else if (s.minLength !== undefined && [...v].length < s.minLength) out[path] = `at least ${s.minLength} characters`;
      else if (s.maxLength !== undefined && [...v].length > s.maxLength) out[path] = `at most ${s.maxLength} characters`;
      else if (s.pattern && !matches(s.pattern, v)) out[path] = `must match ${s.pattern}`;
      break;
    case "integer":
    case "number":
      if (v instanceof Exact) {
        if (typeOf(s) === "integer" && !/^-?\d+$/.test(v.source)) out[path] = "a whole number is needed"; // its bounds are the server's business
      } else if (typeof v !== "number" || Number.isNaN(v)) out[path] = "a number is needed";
      else if (typeOf(s) === "integer" && !Number.isInteger(v)) out[path] = "a whole number is needed";
      else if (s.minimum !== undefined && v < s.minimum) out[path] = `at least ${s.minimum}`;
      else if (s.maximum !== undefined && v > s.maximum) out[path] = `at most ${s.maximum}`;
      break;
    case "boolean":
      if (typeof v !== "boolean") out[path] = "yes or no is needed";
      break;
    case "array":
      if (!Array.isArray(v)) out[path] = "a list is needed";
      else if (s.items) v.forEach((x, i) => Object.assign(out, problems(s.items!, x, `${path}/${i}`)));
      break;
    case "object": {
      if (typeof v !== "object" || v === null || Array.isArray(v)) {
        out[path] = "an object is needed";
        break;
      }
      const o = v as Record<string, unknown>;
      for (const k of s.required ?? []) if (o[k] === undefined) out[`${path}/${k}`] = "is required";
      for (const [k, p] of Object.entries(s.properties ?? {})) if (o[k] !== undefined) Object.assign(out, problems(p, o[k], `${path}/${k}`));
      break;
    }
  }
  return out;
}

function matches(pattern: string, v: string): boolean {
  if (v.length > 10_000 || pattern.length > 500) return true; // the server's business
  try {
    return new RegExp(pattern, "u").test(v);
  } catch {
    return true;
  }
}

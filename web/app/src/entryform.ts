// The forms for entries of tenon.yaml: their schemas in the shape that forms know, and the keys that a form changed.

import type { Schema } from "./types";

type Raw = Schema & { $ref?: string; $defs?: Record<string, Raw> };

const longText = 1_000_000; // characters of a text that may have several lines

/**
 * The schema of an entry without references. Where a value may be a text or an object, it is a text, unless the entry
 * has an object there. A text that could also be in a file has several lines.
 */
export function formSchema(schema: Raw, value?: unknown, defs: Record<string, Raw> = schema.$defs ?? {}): Schema {
  const ref = schema.$ref?.replace("#/$defs/", "");
  if (ref) {
    const form = (defs[ref]?.anyOf ?? [])[0];
    return { type: "string", pattern: form?.pattern, description: described(schema) };
  }
  const forms = (schema.anyOf ?? []) as Raw[];
  const [text, object] = ["string", "object"].map((t) => forms.find((f) => f.type === t));
  if (text && object) {
    if (isKeys(value)) return { ...formSchema(object, value, defs), description: described(schema) };
    return { ...formSchema(text, value, defs), ...(object.properties?.file ? { maxLength: longText } : {}), description: described(schema) };
  }
  const out: Schema = { ...schema, description: described(schema) };
  delete out.default; // a form shows what the file says
  if (schema.properties) out.properties = Object.fromEntries(Object.entries(schema.properties).map(([k, s]) => [k, formSchema(s as Raw, isKeys(value) ? value[k] : undefined, defs)]));
  if (schema.items) out.items = formSchema(schema.items as Raw, undefined, defs);
  return out;
}

function described(s: Schema): string | undefined {
  const text = s.description?.replaceAll("`", "");
  if (s.default === undefined || s.default === null || s.default === "") return text;
  return `${text ?? ""} Default: ${typeof s.default === "string" ? s.default : JSON.stringify(s.default)}.`.trim();
}

type Keys = Record<string, unknown>;

const isKeys = (v: unknown): v is Keys => typeof v === "object" && v !== null && !Array.isArray(v);

/** The keys that differ, with dots into objects that have a form of their own; null removes a key. */
export function changedKeys(schema: Schema, before: Keys, after: Keys, at = ""): Keys {
  const out: Keys = {};
  for (const k of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [was, now] = [before[k], after[k]];
    const inner = schema.properties?.[k];
    if (inner?.properties && (was === undefined || isKeys(was)) && isKeys(now)) Object.assign(out, changedKeys(inner, was ?? {}, now, `${at}${k}.`));
    else if (JSON.stringify(was) !== JSON.stringify(now)) out[at + k] = now === undefined ? null : now;
  }
  return out;
}

// Renames a step of a workflow: its id, and what refers to it in values, templates, queries, lists of steps and ports.

import type { DraftChange } from "./types";

type Path = (string | number)[];
type Keys = Record<string, unknown>;

const keys = (v: unknown): Keys => (typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Keys) : {});
const list = (v: unknown): unknown[] => (Array.isArray(v) ? v : []);

/** Why a step cannot have a name, or nothing. */
export function wrongName(name: string, others: string[]): string | undefined {
  if (!/^[A-Za-z_]\w*$/.test(name)) return "Letters, digits and _, not starting with a digit.";
  if (others.includes(name)) return "An input or another step has this name.";
}

/** The changes of a workflow that give step i another name, wherever the step is named. */
export function renameStep(workflow: Keys, i: number, to: string): DraftChange[] {
  const steps = list(workflow.steps).map(keys);
  const from = steps[i]?.id;
  const changes: DraftChange[] = [{ path: ["steps", i, "id"], value: to }];
  if (typeof from !== "string" || !from) return changes;
  const taken = [...steps.map((s) => s.id), ...list(workflow.inputs).map((p) => keys(p).name)].filter((n): n is string => typeof n === "string" && n !== from);
  /** Changes each text below a place. */
  const each = (path: Path, v: unknown, change: (t: string) => string): void => {
    if (typeof v === "string") {
      const now = change(v);
      if (now !== v) changes.push({ path, value: now });
    } else if (Array.isArray(v)) v.forEach((x, n) => each([...path, n], x, change));
    else for (const [k, x] of Object.entries(keys(v))) each([...path, k], x, change);
  };
  const cel = (t: string) => inCel(t, from, to);
  const template = (t: string) => t.replace(/\{\{[^]*?\}\}/g, cel);
  const port = (t: string) => (t === from || t.startsWith(`${from}.`) ? to + t.slice(from.length) : t);
  steps.forEach((s, n) => {
    const at = ["steps", n];
    for (const k of ["args", "params", "when", "foreach"]) each([...at, k], s[k], cel);
    for (const k of ["template", "message"]) each([...at, k], s[k], template);
    for (const k of ["inputs", "after", "tables"]) each([...at, k], s[k], port);
    each([...at, "on_error", "default"], keys(s.on_error).default, cel);
    each([...at, "table", "rows"], keys(s.table).rows, cel);
    each([...at, "sql"], s.sql, (t) => inSql(t, from, to, taken));
  });
  list(workflow.outputs).forEach((o, n) => each(["outputs", n, "from"], keys(o).from, port));
  if (typeof workflow.message === "string") each(["message"], workflow.message, port);
  else each(["message", "from"], keys(workflow.message).from, port);
  return changes;
}

const celTokens = /[rRbB]{0,2}(?:"""[^]*?"""|'''[^]*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\/\/[^\n]*|[A-Za-z_]\w*|\d[\w.]*|\s+|[^]/g;

/** An expression in which steps.FROM, and steps["FROM"], are steps.TO. Texts in it stay. */
function inCel(text: string, from: string, to: string): string {
  const all = text.match(celTokens) ?? [];
  const solid = all.map((t, i) => (/^\s|^\/\//.test(t) ? -1 : i)).filter((i) => i >= 0);
  solid.forEach((i, n) => {
    if (all[i] !== "steps" || (n > 0 && all[solid[n - 1]!] === ".")) return;
    const [dot, name] = [all[solid[n + 1] ?? -1], solid[n + 2] ?? -1];
    if (dot === "." && all[name] === from) all[name] = to;
    else if (dot === "[" && (all[name] === `"${from}"` || all[name] === `'${from}'`)) all[name] = all[name]!.replace(from, to);
  });
  return all.join("");
}

const sqlTokens = /'(?:[^']|'')*'|--[^\n]*|\/\*[^]*?\*\/|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|[:@$]?[A-Za-z_]\w*|\d[\w.]*|\s+|[^]/g;
const ends = /^(?:where|group|order|having|limit|window|union|except|intersect|select|on|using|values)$/i;

/** A query whose table FROM is TO, and whose tables FROM_PORT are TO_PORT. A column of the same name stays. */
function inSql(text: string, from: string, to: string, taken: string[]): string {
  const all = text.match(sqlTokens) ?? [];
  const solid = all.map((t, i) => (/^\s|^--|^\/\*/.test(t) ? -1 : i)).filter((i) => i >= 0);
  let tables = false; // whether a name here is that of a table
  solid.forEach((i, n) => {
    const t = all[i]!;
    const before = n > 0 ? all[solid[n - 1]!]! : "";
    const name = t.replace(/^["`[]|["`\]]$/g, "");
    if (/^(?:from|join)$/i.test(t)) tables = true;
    else if (ends.test(t)) tables = false;
    const inFrom = tables && /^(?:from|join|,|\()$/i.test(before);
    const qualifies = all[solid[n + 1] ?? -1] === "." && before !== ".";
    if (t.startsWith("'") || !(inFrom || qualifies)) return;
    const same = name.toLowerCase() === from.toLowerCase();
    const ofPort = name.toLowerCase().startsWith(`${from.toLowerCase()}_`) && !taken.some((x) => x.toLowerCase() === name.toLowerCase());
    if (same || ofPort) all[i] = t.replace(name, to + name.slice(from.length));
  });
  return all.join("");
}

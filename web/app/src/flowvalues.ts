// Values of a workflow as a form shows them. In the file, a text of an argument is CEL; a literal text has quotes of its own.

/** A value in the file as a text to edit, and whether it is CEL. */
export function literal(v: unknown): { text: string; cel: boolean } {
  if (v === undefined || v === null) return { text: "", cel: false };
  if (typeof v !== "string") return { text: JSON.stringify(v), cel: false };
  const quoted = /^\s*(?:'((?:[^'\\]|\\['\\])*)'|"((?:[^"\\]|\\["\\])*)")\s*$/.exec(v);
  if (quoted) return { text: (quoted[1] ?? quoted[2] ?? "").replace(/\\(.)/g, "$1"), cel: false };
  return { text: v, cel: true };
}

/** What the file has for a text of the form, by the type that the schema names. */
export function written(text: string, cel: boolean, type: string): unknown {
  const typed = type === "number" || type === "integer" || type === "boolean" || type === "array" || type === "object";
  if (typed) {
    try {
      const v: unknown = JSON.parse(text);
      if (typeof v !== "string") return v;
    } catch {
      // it is no such value: the check says so
    }
    return text;
  }
  if (cel) return text;
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}

/** A name that is not taken yet. */
export function nextId(base: string, taken: string[]): string {
  for (let i = 1; ; i++) {
    const id = i === 1 ? base : `${base}${i}`;
    if (!taken.includes(id)) return id;
  }
}

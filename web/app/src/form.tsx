// A form made from a JSON Schema.

import { useState } from "react";
import { Exact, number, parse } from "./exact";
import { Unreadable, choices, shapeOf, typeOf } from "./schema";
import type { Schema } from "./types";
import { Button, Labelled, field, visible, visibleJson } from "./ui";

interface Props {
  schema: Schema;
  value: unknown;
  onChange: (v: unknown) => void;
  errors?: Record<string, string>;
  path?: string;
  name?: string;
  required?: boolean;
  depth?: number;
  /** Fields that ask for a secret, and who gets it. */
  secrets?: string[];
  server?: string;
  /** For people who do not know JSON: no names of types, and what is not JSON is given on, to be refused. */
  plain?: boolean;
}

export function SchemaForm(p: Props) {
  const { schema, path = "", depth = 0 } = p;
  if (depth < 6 && shapeOf(schema) === "object") {
    const value = (p.value ?? {}) as Record<string, unknown>;
    const fields = Object.entries(schema.properties ?? {}).map(([k, s]) => (
      <SchemaForm key={k} schema={s} name={k} path={`${path}/${k}`} errors={p.errors} depth={depth + 1} secrets={p.secrets} server={p.server} plain={p.plain} required={schema.required?.includes(k)} value={value[k]}
        onChange={(v) => {
          const next = { ...value };
          if (v === undefined) delete next[k];
          else next[k] = v;
          p.onChange(next);
        }} />
    ));
    if (!p.name) return <div className="flex flex-col gap-3">{fields}</div>;
    return (
      <fieldset className="flex flex-col gap-3 rounded-md border border-line p-3">
        <legend className="px-1 text-sm font-medium">{visible(schema.title ?? p.name)}{p.required && <Star />}</legend>
        {fields}
      </fieldset>
    );
  }
  const label = <>{visible(schema.title ?? p.name ?? "Value")}{p.required && <Star />} {!p.plain && <span className="text-xs font-normal text-dim">{typeOf(schema)}</span>}{depth === 1 && p.name !== undefined && p.secrets?.includes(p.name) && <span className="ml-1 rounded bg-bad-ground px-1.5 py-px text-xs font-medium text-bad">a secret, for server {visible(p.server ?? "")}</span>}</>;
  return (
    <Labelled label={label} hint={schema.description && visible(schema.description)} error={p.errors?.[path]}>
      {(id) => <Input {...p} id={id} />}
    </Labelled>
  );
}

const Star = () => <span className="text-bad" title="required"> *<span className="sr-only"> required</span></span>;

function Input({ schema, value, onChange, id, required, plain }: Props & { id: string }) {
  switch (shapeOf(schema)) {
    case "choice": {
      const all = choices(schema)!;
      const at = all.findIndex((c) => JSON.stringify(c.value) === JSON.stringify(value));
      return (
        <select id={id} className={field} value={at} aria-required={required} onChange={(e) => onChange(all[Number(e.target.value)]?.value)}>
          <option value={-1}>{required ? "choose…" : "(not set)"}</option>
          {all.map((c, i) => <option key={i} value={i}>{visible(c.label)}</option>)}
        </select>
      );
    }
    case "boolean":
      return (
        <select id={id} className={field} value={value === undefined ? "" : String(value)} onChange={(e) => onChange(e.target.value === "" ? undefined : e.target.value === "true")}>
          <option value="">(not set)</option>
          <option value="true">yes</option>
          <option value="false">no</option>
        </select>
      );
    case "number":
      return <NumberInput id={id} value={value} onChange={onChange} whole={typeOf(schema) === "integer"} />;
    case "text": {
      const types: Record<string, string> = { email: "email", uri: "url", date: "date" };
      const text = typeof value === "string" ? value : "";
      const change = (t: string) => onChange(t === "" && !required ? undefined : t);
      const long = text.length > 80 || text.includes("\n") || (schema.maxLength ?? 0) > 300;
      return (
        <>
          {schema.suggestions && <datalist id={`${id}-offers`}>{schema.suggestions.map((s) => <option key={s} value={s} />)}</datalist>}
          {long ? <textarea id={id} rows={4} className={field} value={text} onChange={(e) => change(e.target.value)} />
            : <input id={id} type={types[schema.format ?? ""] ?? "text"} className={field} value={text} autoComplete="off" list={schema.suggestions && `${id}-offers`} aria-required={required} onChange={(e) => change(e.target.value)} />}
          {visible(text) !== text && <p className="mt-0.5 text-xs break-words text-warn">It has characters that are not seen: <span className="font-mono">{visible(text.slice(0, 500))}</span></p>}
        </>
      );
    }
    case "list": {
      const list = Array.isArray(value) ? value : [];
      return (
        <div className="flex flex-col gap-1.5" id={id}>
          {list.map((v, i) => (
            <div key={i} className="flex gap-1.5">
              <Input schema={schema.items!} id={`${id}-${i}`} value={v} required onChange={(x) => onChange(list.map((o, n) => (n === i ? x : o)))} />
              <Button tone="quiet" aria-label={`remove entry ${i + 1}`} onClick={() => onChange(list.length === 1 && !required ? undefined : list.filter((_, n) => n !== i))}>✕</Button>
            </div>
          ))}
          <Button className="self-start" onClick={() => onChange([...list, shapeOf(schema.items!) === "number" ? 0 : ""])}>Add an entry</Button>
        </div>
      );
    }
  }
  return <JsonInput id={id} value={value} onChange={onChange} given={plain} />;
}

function NumberInput({ id, value, onChange, whole }: { id: string; value: unknown; onChange: (v: unknown) => void; whole: boolean }) {
  const said = (v: unknown) => (v === undefined ? "" : v instanceof Exact ? v.source : String(v));
  const [text, setText] = useState(said(value));
  const own = text.trim() === "" ? undefined : number(text.trim());
  const shown = Object.is(own, value) || (own instanceof Exact && value instanceof Exact && own.source === value.source) ? text : said(value);
  return (
    <input id={id} inputMode={whole ? "numeric" : "decimal"} className={field} autoComplete="off" value={shown}
      onChange={(e) => {
        setText(e.target.value);
        onChange(e.target.value.trim() === "" ? undefined : number(e.target.value.trim()));
      }} />
  );
}

/** JSON as text; what cannot be read is said and not taken, or given on as Unreadable where the form says what is wrong. */
export function JsonInput({ id, value, onChange, rows = 3, given }: { id?: string; value: unknown; onChange: (v: unknown) => void; rows?: number; given?: boolean }) {
  const [text, setText] = useState(value === undefined ? "" : value instanceof Unreadable ? value.text : visibleJson(JSON.stringify(value, null, 2)));
  const [error, setError] = useState("");
  return (
    <>
      <textarea id={id} rows={rows} spellCheck={false} className={`${field} font-mono text-xs`} value={text} placeholder="JSON"
        onChange={(e) => {
          setText(e.target.value);
          if (e.target.value.trim() === "") {
            setError("");
            onChange(undefined);
            return;
          }
          try {
            onChange(parse(e.target.value));
            setError("");
          } catch (x) {
            if (given) onChange(new Unreadable(e.target.value));
            else setError(`not JSON: ${(x as Error).message}`);
          }
        }} />
      {error && <p role="alert" className="text-xs text-bad">{visible(error)}</p>}
    </>
  );
}

// The form of a workflow: its parameters, tables, steps and message. Each field changes one value of the text.

import { type ReactNode, useEffect, useState } from "react";
import { useAgents, useTools } from "./data";
import { renameStep, wrongName } from "./flowrename";
import { literal, nextId, written } from "./flowvalues";
import { JsonInput } from "./form";
import type { DraftChange, DraftMistake, Schema, Tool } from "./types";
import { Button, Labelled, cx, field, visible } from "./ui";

type Path = (string | number)[];
type Keys = Record<string, unknown>;
type Change = (list: DraftChange[]) => void;
interface Part { at: Path; value: Keys; change: Change; mistakes: DraftMistake[] }

const keys = (v: unknown): Keys => (typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Keys) : {});
const list = (v: unknown): unknown[] => (Array.isArray(v) ? v : []);
const text = (v: unknown) => (v === undefined || v === null ? "" : typeof v === "string" ? v : JSON.stringify(v));
const dotted = (p: Path) => p.reduce<string>((s, k) => (typeof k === "number" ? `${s}[${k}]` : s ? `${s}.${k}` : k), "");
const wrong = (mistakes: DraftMistake[], p: Path) => mistakes.find((m) => m.path === dotted(p))?.message;

/** A text field with what is typed, which an answer of the server does not replace while one types. */
function Text({ value, onChange, id, rows, mono, label, placeholder, listed }: { value: string; onChange: (v: string) => void; id?: string; rows?: number; mono?: boolean; label?: string; placeholder?: string; listed?: string }) {
  const [typed, setTyped] = useState(value);
  const [busy, setBusy] = useState(false);
  useEffect(() => { if (!busy) setTyped(value); }, [value, busy]);
  const all = {
    id, placeholder, "aria-label": label, value: typed, autoComplete: "off", spellCheck: false, className: cx(field, mono && "font-mono text-xs"),
    onFocus: () => setBusy(true), onBlur: () => setBusy(false),
    onChange: (e: { target: { value: string } }) => { setTyped(e.target.value); onChange(e.target.value); },
  };
  return rows ? <textarea rows={rows} {...all} /> : <input list={listed} {...all} />;
}

function Field({ part: p, name, label, hint, rows, mono, number }: { part: Part; name: Path; label: string; hint?: string; rows?: number; mono?: boolean; number?: boolean }) {
  const at = [...p.at, ...name];
  const value = name.reduce<unknown>((v, k) => (Array.isArray(v) ? v[k as number] : keys(v)[k]), p.value);
  return <Labelled label={label} hint={hint} error={wrong(p.mistakes, at)}>{(id) => <Text id={id} rows={rows} mono={mono} value={text(value)} onChange={(v) => p.change([{ path: at, value: v === "" ? null : number && /^\d+$/.test(v) ? Number(v) : v }])} />}</Labelled>;
}

function Choice({ part: p, name, label, options, none }: { part: Part; name: string; label: string; options: string[]; none?: string }) {
  const at = [...p.at, name];
  const now = text(p.value[name]);
  return (
    <Labelled label={label} error={wrong(p.mistakes, at)}>
      {(id) => (
        <select id={id} className={field} value={now} onChange={(e) => p.change([{ path: at, value: e.target.value || null }])}>
          {none !== undefined || !now ? <option value="">{none ?? "choose…"}</option> : null}
          {[...new Set([...options, now])].filter(Boolean).map((o) => <option key={o} value={o}>{visible(o)}</option>)}
        </select>
      )}
    </Labelled>
  );
}

export function FlowForm({ value, change, step, onStep, mistakes }: { value: Keys; change: Change; step?: number; onStep: (i?: number) => void; mistakes: DraftMistake[] }) {
  const part: Part = { at: [], value, change, mistakes };
  const steps = list(value.steps).map(keys);
  const inputs = list(value.inputs).map(keys);
  const tables = [...inputs.map((i) => text(i.name)), ...steps.filter((s) => s.sql !== undefined || s.table !== undefined).map((s) => text(s.id))].filter(Boolean);
  const from = typeof value.message === "object" && value.message !== null ? ["message", "from"] : ["message"];
  return (
    <div className="flex flex-col gap-4 p-3">
      <Field part={part} name={["description"]} label="Description" hint="For people and models: what it does." rows={2} />
      <Group title="Steps" add={<AddStep steps={steps} change={change} onStep={onStep} />}>
        {steps.map((s, i) => <Step key={i} part={{ at: ["steps", i], value: s, change, mistakes }} open={step === i} others={steps.map((o) => text(o.id)).filter((id) => id && id !== s.id)} taken={inputs.map((n) => text(n.name))} tables={tables} rename={(to) => change(renameStep(value, i, to))} onOpen={() => onStep(step === i ? undefined : i)} remove={() => { onStep(undefined); change([{ path: ["steps", i], value: null }]); }} />)}
      </Group>
      <Parameters part={part} />
      <Ports part={part} name="inputs" title="Tables that it takes" one="input" />
      <Ports part={part} name="outputs" title="Tables that come out" one="output" from={tables} />
      <Labelled label="Message" hint="The step whose text a caller gets." error={wrong(mistakes, ["message"]) ?? wrong(mistakes, ["message", "from"])}>
        {(id) => (
          <select id={id} className={field} value={text(from.reduce<unknown>((v, k) => keys(v)[k], value))} onChange={(e) => change([{ path: e.target.value ? from : ["message"], value: e.target.value || null }])}>
            <option value="">only that it has run</option>
            {steps.map((s) => text(s.id)).filter(Boolean).map((s) => <option key={s}>{s}</option>)}
          </select>
        )}
      </Labelled>
      <details>
        <summary className="cursor-pointer text-sm text-dim">Limits and data</summary>
        <div className="mt-2 grid gap-3 sm:grid-cols-3">
          <Field part={part} name={["timeout"]} label="Timeout" hint="of a whole run, such as 10m" />
          <Field part={part} name={["parallel"]} label="Steps at a time" number />
          <Field part={part} name={["data"]} label="Data" hint="a folder beside the file" />
        </div>
      </details>
    </div>
  );
}

function Group({ title, add, children }: { title: string; add: ReactNode; children: ReactNode }) {
  return (
    <section aria-label={title} className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-2"><h3 className="font-medium">{title}</h3><div className="ml-auto">{add}</div></div>
      {children}
    </section>
  );
}

const kinds: Record<string, { about: string; begin: Keys }> = {
  tool: { about: "calls a tool", begin: { tool: "" } },
  sql: { about: "one SELECT over tables", begin: { sql: "SELECT 1 AS one" } },
  template: { about: "a text with values in it", begin: { template: "" } },
  agent: { about: "asks an agent", begin: { agent: "default", message: "" } },
  http: { about: "sends a request", begin: { http: { url: "https://example.com/" } } },
  table: { about: "makes a table", begin: { table: { rows: [{ name: "first" }] } } },
};
const kindOf = (s: Keys) => Object.keys(kinds).find((k) => s[k] !== undefined) ?? "";

function AddStep({ steps, change, onStep }: { steps: Keys[]; change: Change; onStep: (i: number) => void }) {
  return (
    <select aria-label="Add a step" className={`${field} w-auto!`} value="" onChange={(e) => {
      const kind = e.target.value;
      change([{ path: ["steps", steps.length], value: { id: nextId(kind, steps.map((s) => text(s.id))), ...kinds[kind]!.begin } }]);
      onStep(steps.length);
    }}>
      <option value="">Add a step…</option>
      {Object.entries(kinds).map(([k, { about }]) => <option key={k} value={k}>{k}: {about}</option>)}
    </select>
  );
}

/** The name of a step. It is written when it is complete, since everything that refers to the step changes with it. */
function StepName({ part: p, hint, others, rename }: { part: Part; hint: string; others: string[]; rename: (to: string) => void }) {
  const now = text(p.value.id);
  const [typed, setTyped] = useState(now);
  const [seen, setSeen] = useState(now);
  if (now !== seen) { // changed elsewhere
    setSeen(now);
    setTyped(now);
  }
  const bad = typed === now ? wrong(p.mistakes, [...p.at, "id"]) : wrongName(typed, others);
  const done = () => { if (typed !== now && !wrongName(typed, others)) rename(typed); };
  return (
    <Labelled label="Name" hint={hint} error={bad}>
      {(id) => <input id={id} className={cx(field, "font-mono text-xs")} autoComplete="off" spellCheck={false} value={typed} onChange={(e) => setTyped(e.target.value)} onBlur={done} onKeyDown={(e) => { if (e.key === "Enter") done(); }} />}
    </Labelled>
  );
}

function Step({ part: p, open, others, taken, tables, rename, onOpen, remove }: { part: Part; open: boolean; others: string[]; taken: string[]; tables: string[]; rename: (to: string) => void; onOpen: () => void; remove: () => void }) {
  const kind = kindOf(p.value);
  const bad = p.mistakes.filter((m) => m.path === dotted(p.at) || m.path?.startsWith(`${dotted(p.at)}.`)).length;
  const id = text(p.value.id) || `step ${Number(p.at[1]) + 1}`;
  return (
    <div role="group" aria-label={`Step ${visible(id)}`} className={cx("rounded-md border", open ? "border-accent" : "border-line")}>
      <div className="flex items-center gap-2 px-2 py-1">
        <button type="button" aria-expanded={open} className="flex min-w-0 flex-1 items-center gap-2 text-left" onClick={onOpen}>
          <span aria-hidden className="text-dim">{open ? "▾" : "▸"}</span><span className="font-mono text-xs font-medium">{visible(id)}</span><span className="truncate text-xs text-dim">{kind} {visible(text(kind === "table" || kind === "http" ? "" : p.value[kind]).slice(0, 60))}</span>
          {bad > 0 && <span className="text-xs whitespace-nowrap text-bad">{bad} {bad === 1 ? "mistake" : "mistakes"}</span>}
        </button>
        <Button tone="quiet" aria-label={`Remove step ${id}`} onClick={remove}>✕</Button>
      </div>
      {open && (
        <div className="flex flex-col gap-3 border-t border-line p-2">
          <StepName part={p} others={[...others, ...taken]} rename={rename} hint={`Its result is steps.${visible(id)}. What refers to it changes with it.`} />
          {kind === "tool" && <ToolStep part={p} tables={tables} />}
          {kind === "sql" && <><Field part={p} name={["sql"]} label="Query" rows={4} mono hint={tables.length ? `Tables: ${visible(tables.join(", "))}` : "A table is an input, or a step that makes one."} /><Pairs part={p} name="params" title="Parameters of the query" /></>}
          {kind === "template" && <Field part={p} name={["template"]} label="Text" rows={4} hint="CEL between {{ and }}, such as {{ params.name }} or {{ steps.NAME.text }}" />}
          {kind === "agent" && <AgentStep part={p} />}
          {kind === "http" && <HttpStep part={p} />}
          {kind === "table" && <TableStep part={p} />}
          <Common part={p} kind={kind} others={others} />
        </div>
      )}
    </div>
  );
}

function ToolStep({ part: p, tables }: { part: Part; tables: string[] }) {
  const all = useTools().data?.items ?? [];
  const server = text(p.value.server);
  const tool = all.find((t) => (server ? t.server === server && t.remote_name === p.value.tool : t.name === p.value.tool));
  const pick = (t?: Tool) => t && p.change([{ path: [...p.at, "tool"], value: server ? t.remote_name : t.name }, ...(server ? [{ path: [...p.at, "server"], value: t.server }] : [])]);
  const args = keys(p.value.args);
  const schema = tool?.input_schema;
  const names = [...new Set([...(schema?.required ?? []), ...Object.keys(schema?.properties ?? {}), ...Object.keys(args)])];
  const set = (name: string, v: unknown) => p.change([{ path: [...p.at, "args", name], value: v === undefined ? null : v }]);
  return (
    <>
      <Labelled label="Tool" hint={tool?.description && visible(tool.description.slice(0, 200))} error={wrong(p.mistakes, [...p.at, "tool"])}>
        {(id) => (
          <select id={id} className={field} value={tool ? `${tool.server}.${tool.remote_name}` : ""} onChange={(e) => pick(all.find((t) => `${t.server}.${t.remote_name}` === e.target.value))}>
            <option value="">{visible(text(p.value.tool) || "choose…")}</option>
            {all.map((t) => <option key={`${t.server}.${t.remote_name}`} value={`${t.server}.${t.remote_name}`}>{visible(`${t.name} (${t.server})`)}</option>)}
          </select>
        )}
      </Labelled>
      {names.length > 0 && <p className="text-xs text-dim">An argument is a value, or CEL over params, inputs and steps.</p>}
      {names.map((n) => <Arg key={n} name={n} schema={schema?.properties?.[n]} required={schema?.required?.includes(n)} value={args[n]} onChange={(v) => set(n, v)} error={wrong(p.mistakes, [...p.at, "args", n])} />)}
      {wrong(p.mistakes, [...p.at, "args"]) && <p role="alert" className="text-xs text-bad">{visible(wrong(p.mistakes, [...p.at, "args"])!)}</p>}
      {tables.length > 0 && p.value.inputs !== undefined && <Pairs part={p} name="inputs" title="Tables of the workflow that it calls" />}
    </>
  );
}

/** An argument: a value by its schema, or an expression. */
function Arg({ name, schema, required, value, onChange, error }: { name: string; schema?: Schema; required?: boolean; value: unknown; onChange: (v: unknown) => void; error?: string }) {
  const of = literal(value);
  const [cel, setCel] = useState(of.cel);
  useEffect(() => { if (value !== undefined) setCel(of.cel); }, [value, of.cel]);
  const type = typeof schema?.type === "string" ? schema.type : "";
  return (
    <Labelled label={<>{visible(name)}{required && <span className="text-bad" title="required"> *</span>} <span className="text-xs font-normal text-dim">{type}</span></>} hint={schema?.description && visible(schema.description)} error={error}>
      {(id) => (
        <div className="flex gap-2">
          <select aria-label={`${name} is`} className={`${field} w-28!`} value={cel ? "cel" : "value"} onChange={(e) => { setCel(e.target.value === "cel"); if (value !== undefined) onChange(written(of.text, e.target.value === "cel", type)); }}><option value="value">value</option><option value="cel">CEL</option></select>
          {schema?.enum && !cel
            ? <select id={id} className={field} value={of.text} onChange={(e) => onChange(e.target.value === "" ? undefined : written(e.target.value, false, type))}><option value="">(not set)</option>{schema.enum.map((v) => <option key={text(v)}>{text(v)}</option>)}</select>
            : <Text id={id} mono={cel} value={of.text} placeholder={cel ? "params.city" : ""} onChange={(v) => onChange(v === "" ? undefined : written(v, cel, type))} />}
        </div>
      )}
    </Labelled>
  );
}

function AgentStep({ part: p }: { part: Part }) {
  const agents = useAgents().data?.items.map((a) => a.name) ?? [];
  return <><Choice part={p} name="agent" label="Agent" options={agents.length ? agents : ["default"]} /><Field part={p} name={["message"]} label="Message" rows={4} hint="CEL between {{ and }}" /></>;
}

function HttpStep({ part: p }: { part: Part }) {
  const http: Part = { ...p, at: [...p.at, "http"], value: keys(p.value.http) };
  return (
    <>
      <Choice part={http} name="method" label="Method" options={["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]} none="GET" />
      <Field part={http} name={["url"]} label="URL" mono hint="Scheme and host are written out; {{ args.NAME }} may follow." />
      <Pairs part={http} name="headers" title="Headers" />
      <Field part={http} name={["body"]} label="Body" rows={3} mono />
      <Pairs part={p} name="args" title="Arguments of the request" />
    </>
  );
}

function TableStep({ part: p }: { part: Part }) {
  const table: Part = { ...p, at: [...p.at, "table"], value: keys(p.value.table) };
  const source = ["csv", "arrow"].find((k) => table.value[k] !== undefined) ?? "rows";
  const rows = table.value.rows;
  return (
    <>
      <Labelled label="From">{(id) => <select id={id} className={field} value={source} onChange={(e) => p.change([{ path: table.at, value: e.target.value === "rows" ? { rows: [{ name: "first" }] } : { [e.target.value]: `table.${e.target.value}` } }])}><option value="rows">rows in the file</option><option value="csv">a CSV file beside it</option><option value="arrow">an Arrow file beside it</option></select>}</Labelled>
      {source === "rows"
        ? typeof rows === "string" ? <Field part={table} name={["rows"]} label="Rows" mono hint="CEL that returns a list" /> : <Labelled label="Rows" hint='A list of objects, such as [{"city": "London", "amount": 3}]'>{(id) => <JsonInput id={id} rows={4} value={rows} onChange={(v) => v !== undefined && table.change([{ path: [...table.at, "rows"], value: v }])} />}</Labelled>
        : <Field part={table} name={[source]} label="File" mono />}
    </>
  );
}

function Common({ part: p, kind, others }: { part: Part; kind: string; others: string[] }) {
  const after = list(p.value.after).map(text);
  const each = typeof p.value.foreach === "object" && p.value.foreach !== null ? ["foreach", "items"] : ["foreach"];
  const retry = typeof p.value.retry === "object" && p.value.retry !== null ? ["retry", "attempts"] : ["retry"];
  return (
    <details>
      <summary className="cursor-pointer text-sm text-dim">When, how often, and what if it fails</summary>
      <div className="mt-2 grid gap-3 sm:grid-cols-2">
        <Field part={p} name={["when"]} label="When" mono hint="CEL; if false, it is skipped" />
        {kind !== "sql" && kind !== "table" && <Field part={p} name={each} label="For each" mono hint="CEL of a list; the step runs for each item" />}
        {["tool", "agent", "http"].includes(kind) && <Field part={p} name={retry} label="Attempts" number />}
        {kind !== "template" && <Field part={p} name={["timeout"]} label="Timeout" />}
        {typeof p.value.on_error !== "object" && <Choice part={p} name="on_error" label="If it fails" options={["fail", "continue"]} none="the workflow fails" />}
        {others.length > 0 && (
          <fieldset className="sm:col-span-2"><legend className="text-sm font-medium">After these steps, though their results are not used</legend>
            <div className="flex flex-wrap gap-3">{others.map((o) => <label key={o} className="flex items-center gap-1 text-sm"><input type="checkbox" checked={after.includes(o)} onChange={(e) => p.change([{ path: [...p.at, "after"], value: e.target.checked ? [...after, o] : after.length === 1 ? null : after.filter((a) => a !== o) }])} />{visible(o)}</label>)}</div>
          </fieldset>
        )}
      </div>
    </details>
  );
}

/** A map from names to texts or CEL. */
function Pairs({ part: p, name, title }: { part: Part; name: string; title: string }) {
  const map = keys(p.value[name]);
  const [added, setAdded] = useState("");
  const at = (k: string) => [...p.at, name, k];
  return (
    <fieldset className="flex flex-col gap-1.5">
      <legend className="text-sm font-medium">{title}</legend>
      {Object.entries(map).map(([k, v]) => (
        <div key={k} className="flex items-center gap-2"><span className="w-28 shrink-0 truncate font-mono text-xs" title={visible(k)}>{visible(k)}</span><Text mono label={`${k} of ${title}`} value={text(v)} onChange={(t) => p.change([{ path: at(k), value: t }])} /><Button tone="quiet" aria-label={`Remove ${k}`} onClick={() => p.change([{ path: at(k), value: null }])}>✕</Button></div>
      ))}
      <div className="flex gap-2"><input aria-label={`New name in ${title}`} placeholder="name" className={`${field} w-40! font-mono text-xs`} value={added} onChange={(e) => setAdded(e.target.value.trim())} /><Button disabled={!added || added in map} onClick={() => { p.change([{ path: at(added), value: name === "headers" ? "text" : "params" }]); setAdded(""); }}>Add</Button></div>
    </fieldset>
  );
}

function Parameters({ part: p }: { part: Part }) {
  const map = keys(p.value.parameters);
  const [added, setAdded] = useState("");
  return (
    <Group title="Parameters" add={<span className="flex gap-2"><input aria-label="Name of a new parameter" placeholder="name" className={`${field} w-32! font-mono text-xs`} value={added} onChange={(e) => setAdded(e.target.value.trim())} /><Button disabled={!added || added in map} onClick={() => { p.change([{ path: ["parameters", added], value: { type: "string", description: added } }]); setAdded(""); }}>Add a parameter</Button></span>}>
      {Object.entries(map).map(([name, v]) => {
        const one: Part = { ...p, at: ["parameters", name], value: keys(v) };
        const fallback = one.value.default;
        return (
          <div key={name} role="group" aria-label={`Parameter ${visible(name)}`} className="flex flex-wrap items-start gap-2 rounded-md border border-line p-2">
            <span className="w-28 truncate pt-1 font-mono text-xs font-medium" title={visible(name)}>{visible(name)}</span>
            <select aria-label={`Type of ${name}`} className={`${field} w-28!`} value={text(one.value.type)} onChange={(e) => p.change([{ path: [...one.at, "type"], value: e.target.value }])}>{[...new Set(["string", "number", "integer", "boolean", "array", "object", text(one.value.type)])].filter(Boolean).map((t) => <option key={t}>{t}</option>)}</select>
            <span className="w-32"><Text label={`Default of ${name}`} placeholder="required" value={text(fallback)} onChange={(t) => p.change([{ path: [...one.at, "default"], value: t === "" ? null : written(t, true, text(one.value.type)) }])} /></span>
            <span className="min-w-40 flex-1"><Text label={`Description of ${name}`} placeholder="description" value={text(one.value.description)} onChange={(t) => p.change([{ path: [...one.at, "description"], value: t }])} /></span>
            <Button tone="quiet" aria-label={`Remove parameter ${name}`} onClick={() => p.change([{ path: one.at, value: null }])}>✕</Button>
          </div>
        );
      })}
    </Group>
  );
}

function Ports({ part: p, name, title, one, from }: { part: Part; name: string; title: string; one: string; from?: string[] }) {
  const ports = list(p.value[name]).map(keys);
  const columns = (t: string) => Object.fromEntries(t.split(",").map((c) => c.split(":").map((s) => s.trim())).filter(([k]) => k).map(([k, v]) => [k, v || "any"]));
  return (
    <Group title={title} add={<Button disabled={from?.length === 0} title={from?.length === 0 ? "a step that makes a table comes first" : undefined} onClick={() => p.change([{ path: [name, ports.length], value: { name: nextId(one, ports.map((o) => text(o.name))), description: "", ...(from ? { from: from[from.length - 1] } : {}) } }])}>Add an {one}</Button>}>
      {ports.map((v, i) => {
        const port: Part = { ...p, at: [name, i], value: v };
        return (
          <div key={i} role="group" aria-label={`${one} ${visible(text(v.name))}`} className="grid gap-2 rounded-md border border-line p-2 sm:grid-cols-2">
            <Field part={port} name={["name"]} label="Name" mono />
            {from ? <Choice part={port} name="from" label="From" options={from} /> : <Labelled label="Columns" hint="such as city: string, amount: number">{(id) => <Text id={id} mono value={Object.entries(keys(v.columns)).map(([k, t]) => `${k}: ${text(t)}`).join(", ")} onChange={(t) => p.change([{ path: [name, i, "columns"], value: t.trim() ? columns(t) : null }])} />}</Labelled>}
            <div className="flex items-end gap-2 sm:col-span-2"><div className="flex-1"><Field part={port} name={["description"]} label="Description" /></div><Button tone="quiet" aria-label={`Remove ${one} ${text(v.name)}`} onClick={() => p.change([{ path: port.at, value: null }])}>✕</Button></div>
          </div>
        );
      })}
    </Group>
  );
}

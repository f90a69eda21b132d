// Models, agents, budgets, limits, rules and schedules of the project's file, made and changed in forms. The file keeps its
// comments and its order; a change is shown before it is written.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, request } from "./api";
import { invalidate, useModels } from "./data";
import { DiffView } from "./diff";
import { changedKeys, formSchema } from "./entryform";
import { SchemaForm } from "./form";
import { OnCommandLine, useDecided, write } from "./proposals";
import { problems } from "./schema";
import type { ConfigEntries, ConfigEntry, ConfigSection, Edited, Proposal, Schema } from "./types";
import { Button, Dialog, ErrorBox, Labelled, Panel, field, visible } from "./ui";

const url = "/api/v1/config/entries";

/** Reads again what an entry of the file is seen in. The list is read before a dialog closes: the next one needs its digest. */
async function reread(): Promise<void> {
  void invalidate(["models", "agents", "tools"]);
  await invalidate(["config"]);
}

const sections: Record<string, { title: string; one: string; hint: string; first: string[] }> = {
  models: { title: "Models", one: "model", hint: "The first one answers where nothing else is said.", first: ["provider", "model", "base_url", "temperature", "max_tokens", "fallback"] },
  agents: { title: "Agents", one: "agent", hint: "An agent has a model, instructions and tools.", first: ["description", "model", "instructions", "tools", "mode", "limits"] },
  budgets: { title: "Budgets", one: "budget", hint: "What a session, a day or a caller may use.", first: [] },
  limits: { title: "Limits of a run", one: "limit", hint: "They hold for all agents that set none of their own.", first: ["max_turns", "tool_calls", "run_timeout", "cost", "tokens", "on_limit"] },
  rules: { title: "Rules with conditions", one: "conditional rule", hint: "The first rule whose condition is true decides, before all others. A new one is the last; the order is the file's.", first: ["when", "verdict", "reason"] },
  policy: { title: "Rules for all tools", one: "rule", hint: "They hold where a tool has no rule of its own. Rules of one tool are on its page.", first: ["approval", "timeout", "max_calls", "result_bytes"] },
  schedules: { title: "Schedules", one: "schedule", hint: "Questions and workflows at set times.", first: ["cron", "timezone", "agent", "question", "workflow"] },
};

export function Entries() {
  const list = useQuery({ queryKey: ["config", "entries"], queryFn: () => get<ConfigEntries>(url), retry: false });
  if (list.isError) return <Panel title="Project"><div className="p-3"><ErrorBox error={list.error} /></div></Panel>;
  return <>{list.data?.sections.map((s) => <Section key={s.name} section={s} digest={list.data.digest} />)}</>;
}

function Section({ section: s, digest }: { section: ConfigSection; digest: string }) {
  const [open, setOpen] = useState<ConfigEntry | "new">();
  const [removed, setRemoved] = useState("");
  const words = sections[s.name] ?? { title: s.name, one: "entry", hint: "", first: [] };
  const left = s.names?.filter((n) => !s.entries.some((e) => e.name === n));
  return (
    <Panel title={words.title} actions={left?.length !== 0 && <Button onClick={() => setOpen("new")}>{adds(s, words.one)}</Button>}>
      <p className="px-3 pt-2 text-xs text-dim">{words.hint}</p>
      {s.entries.length === 0 && <p className="px-3 py-2 text-sm text-dim">None in the project's file.</p>}
      <ul className="divide-y divide-line" aria-label={words.title}>
        {s.entries.map((e) => (
          <li key={e.name} className="flex flex-wrap items-center gap-2 px-3 py-1.5 text-sm">
            {s.kind !== "single" && <span className="font-mono text-xs">{visible(called(s, e.name))}</span>}
            <span className="min-w-0 flex-1 truncate text-xs text-dim" title={visible(summary(e.keys))}>{visible(summary(e.keys))}</span>
            <Button aria-label={`Edit ${words.one} ${called(s, e.name)}`} onClick={() => setOpen(e)}>Edit</Button>
            <Button tone="danger" aria-label={`Remove ${words.one} ${called(s, e.name)}`} onClick={() => setRemoved(e.name)}>Remove</Button>
          </li>
        ))}
      </ul>
      {open && <Edit section={s} names={left} one={words.one} first={words.first} entry={open === "new" ? undefined : open} digest={digest} onClose={() => setOpen(undefined)} />}
      {removed && <Remove at={`${url}/${s.name}/${encodeURIComponent(removed)}?digest=${encodeURIComponent(digest)}`} name={s.kind === "single" ? `the ${words.one}s` : `${words.one} ${called(s, removed)}`} onClose={() => setRemoved("")} />}
    </Panel>
  );
}

/** What a person calls an entry: those of a list are counted from 1. */
const called = (s: ConfigSection, name: string) => (s.kind === "list" ? String(Number(name) + 1) : name);

const adds = (s: ConfigSection, one: string) => (s.kind === "single" ? `Set ${one}s` : `Add ${/^[aeiou]/.test(one) ? "an" : "a"} ${one}`);

/** The first values of an entry, in one line. */
function summary(keys: Record<string, unknown>): string {
  return Object.entries(keys).filter(([, v]) => typeof v !== "object" || v === null).slice(0, 4).map(([k, v]) => `${k}: ${String(v).slice(0, 60)}`).join(", ");
}

function Edit({ section: s, entry, names, one, first, digest, onClose }: { section: ConfigSection; entry?: ConfigEntry; names?: string[]; one: string; first: string[]; digest: string; onClose: () => void }) {
  const models = useModels().data?.items.map((m) => m.name);
  const schema = offering(formSchema(s.schema as Schema, entry?.keys), s.name === "agents" ? models : undefined);
  const [written, setName] = useState(entry?.name ?? names?.[0] ?? "");
  const name = !entry && s.kind === "list" ? String(s.entries.length) : written.trim(); // a new one is the last, also if the list grew meanwhile
  const [value, setValue] = useState<Record<string, unknown>>((entry?.keys ?? {}) as Record<string, unknown>);
  const [plan, setPlan] = useState<Edited>();
  const [waits, setWaits] = useState<Proposal>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const wrong = problems(schema, value);
  useDecided(waits, () => void reread().then(onClose));
  const change = (v: unknown) => { setPlan(undefined); setValue(v as Record<string, unknown>); };
  const part = (has: (key: string) => boolean): Schema => ({ ...schema, properties: Object.fromEntries(Object.entries(schema.properties ?? {}).filter(([k]) => has(k))) });
  const isFirst = (k: string) => first.length === 0 || first.includes(k) || entry?.keys[k] !== undefined;
  const main = part(isFirst);
  main.properties = Object.fromEntries(Object.entries(main.properties ?? {}).sort(([a], [b]) => rank(first, a) - rank(first, b)));
  const send = async () => {
    setBusy(true);
    setError(undefined);
    const at = `${url}/${s.name}/${encodeURIComponent(name)}`;
    const body = { keys: changedKeys(schema, (entry?.keys ?? {}) as Record<string, unknown>, value), digest, ...(entry ? {} : { add: true }) };
    try {
      if (!name) throw new Error(`give the ${one} a name`);
      if (!plan) {
        setPlan(await request<Edited>("PUT", at, { ...body, dry_run: true }));
        return;
      }
      const p = await write("PUT", at, body, plan);
      await reread();
      if (p) setWaits(p);
      else onClose();
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog wide title={entry && s.kind !== "single" ? `${called(s, entry.name)}: ${one}` : adds(s, one)} onClose={onClose}>
      <form className="flex flex-col gap-3" noValidate onSubmit={(e) => { e.preventDefault(); void send(); }}>
        {!entry && !s.kind && (names
          ? <Labelled label="Name">{(id) => <select id={id} className={field} value={written} onChange={(e) => { setPlan(undefined); setName(e.target.value); }}>{names.map((n) => <option key={n}>{n}</option>)}</select>}</Labelled>
          : <Labelled label="Name">{(id) => <input id={id} autoFocus className={field} value={written} onChange={(e) => { setPlan(undefined); setName(e.target.value); }} />}</Labelled>)}
        <SchemaForm schema={main} value={value} errors={wrong} onChange={change} plain />
        {Object.keys(schema.properties ?? {}).some((k) => !isFirst(k)) && (
          <details>
            <summary className="cursor-pointer text-sm text-dim">More settings</summary>
            <div className="mt-3"><SchemaForm schema={part((k) => !isFirst(k))} value={value} errors={wrong} onChange={change} plain /></div>
          </details>
        )}
        {s.hidden && <p className="text-xs text-dim">{s.hidden.join(" and ")} can hold secrets: they are edited in the file only. A key that tenon keeps, or that the provider's variable has, needs no entry.</p>}
        {error !== undefined && <ErrorBox error={error} />}
        {plan && <DiffView edited={plan} />}
        {plan && !waits && <p className="text-xs text-dim">What starts a program, sends data or opens tenon waits until you accept it on the command line. All else is written at once.</p>}
        {waits && <OnCommandLine p={waits} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Close</Button>
          <Button type="submit" tone="primary" disabled={busy || !!waits || Object.keys(wrong).length > 0}>{plan ? "Propose it" : "Show what changes"}</Button>
        </div>
      </form>
    </Dialog>
  );
}

/** The schema of an agent, with the models that there are as offers for its key model. */
function offering(schema: Schema, models?: string[]): Schema {
  const model = schema.properties?.model;
  return models && model ? { ...schema, properties: { ...schema.properties, model: { ...model, suggestions: models } } } : schema;
}

const rank = (first: string[], key: string) => (first.includes(key) ? first.indexOf(key) : first.length);

function Remove({ at, name, onClose }: { at: string; name: string; onClose: () => void }) {
  const plan = useQuery({ queryKey: ["config", "removal", at], queryFn: () => request<Edited>("DELETE", `${at}&dry_run=true`), retry: false, staleTime: 0 });
  const [error, setError] = useState<unknown>();
  const [waits, setWaits] = useState<Proposal>();
  useDecided(waits, () => void reread().then(onClose));
  const remove = async (seen: Edited) => {
    try {
      const p = await write("DELETE", at, undefined, seen);
      await reread();
      if (p) setWaits(p);
      else onClose();
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title={`Remove ${name}?`} onClose={onClose}>
      {plan.isError && <ErrorBox error={plan.error} />}
      {plan.data && <DiffView edited={plan.data} />}
      {error !== undefined && <ErrorBox error={error} />}
      {waits && <OnCommandLine p={waits} />}
      <div className="mt-3 flex justify-end gap-2"><Button onClick={onClose}>Keep</Button><Button tone="danger" disabled={!plan.data || !!waits} onClick={() => plan.data && void remove(plan.data)}>Remove</Button></div>
    </Dialog>
  );
}

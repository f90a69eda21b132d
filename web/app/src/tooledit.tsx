// The arguments and rules that the project's file says about a tool. What would be
// written is shown first, and everything else in the file stays as it is.

import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Failure, get, request } from "./api";
import { DiffView } from "./diff";
import { invalidate, useMe } from "./data";
import { OnCommandLine, write } from "./proposals";
import { JsonInput } from "./form";
import type { Edited, Proposal, ToolDetail, ToolEntry } from "./types";
import { Button, Dialog, ErrorBox, Panel, field, visible } from "./ui";

type Argument = { name: string; type?: string; description?: string; required?: boolean; default?: unknown; enum?: unknown[]; index?: number };
export type Entry = Omit<ToolEntry, "arguments" | "server_arguments" | "keys" | "policy"> & { arguments: Argument[]; server_arguments: Argument[]; keys: Record<string, unknown>; policy: Record<string, string> };

const types = ["string", "number", "integer", "boolean", "object", "array", "null"];
const rules: { key: string; label: string; hint: string; values?: string[] }[] = [
  { key: "approval", label: "Approval", hint: "when a call asks first", values: ["never", "always", "destructive"] },
  { key: "timeout", label: "Timeout", hint: "such as 30s" },
  { key: "max_calls", label: "Calls per run", hint: "0: no limit" },
  { key: "concurrency", label: "Calls at a time", hint: "0: no limit" },
  { key: "result_bytes", label: "Largest result", hint: "such as 64KiB" },
  { key: "on_large_result", label: "A larger one", hint: "what the model gets of it", values: ["truncate", "artifact", "error"] },
  { key: "retry", label: "Retry", hint: "whether a failed call may be sent again", values: ["auto", "never", "always"] },
];

type Place = Pick<ToolDetail, "server" | "remote_name" | "name">;
const url = (t: Place) => `/api/v1/config/tools/${encodeURIComponent(`${t.server}.${t.remote_name}`)}`;
const asks: [string, boolean | undefined][] = [["as the server says", undefined], ["yes", true], ["no", false]];
const required = (a: Argument) => asks.find(([, v]) => v === a.required)?.[0] ?? "as the server says";

export function ToolEditor({ tool }: { tool: ToolDetail }) {
  const owner = useMe().data?.owner;
  const [open, setOpen] = useState(false);
  const entry = useQuery({ queryKey: ["config", "tool", tool.server, tool.remote_name], queryFn: () => get<Entry>(url(tool)), enabled: !!owner });
  const args = entry.data?.arguments ?? [];
  const policy = Object.entries(entry.data?.policy ?? {});
  const keys = Object.entries(entry.data?.keys ?? {});
  if (!owner) return null;
  const fixed = entry.data?.fixed;
  return (
    <Panel title="Configured" actions={<Button disabled={!entry.data || !!fixed} onClick={() => setOpen(true)}>{entry.data && !entry.data.exists && !fixed ? "Create an entry" : "Edit arguments and rules"}</Button>}>
      <div className="p-3 text-sm">
        {entry.isError && <ErrorBox error={entry.error} />}
        {fixed && <p className="text-dim">It cannot be edited here: {visible(fixed)}.</p>}
        {entry.data && !fixed && args.length === 0 && policy.length === 0 && keys.length === 0 && <p className="text-dim">{entry.data.file} says nothing about this tool's arguments and rules: what its server says holds.</p>}
        {keys.length > 0 && <p className="mb-2 text-xs break-words whitespace-pre-wrap text-dim">{keys.map(([k, v]) => `${k}: ${visible(typeof v === "string" ? v : JSON.stringify(v))}`).join("\n")}</p>}
        {args.length > 0 && <ArgumentTable args={args} />}
        {entry.data && <Lacking args={args} entry={entry.data} />}
        {policy.length > 0 && <p className="mt-2 text-xs text-dim">{policy.map(([k, v]) => `${k}: ${visible(v)}`).join(" · ")}</p>}
      </div>
      {open && entry.data && <Editor tool={tool} entry={entry.data} onClose={() => setOpen(false)} reload={() => entry.refetch().then((r) => r.data)} />}
    </Panel>
  );
}

/** The configured arguments that the server's schema does not have. */
function lacking(args: Argument[], entry: Entry): string[] {
  if (entry.server_open || entry.server_arguments.length === 0 || entry.keys["arguments_mode"] === "replace") return [];
  return args.map((a) => a.name.trim()).filter((n) => n !== "" && !entry.server_arguments.some((s) => s.name === n));
}

function Lacking({ args, entry }: { args: Argument[]; entry: Entry }) {
  const names = lacking(args, entry);
  if (names.length === 0) return null;
  return <p role="status" className="mt-2 text-xs text-warn">The server has no argument {names.map((n) => `'${visible(n)}'`).join(", ")}, so models do not see {names.length === 1 ? "it" : "them"}. The server has {entry.server_arguments.map((s) => visible(s.name)).join(", ")}.</p>;
}

function ArgumentTable({ args }: { args: Argument[] }) {
  return (
    <div className="overflow-x-auto">
      <table className="w-full text-sm">
        <thead><tr className="text-left text-xs text-dim"><th scope="col" className="py-0.5 pr-3 font-medium">Name</th><th scope="col" className="pr-3 font-medium">Type</th><th scope="col" className="pr-3 font-medium">Required</th><th scope="col" className="font-medium">Description</th></tr></thead>
        <tbody>
          {args.map((a) => (
            <tr key={a.name} className="border-t border-line align-top"><td className="py-0.5 pr-3 font-mono text-xs">{visible(a.name)}</td><td className="pr-3 text-xs">{a.type}</td><td className="pr-3 text-xs">{required(a)}</td><td className="break-words whitespace-pre-wrap">{visible(a.description ?? "")}{a.enum && <span className="block text-xs text-dim">one of {visible(JSON.stringify(a.enum))}</span>}{a.default !== undefined && <span className="block text-xs text-dim">default {visible(JSON.stringify(a.default))}</span>}</td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const keyOf = (entry: Entry, key: string) => (typeof entry.keys[key] === "string" ? (entry.keys[key] as string) : "");
const listOf = (entry: Entry, key: string) => (Array.isArray(entry.keys[key]) ? (entry.keys[key] as string[]) : undefined);

export function Editor({ tool, entry: first, onClose, reload, prefill }: { tool: Place; entry: Entry; onClose: () => void; reload?: () => Promise<Entry | undefined>; prefill?: boolean }) {
  const [entry, setEntry] = useState(first); // what was loaded, whatever is fetched meanwhile
  const [args, setArgs] = useState<Argument[]>(prefill ? first.server_arguments : first.arguments);
  const [policy, setPolicy] = useState<Record<string, string>>(first.policy);
  const [texts, setTexts] = useState<Record<string, string>>({ title: keyOf(first, "title"), description: keyOf(first, "description"), next_state: keyOf(first, "next_state"), arguments_mode: keyOf(first, "arguments_mode") });
  const [lists, setLists] = useState<Record<string, string[] | undefined>>({ groups: listOf(first, "groups"), states: listOf(first, "states") });
  const [form, setForm] = useState(0); // a new one where the file was loaded again
  const [plan, setPlan] = useState<Edited>();
  const problems = args.map((a, i) => (a.name.trim() === "" ? "a name is needed" : args.findIndex((b) => b.name.trim() === a.name.trim()) !== i ? `there is an argument '${a.name.trim()}' already` : ""));
  const broken = problems.some(Boolean);
  const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
  const body = (dry_run: boolean) => ({
    dry_run,
    digest: entry.digest,
    ...(entry.exists ? {} : { name: entry.name }),
    arguments: entry.fixed_arguments || (same(args, entry.arguments) && entry.exists) ? null : args.map((a) => ({ ...a, name: a.name.trim() })),
    // Only what was changed: the others stay as they are written.
    keys: {
      ...Object.fromEntries(Object.entries(texts).filter(([k, v]) => v !== keyOf(entry, k)).map(([k, v]) => [k, v === "" ? null : v])),
      ...Object.fromEntries(Object.entries(lists).filter(([k, v]) => !same(v, listOf(entry, k))).map(([k, v]) => [k, v ?? null])),
    },
    policy: Object.fromEntries(rules.map((r) => [r.key, (policy[r.key] ?? "").trim()] as const).filter(([k, v]) => v !== (entry.policy[k] ?? "")).map(([k, v]) => [k, v === "" ? null : /^\d+$/.test(v) ? Number(v) : v])),
  });
  // While the file is loaded the form is disabled: what was typed meanwhile would be lost.
  const again = useMutation({ mutationFn: async () => reload?.(), onSuccess: (now) => now && fill(now) });
  const fill = (now: Entry) => {
    setEntry(now);
    setArgs(now.arguments);
    setPolicy(now.policy);
    setTexts(Object.fromEntries(Object.keys(texts).map((k) => [k, keyOf(now, k)])));
    setLists(Object.fromEntries(Object.keys(lists).map((k) => [k, listOf(now, k)])));
    setPlan(undefined);
    setForm(form + 1);
    show.reset();
    save.reset();
  };
  const text = (key: string, v: string) => { setPlan(undefined); setTexts({ ...texts, [key]: v }); };
  const show = useMutation({ mutationFn: () => request<Edited>("PUT", url(tool), body(true)) });
  const save = useMutation({ mutationFn: (seen: Edited) => write("PUT", url(tool), body(false), seen) });
  const [waits, setWaits] = useState<Proposal>();
  const change = (i: number, a: Partial<Argument>) => { setPlan(undefined); setArgs(args.map((o, n) => (n === i ? { ...o, ...a } : o))); };
  return (
    <Dialog wide title={`Arguments and rules of ${visible(entry.name || tool.name || tool.remote_name)}`} onClose={onClose}>
      <form key={form} className="flex flex-col gap-4" noValidate onSubmit={(e) => {
        e.preventDefault();
        if (broken) return;
        if (!plan) show.mutate(undefined, { onSuccess: setPlan });
        else save.mutate(plan, { onSuccess: (p) => { invalidate(["tools", "config"]); if (p) setWaits(p); else onClose(); } });
      }}>
        <fieldset disabled={again.isPending} className="contents">
        <div className="grid gap-2 sm:grid-cols-2">
          <label className="flex flex-col gap-0.5 text-sm sm:col-span-2">Description for the model<textarea rows={2} className={field} value={texts.description} placeholder="as the server says" onChange={(e) => text("description", e.target.value)} /></label>
          <Names label="Groups that see it" value={lists.groups} absent="the group default" onChange={(v) => { setPlan(undefined); setLists({ ...lists, groups: v }); }} />
          <Names label="States in which it is visible" value={lists.states} absent="every state" onChange={(v) => { setPlan(undefined); setLists({ ...lists, states: v }); }} />
          <label className="flex flex-col gap-0.5 text-sm">State after a successful call<input className={field} value={texts.next_state} placeholder="unchanged" onChange={(e) => text("next_state", e.target.value)} /></label>
          <label className="flex flex-col gap-0.5 text-sm">Arguments and the server's schema
            <select className={field} value={texts.arguments_mode} onChange={(e) => text("arguments_mode", e.target.value)}>
              <option value="">as the project says</option>
              {["overlay", "replace", "check", "ignore"].map((v) => <option key={v}>{v}</option>)}
            </select>
          </label>
        </div>
        {entry.fixed_arguments ? <p className="text-sm text-dim">Arguments cannot be edited here: {visible(entry.fixed_arguments)}.</p> : <div className="flex flex-col gap-2">
          <h3 className="font-medium">Arguments</h3>
          <p className="text-xs text-dim">They override what the server says: a description for the model, a type, whether a call must have it.</p>
          {args.map((a, i) => (
            <div key={a.index ?? `new ${i}`} className="rounded-md border border-line p-2" role="group" aria-label={`Argument ${i + 1}`}>
              <div className="flex flex-wrap gap-2">
                <input aria-label="Name" placeholder="name" className={`${field} w-40! font-mono text-xs`} value={a.name} aria-invalid={!!problems[i]} onChange={(e) => change(i, { name: e.target.value })} />
                <select aria-label="Type" className={`${field} w-28!`} value={a.type ?? ""} onChange={(e) => change(i, { type: e.target.value || undefined })}><option value="">server's</option>{types.map((t) => <option key={t}>{t}</option>)}</select>
                <label className="flex items-center gap-1 text-sm">Required <select className={`${field} w-auto!`} value={required(a)} onChange={(e) => change(i, { required: asks.find(([l]) => l === e.target.value)?.[1] })}>{asks.map(([l]) => <option key={l}>{l}</option>)}</select></label>
                <Button tone="quiet" className="ml-auto" aria-label={`Remove argument ${a.name || i + 1}`} onClick={() => { setPlan(undefined); setArgs(args.filter((_, n) => n !== i)); }}>Remove</Button>
              </div>
              <textarea aria-label="Description" rows={2} placeholder="what the model is told about it" className={`${field} mt-2`} value={a.description ?? ""} onChange={(e) => change(i, { description: e.target.value || undefined })} />
              <div className="mt-2 grid gap-2 sm:grid-cols-2">
                <label className="flex flex-col gap-0.5 text-xs text-dim">Allowed values, as a JSON list<JsonInput rows={1} value={a.enum} onChange={(v) => change(i, { enum: Array.isArray(v) ? v : v === undefined ? undefined : [v] })} /></label>
                <label className="flex flex-col gap-0.5 text-xs text-dim">Default, as JSON<JsonInput rows={1} value={a.default} onChange={(v) => change(i, { default: v })} /></label>
              </div>
              {problems[i] && <p role="alert" className="text-xs text-bad">{visible(problems[i]!)}</p>}
            </div>
          ))}
          <Lacking args={args} entry={{ ...entry, keys: { arguments_mode: texts.arguments_mode } }} />
          <div className="flex flex-wrap gap-2">
            <Button onClick={() => { setPlan(undefined); setArgs([...args, { name: "" }]); }}>Add an argument</Button>
            {entry.server_arguments.some((s) => !args.some((a) => a.name === s.name)) && <Button onClick={() => { setPlan(undefined); setArgs([...args, ...entry.server_arguments.filter((s) => !args.some((a) => a.name === s.name))]); }}>Fill in from the server's schema</Button>}
          </div>
        </div>}
        <div className="flex flex-col gap-2">
          <h3 className="font-medium">Rules</h3>
          <div className="grid gap-2 sm:grid-cols-2">
            {rules.map((r) => (
              <label key={r.key} className="flex flex-col gap-0.5 text-sm">{r.label}
                {r.values ? (
                  <select className={field} value={policy[r.key] ?? ""} onChange={(e) => { setPlan(undefined); setPolicy({ ...policy, [r.key]: e.target.value }); }}>
                    <option value="">as the project says</option>
                    {r.values.map((v) => <option key={v}>{v}</option>)}
                  </select>
                ) : (
                  <input className={field} value={policy[r.key] ?? ""} placeholder="as the project says" onChange={(e) => { setPlan(undefined); setPolicy({ ...policy, [r.key]: e.target.value }); }} />
                )}
                <span className="text-xs text-dim">{r.hint}</span>
              </label>
            ))}
          </div>
        </div>
        {[show, save].map((m, i) => m.isError && <ErrorBox key={i} error={m.error} />)}
        {reload && [show, save].some((m) => m.error instanceof Failure && m.error.status === 409) && <Button className="self-start" onClick={() => again.mutate()}>Load the file again (your changes here are lost)</Button>}
        {plan && <DiffView edited={plan} />}
        {waits && <OnCommandLine p={waits} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Close</Button>
          <Button type="submit" tone="primary" disabled={broken || show.isPending || save.isPending || !!waits || (!!plan && plan.before === plan.after)}>{plan ? "Propose it" : "Show what changes"}</Button>
        </div>
        </fieldset>
      </form>
    </Dialog>
  );
}

/** A list of names, one a line; absent and empty are different. */
function Names({ label, value, absent, onChange }: { label: string; value: string[] | undefined; absent: string; onChange: (v: string[] | undefined) => void }) {
  const [text, setText] = useState((value ?? []).join("\n"));
  return (
    <div className="flex flex-col gap-0.5 text-sm">
      <label className="flex flex-col gap-0.5">{label}
        <textarea rows={2} className={`${field} font-mono text-xs`} value={text} disabled={value === undefined} placeholder={value === undefined ? absent : "none"} onChange={(e) => { setText(e.target.value); onChange(e.target.value.split("\n").map((l) => l.trim()).filter(Boolean)); }} />
      </label>
      <label className="flex items-center gap-1 text-xs text-dim"><input type="checkbox" checked={value !== undefined} onChange={(e) => { setText(""); onChange(e.target.checked ? [] : undefined); }} /> set, one a line</label>
    </div>
  );
}

/** Makes an entry for a tool of a server, also for one that the server has not listed. */
export function NewTool({ servers, tools }: { servers: string[]; tools: Place[] }) {
  const owner = useMe().data?.owner;
  const [open, setOpen] = useState(false);
  const [server, setServer] = useState("");
  const [remote, setRemote] = useState("");
  const [name, setName] = useState("");
  const [entry, setEntry] = useState<Entry>();
  const [error, setError] = useState<unknown>();
  if (!owner) return null;
  const place = { server: server || (tools.find((t) => t.remote_name === remote.trim())?.server ?? servers[0] ?? ""), remote_name: remote.trim(), name: name.trim() || remote.trim() };
  const close = () => { setOpen(false); setEntry(undefined); setError(undefined); setRemote(""); setName(""); };
  const next = async () => {
    setError(undefined);
    try {
      const found = await get<Entry>(url(place));
      setEntry(found.exists ? found : { ...found, name: name.trim() || found.name });
    } catch (e) {
      if (!(e instanceof Failure) || e.status !== 404) return setError(e);
      setEntry({ file: "", digest: "", name: place.name, exists: false, arguments: [], keys: {}, policy: {}, server_arguments: [], server_open: true });
    }
  };
  return (
    <>
      <Button disabled={servers.length === 0} onClick={() => setOpen(true)}>New tool entry</Button>
      {open && !entry && (
        <Dialog title="New tool entry" onClose={close}>
          <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); if (place.remote_name) void next(); }}>
            <label className="flex flex-col gap-0.5 text-sm">Server<select className={field} value={place.server} onChange={(e) => setServer(e.target.value)}>{servers.map((s) => <option key={s} value={s}>{visible(s)}</option>)}</select></label>
            <label className="flex flex-col gap-0.5 text-sm">Tool on the server<input className={field} list="new-tool-names" autoComplete="off" value={remote} onChange={(e) => setRemote(e.target.value)} /></label>
            <datalist id="new-tool-names">{tools.filter((t) => t.server === place.server).map((t) => <option key={t.remote_name} value={t.remote_name} />)}</datalist>
            <label className="flex flex-col gap-0.5 text-sm">Name that the model sees<input className={field} autoComplete="off" value={name} placeholder="the same" onChange={(e) => setName(e.target.value)} /></label>
            {error !== undefined && <ErrorBox error={error} />}
            <div className="flex justify-end gap-2"><Button onClick={close}>Close</Button><Button type="submit" tone="primary" disabled={place.remote_name === ""}>Next</Button></div>
          </form>
        </Dialog>
      )}
      {entry?.fixed && <Dialog title="New tool entry" onClose={close}><p>It cannot be made here: {visible(entry.fixed)}.</p></Dialog>}
      {entry && !entry.fixed && <Editor tool={place} entry={entry} prefill={!entry.exists} onClose={close} />}
    </>
  );
}

// The arguments and rules that the project's file says about a tool. What would be
// written is shown first, and everything else in the file stays as it is.

import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, request } from "./api";
import { DiffView } from "./diff";
import { invalidate, useMe } from "./data";
import type { Edited, Parameter, ToolDetail, ToolEntry } from "./types";
import { Button, Dialog, ErrorBox, Panel, field, visible } from "./ui";

type Argument = Required<Parameter>;
type Entry = Omit<ToolEntry, "arguments" | "policy"> & { arguments: Argument[]; policy: Record<string, string> };

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

const url = (t: ToolDetail) => `/api/v1/config/tools/${encodeURIComponent(`${t.server}.${t.remote_name}`)}`;

export function ToolEditor({ tool }: { tool: ToolDetail }) {
  const owner = useMe().data?.owner;
  const [open, setOpen] = useState(false);
  const entry = useQuery({ queryKey: ["config", "tool", tool.server, tool.remote_name], queryFn: () => get<Entry>(url(tool)), enabled: !!owner });
  const args = entry.data?.arguments ?? [];
  const policy = Object.entries(entry.data?.policy ?? {});
  if (!owner) return null;
  return (
    <Panel title="Configured" actions={<Button disabled={!entry.data} onClick={() => setOpen(true)}>Edit arguments and rules</Button>}>
      <div className="p-3 text-sm">
        {entry.isError && <ErrorBox error={entry.error} />}
        {entry.data && args.length === 0 && policy.length === 0 && <p className="text-dim">{entry.data.file} says nothing about this tool's arguments and rules: what its server says holds.</p>}
        {args.length > 0 && <ArgumentTable args={args} />}
        {policy.length > 0 && <p className="mt-2 text-xs text-dim">{policy.map(([k, v]) => `${k}: ${visible(v)}`).join(" · ")}</p>}
      </div>
      {open && entry.data && <Editor tool={tool} entry={entry.data} onClose={() => setOpen(false)} />}
    </Panel>
  );
}

function ArgumentTable({ args }: { args: Argument[] }) {
  return (
    <div className="overflow-x-auto">
      <table className="w-full text-sm">
        <thead><tr className="text-left text-xs text-dim"><th scope="col" className="py-0.5 pr-3 font-medium">Name</th><th scope="col" className="pr-3 font-medium">Type</th><th scope="col" className="pr-3 font-medium">Required</th><th scope="col" className="font-medium">Description</th></tr></thead>
        <tbody>
          {args.map((a) => (
            <tr key={a.name} className="border-t border-line align-top"><td className="py-0.5 pr-3 font-mono text-xs">{visible(a.name)}</td><td className="pr-3 text-xs">{a.type}</td><td className="pr-3 text-xs">{a.required ? "yes" : "no"}</td><td className="break-words whitespace-pre-wrap">{visible(a.description)}</td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Editor({ tool, entry, onClose }: { tool: ToolDetail; entry: Entry; onClose: () => void }) {
  const [args, setArgs] = useState<Argument[]>(entry.arguments);
  const [policy, setPolicy] = useState<Record<string, string>>(entry.policy);
  const [plan, setPlan] = useState<Edited>();
  const problems = args.map((a, i) => (a.name.trim() === "" ? "a name is needed" : args.findIndex((b) => b.name.trim() === a.name.trim()) !== i ? `there is an argument '${a.name.trim()}' already` : ""));
  const broken = problems.some(Boolean);
  const body = (dry_run: boolean) => ({
    dry_run,
    arguments: args.map((a) => ({ ...a, name: a.name.trim() })),
    // Only what was changed: the others stay as they are written.
    policy: Object.fromEntries(rules.map((r) => [r.key, (policy[r.key] ?? "").trim()] as const).filter(([k, v]) => v !== (entry.policy[k] ?? "")).map(([k, v]) => [k, v === "" ? null : /^\d+$/.test(v) ? Number(v) : v])),
  });
  const edit = useMutation({ mutationFn: (dry: boolean) => request<Edited>("PUT", url(tool), body(dry)) });
  const change = (i: number, a: Partial<Argument>) => { setPlan(undefined); setArgs(args.map((o, n) => (n === i ? { ...o, ...a } : o))); };
  return (
    <Dialog wide title={`Arguments and rules of ${visible(tool.name || tool.remote_name)}`} onClose={onClose}>
      <form className="flex flex-col gap-4" noValidate onSubmit={(e) => {
        e.preventDefault();
        if (broken) return;
        if (!plan) edit.mutate(true, { onSuccess: setPlan });
        else edit.mutate(false, { onSuccess: () => { invalidate(["tools", "config"]); onClose(); } });
      }}>
        <div className="flex flex-col gap-2">
          <h3 className="font-medium">Arguments</h3>
          <p className="text-xs text-dim">They stand over what the server says: a description for the model, a type, whether a call must have it.</p>
          {args.map((a, i) => (
            <div key={i} className="rounded-md border border-line p-2" role="group" aria-label={`Argument ${i + 1}`}>
              <div className="flex flex-wrap gap-2">
                <input aria-label="Name" placeholder="name" className={`${field} w-40! font-mono text-xs`} value={a.name} aria-invalid={!!problems[i]} onChange={(e) => change(i, { name: e.target.value })} />
                <select aria-label="Type" className={`${field} w-28!`} value={a.type} onChange={(e) => change(i, { type: e.target.value })}>{types.map((t) => <option key={t}>{t}</option>)}</select>
                <label className="flex items-center gap-1 text-sm"><input type="checkbox" checked={a.required} onChange={(e) => change(i, { required: e.target.checked })} /> required</label>
                <Button tone="quiet" className="ml-auto" aria-label={`Remove argument ${a.name || i + 1}`} onClick={() => { setPlan(undefined); setArgs(args.filter((_, n) => n !== i)); }}>Remove</Button>
              </div>
              <textarea aria-label="Description" rows={2} placeholder="what the model is told about it" className={`${field} mt-2`} value={a.description} onChange={(e) => change(i, { description: e.target.value })} />
              {problems[i] && <p role="alert" className="text-xs text-bad">{visible(problems[i]!)}</p>}
            </div>
          ))}
          <Button className="self-start" onClick={() => { setPlan(undefined); setArgs([...args, { name: "", type: "string", description: "", required: false }]); }}>Add an argument</Button>
        </div>
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
        {edit.isError && <ErrorBox error={edit.error} />}
        {plan && <DiffView edited={plan} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Close</Button>
          <Button type="submit" tone="primary" disabled={broken || edit.isPending || (!!plan && plan.before === plan.after)}>{plan ? "Write it" : "Show what changes"}</Button>
        </div>
      </form>
    </Dialog>
  );
}

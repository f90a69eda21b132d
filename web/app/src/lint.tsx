// What is worth knowing of tools before a model does, by each model that is
// configured, and by each provider's rules.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, type Page } from "./api";
import { useModels } from "./data";
import type { Finding, ToolDetail } from "./types";
import { Badge, type BadgeTone, Button, ErrorBox, Panel, To, field, path, visible } from "./ui";

const tones: Record<Finding["level"], BadgeTone> = { error: "bad", warn: "warn", info: "dim" };
const levels = ["error", "warn", "info"] as const;

/** Whose rules hold for a model, with the models that they hold for. */
function useRules(found: Finding[]): { rules: string; models: string[] }[] {
  const by = new Map<string, string[]>();
  for (const m of useModels().data?.items ?? []) by.set(m.rules ?? "", [...(by.get(m.rules ?? "") ?? []), m.name]);
  for (const f of found) if (f.provider && !by.has(f.provider)) by.set(f.provider, []);
  return [...by].map(([rules, models]) => ({ rules, models })).toSorted((a, b) => Number(b.models.length > 0) - Number(a.models.length > 0) || (a.rules < b.rules ? -1 : 1));
}

const holding = (found: Finding[], rules: string) => found.filter((f) => !f.provider || f.provider === rules);

export function Lint({ tool }: { tool: ToolDetail }) {
  const list = useQuery({ queryKey: ["tools", "lint", tool.server, tool.remote_name], queryFn: () => get<Page<Finding>>(`/api/v1/lint?tool=${encodeURIComponent(tool.offered ? tool.name : `${tool.server}.${tool.remote_name}`)}`) });
  const found = list.data?.items ?? [];
  const rules = useRules(found);
  return (
    <Panel title="As models take it">
      {list.isError && <ErrorBox error={list.error} />}
      {list.data && found.length === 0 && <p className="p-3 text-sm text-dim">Every provider takes it as it is.</p>}
      {found.length > 0 && (
        <ul aria-label="Findings" className="divide-y divide-line">
          {rules.map(({ rules: r, models }) => <OfRules key={r} rules={r} models={models} found={holding(found, r)} />)}
        </ul>
      )}
    </Panel>
  );
}

function OfRules({ rules, models, found, tools }: { rules: string; models: string[]; found: Finding[]; tools?: boolean }) {
  const [open, setOpen] = useState(models.length > 0 && !tools);
  const [most, setMost] = useState(50);
  return (
    <li className="flex flex-col gap-1 px-3 py-2 text-sm">
      <button type="button" aria-expanded={open} className="flex flex-wrap items-center gap-2 rounded text-left" onClick={() => setOpen(!open)}>
        <span aria-hidden className="text-dim">{open ? "▾" : "▸"}</span>
        <span className="font-medium break-words">{models.length ? visible(models.join(", ")) : visible(rules)}</span>
        {models.length > 0 && <span className="text-xs text-dim">{rules ? `by the rules of ${visible(rules)}` : "takes everything"}</span>}
        <span className="ml-auto flex gap-1">
          {levels.map((l) => { const n = found.filter((f) => f.level === l).length; return n > 0 && <Badge key={l} tone={tones[l]}>{n} {l}</Badge>; })}
          {found.length === 0 && <Badge tone="ok">as it is</Badge>}
        </span>
      </button>
      {open && found.slice(0, most).map((f, i) => (
        <span key={i} className="flex flex-wrap items-baseline gap-2">
          <Badge tone={tones[f.level]}>{f.level}</Badge>
          {tools && f.tool && <To to={path("tools", f.tool)}>{visible(f.tool)}</To>}
          {f.pointer && <span className="font-mono text-xs break-all text-dim">{visible(f.pointer)}</span>}
          <span className="min-w-0 break-words">{visible(f.message)}</span>
        </span>
      ))}
      {open && found.length > most && <Button tone="quiet" className="self-start" onClick={() => setMost(most + 200)}>{found.length - most} more</Button>}
    </li>
  );
}

/** All tools, as each model takes them. */
export function LintAll() {
  const [asked, setAsked] = useState(false);
  const [level, setLevel] = useState<Finding["level"] | "">("");
  const list = useQuery({ queryKey: ["tools", "lint", "all"], queryFn: () => get<Page<Finding>>("/api/v1/lint"), enabled: asked });
  const found = (list.data?.items ?? []).filter((f) => level === "" || f.level === level);
  const rules = useRules(list.data?.items ?? []);
  return (
    <Panel title="As models take all tools" actions={
      list.data ? (
        <select aria-label="Level" className={`${field} w-auto! py-0.5 text-xs`} value={level} onChange={(e) => setLevel(e.target.value as typeof level)}>
          <option value="">every level</option>
          {levels.map((l) => <option key={l} value={l}>{l}</option>)}
        </select>
      ) : <Button disabled={asked && list.isFetching} onClick={() => { setAsked(true); if (list.isError) void list.refetch(); }}>{list.isFetching ? "Looking…" : "Look at all tools"}</Button>
    }>
      {list.isError && <ErrorBox error={list.error} />}
      {!list.data && <p className="p-3 text-sm text-dim">Which tools a model refuses, what is changed for it, and what it would do better with.</p>}
      {list.data && <ul aria-label="Findings of all tools" className="divide-y divide-line">{rules.map(({ rules: r, models }) => <OfRules key={r} rules={r} models={models} found={holding(found, r)} tools />)}</ul>}
    </Panel>
  );
}

// The configuration as it holds, without its secrets; models; the grants that were
// given for good.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, post, setToken, type Page } from "../api";
import { cache, invalidate, useMe, useModels } from "../data";
import { Entries } from "../entries";
import { Keys } from "../keysform";
import { toggleTheme } from "../palette";
import { Proposals } from "../proposals";
import type { Grant } from "../types";
import { Ago, Badge, Button, Empty, ErrorBox, Panel, field, millis, visible } from "../ui";

export default function Settings() {
  const me = useMe().data;
  return (
    <div className="mx-auto flex max-w-4xl flex-col gap-3 p-3 md:p-5">
      <header className="flex flex-wrap items-center gap-2">
        <h1 className="text-lg font-semibold">Settings</h1>
        <span className="text-sm text-dim">{me?.principal}{me?.owner ? ", owner" : ""} · tenon {me?.version}</span>
        <Button className="ml-auto" onClick={toggleTheme}>Dark or light</Button>
        <Button onClick={() => { setToken(""); void cache.resetQueries(); }}>Sign out</Button>
      </header>
      <Proposals />
      <Models />
      {me?.owner && <Keys />}
      {me?.owner && <Entries />}
      <Grants />
      {me?.owner && <Config />}
    </div>
  );
}

function Models() {
  const models = useModels();
  const owner = useMe().data?.owner;
  const [tests, setTests] = useState<Record<string, unknown>>({});
  const test = async (name: string) => {
    setTests((t) => ({ ...t, [name]: "…" }));
    const r = await post<{ error?: { message: string }; duration_ms?: number }>("/api/v1/models/test", { name }).catch((e: Error) => ({ error: { message: e.message }, duration_ms: undefined }));
    setTests((t) => ({ ...t, [name]: r.error ? `✕ ${r.error.message}` : `✓ ${millis(r.duration_ms)}` }));
  };
  return (
    <Panel title="Models that can answer">
      {models.isError && <ErrorBox error={models.error} />}
      {models.data?.items.length === 0 && <Empty>No model is configured or found.</Empty>}
      <ul className="divide-y divide-line">
        {(models.data?.items ?? []).map((m) => (
          <li key={m.name} className="flex flex-wrap items-center gap-2 px-3 py-1.5 text-sm">
            <span className="font-mono text-xs">{visible(m.name)}</span><span className="text-xs text-dim">{visible([m.provider, m.model].filter(Boolean).join("/"))}</span>
            <span role="status" className="min-w-0 break-words text-xs text-dim">{visible(String(tests[m.name] ?? ""))}</span>
            {owner && <Button className="ml-auto" onClick={() => void test(m.name)}>Test</Button>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Grants() {
  const list = useQuery({ queryKey: ["approvals", "grants"], queryFn: () => get<Page<Grant>>("/api/v1/grants") });
  const [error, setError] = useState<unknown>();
  return (
    <Panel title="Tools that are allowed for later calls">
      {list.isError && <ErrorBox error={list.error} />}
      {error !== undefined && <ErrorBox error={error} />}
      {list.data?.items.length === 0 && <p className="p-3 text-sm text-dim">None.</p>}
      <ul className="divide-y divide-line">
        {(list.data?.items ?? []).map((g) => (
          <li key={g.id} className="flex flex-wrap items-center gap-2 px-3 py-1.5 text-sm">
            <span className="font-mono text-xs">{visible(`${g.server}.${g.remote}`)}</span><span className="text-xs text-dim">{visible(g.id)}, by {visible(g.by ?? "")}, <Ago time={g.created} /></span>
            {g.state !== "active" && <Badge tone="warn" title={g.reason}>{visible(g.state.replace("_", " "))}</Badge>}
            <Button tone="danger" className="ml-auto" onClick={() => post("/api/v1/grants/revoke", { id: g.id }).then(() => invalidate(["approvals"]), setError)}>Take back</Button>
            {limits(g) && <span className="w-full text-xs break-words whitespace-pre-wrap text-dim">{limits(g)}</span>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** Which calls a grant is for; "" for all. */
function limits(g: Grant): string {
  const parts: string[] = [];
  if (g.session) parts.push(`in session ${visible(g.session)}`);
  if (g.if) parts.push(`if ${visible(g.if)}`);
  if (g.uses) parts.push(`${Math.max(0, g.uses - (g.used ?? 0))} of ${g.uses} calls left`);
  if (g.expires) parts.push(`until ${new Date(g.expires).toLocaleString()}`);
  return parts.join(", ");
}

interface ConfigValue {
  path: string;
  value: string;
  origin: string;
  layer: string;
}

/** Every value that holds, with the place that says it. */
function Config() {
  const c = useQuery({ queryKey: ["config"], queryFn: () => get<{ file?: string; values: ConfigValue[] }>("/api/v1/config") });
  const [words, setWords] = useState("");
  const [defaults, setDefaults] = useState(false);
  const wanted = words.toLowerCase();
  const list = (c.data?.values ?? []).filter((v) => (defaults || v.layer !== "default") && `${v.path} ${v.value}`.toLowerCase().includes(wanted));
  return (
    <Panel title="All settings in effect">
      {c.isError && <ErrorBox error={c.error} />}
      <div className="flex flex-wrap items-center gap-3 px-3 py-2 text-sm">
        <input type="search" aria-label="Search in the settings" placeholder="Search" className={`${field} w-56!`} value={words} onChange={(e) => setWords(e.target.value)} />
        <label className="flex items-center gap-1.5"><input type="checkbox" checked={defaults} onChange={(e) => setDefaults(e.target.checked)} /> with defaults</label>
        {c.data?.file && <span className="font-mono text-xs text-dim">{visible(c.data.file)}</span>}
      </div>
      <div tabIndex={0} role="region" aria-label="Settings" className="max-h-96 overflow-auto">
        <table className="w-full text-left text-xs">
          <thead className="sticky top-0 bg-panel text-dim"><tr><th className="px-3 py-1 font-medium">Setting</th><th className="px-3 py-1 font-medium">Value</th><th className="px-3 py-1 font-medium">From</th></tr></thead>
          <tbody>
            {list.map((v, i) => (
              <tr key={i} className="border-t border-line align-top"><td className="px-3 py-1 font-mono break-all">{visible(v.path)}</td><td className="px-3 py-1 font-mono break-all">{visible(v.value)}</td><td className="px-3 py-1 text-dim">{visible(v.origin)}</td></tr>
            ))}
          </tbody>
        </table>
        {c.data && list.length === 0 && <p className="px-3 py-2 text-sm text-dim">None.</p>}
      </div>
    </Panel>
  );
}

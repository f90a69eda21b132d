// The catalogue: what the model sees, what it costs, how it came to be so, and a form
// to try each tool.

import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useDeferredValue, useRef, useState } from "react";
import { get, post } from "../api";
import { ApprovalCard, Risk } from "../approval";
import { CallProgress, Result } from "../callcard";
import { useApprovals, useMe, useServers, useTools } from "../data";
import { parse } from "../exact";
import { JsonInput, SchemaForm } from "../form";
import { Frames } from "../frames";
import { Lint, LintAll } from "../lint";
import { useRun } from "../run";
import { usePlace } from "../router";
import { initial, problems as problemsOf, shapeOf } from "../schema";
import { NewTool, ToolEditor } from "../tooledit";
import type { Run, ToolDetail } from "../types";
import { Badge, Button, Copy, Empty, ErrorBox, Json, LongText, Panel, State, To, cx, field, path, plural, visible } from "../ui";
import { WeightBar } from "../weightbar";

export default function Tools({ name }: { name: string }) {
  const { query } = usePlace();
  const beside = name !== "" || query.has("lint"); // on a narrow screen either the list is seen or what is beside it
  return (
    <div className="flex h-full min-h-0">
      <div className={cx("min-h-0 w-full flex-col border-r border-line md:flex md:w-80 md:shrink-0", beside ? "hidden" : "flex")}><List current={name} /></div>
      <div className={cx("min-h-0 min-w-0 flex-1 overflow-auto", !beside && "hidden md:block")}>{name ? <Detail key={name} name={name} /> : <NoTool />}</div>
    </div>
  );
}

function NoTool() {
  return (
    <div className="mx-auto flex max-w-4xl flex-col gap-3 p-3 md:p-5">
      <p className="md:hidden"><To to="/tools">all tools</To></p>
      <p className="hidden px-4 py-6 text-center text-dim md:block">Choose a tool.</p>
      <LintAll />
    </div>
  );
}

function List({ current }: { current: string }) {
  const { query } = usePlace();
  const [words, setWords] = useState("");
  const [server, setServer] = useState(query.get("server") ?? "");
  const search = useDeferredValue(words.trim());
  const all = useTools();
  const known = useServers();
  const found = useTools(search);
  const box = useRef<HTMLDivElement>(null);
  const items = (found.data?.items ?? []).filter((t) => !server || t.server === server);
  const servers = [...new Set((all.data?.items ?? []).map((t) => t.server))].toSorted();
  const most = Math.max(1, ...items.map((t) => t.tokens ?? 0));
  const total = items.reduce((n, t) => n + (t.tokens ?? 0), 0);
  const rows = useVirtualizer({ count: items.length, getScrollElement: () => box.current, estimateSize: () => 52, overscan: 12 });
  return (
    <>
      <header className="flex flex-col gap-2 border-b border-line bg-panel p-2">
        <div className="flex items-center justify-between gap-2"><h1 className="px-1 text-lg font-semibold">Tools</h1><NewTool servers={(known.data?.items ?? []).map((s) => s.name)} tools={all.data?.items ?? []} /></div>
        <input type="search" aria-label="Search tools by what they do" placeholder="Search by name or by what it does" className={field} value={words} onChange={(e) => setWords(e.target.value)} />
        <select aria-label="Server" className={field} value={server} onChange={(e) => setServer(e.target.value)}>
          <option value="">all servers</option>
          {servers.map((s) => <option key={s} value={s}>{visible(s)}</option>)}
        </select>
        <p className="px-1 text-xs text-dim" role="status">{found.isPending ? "Asking the servers…" : `${plural(items.length, "tool")}, about ${plural(total, "token")} of definitions`}</p>
        {found.data && <WeightBar tools={items} />}
        <p className="px-1 text-xs md:hidden"><To to="/tools?lint">as models take all tools</To></p>
        {(found.data?.problems ?? []).map((p, i) => <p key={i} className="line-clamp-3 px-1 text-xs break-words text-warn" title={visible(p.message)}>{visible(p.message)}</p>)}
      </header>
      {found.isError && <ErrorBox error={found.error} retry={() => void found.refetch()} />}
      {found.data && items.length === 0 && <Empty>No tool was found.</Empty>}
      <div ref={box} tabIndex={0} role="region" aria-label="List of tools" className="min-h-0 flex-1 overflow-auto">
        <ul style={{ height: rows.getTotalSize() }} className="relative">
          {rows.getVirtualItems().map((r) => {
            const t = items[r.index]!;
            return (
              <li key={r.key} className="absolute inset-x-0" style={{ top: r.start, height: 52 }}>
                <To to={path("tools", t.name)} aria-current={t.name === current ? "page" : undefined} className={cx("block h-full border-b border-line px-3 py-1.5", t.name === current ? "bg-accent-ground" : "hover:bg-sunk")}>
                  <span className="flex items-center gap-2"><span className="truncate font-mono text-xs font-medium text-ink">{visible(t.name)}</span><span className="ml-auto shrink-0 text-xs text-dim">{visible(t.server)}</span></span>
                  <span className="flex items-center gap-2">
                    <span className="min-w-0 flex-1 truncate text-xs text-dim">{visible(t.description ?? "")}</span>
                    <svg width="40" height="6" role="img" aria-label={plural(t.tokens ?? 0, "token")}><title>{plural(t.tokens ?? 0, "token")}</title><rect width="40" height="6" rx="3" className="fill-sunk" /><rect width={(40 * (t.tokens ?? 0)) / most} height="6" rx="3" className={(t.tokens ?? 0) > 1000 ? "fill-warn" : "fill-accent"} /></svg>
                  </span>
                </To>
              </li>
            );
          })}
        </ul>
      </div>
    </>
  );
}

function Detail({ name }: { name: string }) {
  const tool = useQuery({ queryKey: ["tools", "one", name], queryFn: () => get<ToolDetail>(`/api/v1/tools/${encodeURIComponent(name)}`) });
  if (tool.isError) return <ErrorBox error={tool.error} retry={() => void tool.refetch()} />;
  const t = tool.data;
  if (!t) return <Empty>Loading…</Empty>;
  return (
    <div className="mx-auto flex max-w-4xl flex-col gap-3 p-3 md:p-5">
      <p className="md:hidden"><To to="/tools">all tools</To></p>
      <header className="flex flex-wrap items-center gap-2">
        <h2 className="font-mono text-lg font-semibold break-all">{visible(t.name || t.remote_name)}</h2>
        <Risk tool={t} />
        {!t.offered && <Badge tone="bad">withheld</Badge>}
        <span className="ml-auto text-xs text-dim">{plural(t.tokens ?? 0, "token")}</span>
      </header>
      <p className="text-xs text-dim">tool <span className="font-mono">{visible(t.remote_name)}</span> of server <To to={path("servers", t.server)}>{visible(t.server)}</To></p>
      {t.reason && <p role="alert" className="rounded bg-bad-ground px-3 py-2 text-sm text-bad">{visible(t.reason)}</p>}
      {t.description && <p className="text-sm whitespace-pre-wrap break-words">{visible(t.description)}</p>}
      {t.offered && <TryIt tool={t} />}
      <ToolEditor tool={t} />
      <Lint tool={t} />
      <Panel title="What the model is told"><div className="p-3"><Json value={{ name: t.name, description: t.description, input_schema: t.input_schema }} /></div></Panel>
      {t.steps.length > 0 && (
        <Panel title="Changes by the configuration">
          <ol className="divide-y divide-line">{t.steps.map((s, i) => <StepView key={i} step={s} />)}</ol>
        </Panel>
      )}
    </div>
  );
}

function StepView({ step: s }: { step: ToolDetail["steps"][number] }) {
  return (
    <li className="flex flex-col gap-1 p-3 text-sm">
      <span><span className="font-mono font-medium">{visible(s.step)}</span> <span className="text-dim">changes the {s.field.replaceAll("_", " ")}</span></span>
      <div className="grid gap-2 md:grid-cols-2">
        <Side title="before" text={s.before} />
        <Side title="after" text={s.after} />
      </div>
    </li>
  );
}

function Side({ title, text }: { title: string; text: string }) {
  return <div className="min-w-0 rounded bg-sunk p-2"><span className="text-xs text-dim">{title}</span><LongText text={pretty(text)} /></div>;
}

function pretty(text: string): string {
  if (!/^[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Arguments that a link to the form has. */
function given(text: string | null): unknown {
  try {
    const value = text ? parse(text) : undefined;
    return value && typeof value === "object" && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const past = new Map<string, unknown[]>(); // what was tried, newest first, by tool
const maxPast = 10;

function TryIt({ tool }: { tool: ToolDetail }) {
  const schema = tool.input_schema ?? { type: "object" };
  const { query } = usePlace();
  const [value, setValue] = useState<unknown>(() => given(query.get("arguments")) ?? past.get(tool.name)?.[0] ?? initial(schema) ?? {});
  const [raw, setRaw] = useState(shapeOf(schema) !== "object" && Object.keys(schema.properties ?? {}).length > 0);
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [run, setRun] = useState<Run>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [form, setForm] = useState(0); // a new one for values from the past
  const call = async () => {
    const found = problemsOf({ ...schema, type: "object" }, value);
    setErrors(found);
    if (Object.keys(found).length > 0) return;
    setBusy(true);
    setError(undefined);
    setRun(undefined);
    past.set(tool.name, [value, ...(past.get(tool.name) ?? []).filter((v) => JSON.stringify(v) !== JSON.stringify(value))].slice(0, maxPast));
    try {
      setRun((await post<{ run: Run }>(`/api/v1/tools/${encodeURIComponent(tool.name)}/call`, { arguments: value, detach: true })).run);
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  const json = JSON.stringify(value ?? {});
  const quoted = `'${json.replaceAll("'", `'\\''`)}'`;
  const history = past.get(tool.name) ?? [];
  return (
    <Panel
      title="Try it"
      actions={
        <>
          {history.length > 0 && (
            <select aria-label="Earlier values" className={`${field} w-auto! py-0.5 text-xs`} value="" onChange={(e) => { setValue(history[Number(e.target.value)]); setForm(form + 1); }}>
              <option value="">earlier values…</option>
              {history.map((h, i) => <option key={i} value={i}>{visible(JSON.stringify(h).slice(0, 80))}</option>)}
            </select>
          )}
          <Button tone="quiet" aria-pressed={raw} onClick={() => setRaw(!raw)}>{raw ? "form" : "JSON"}</Button>
        </>
      }>
      <form key={form} className="flex flex-col gap-3 p-3" noValidate onSubmit={(e) => { e.preventDefault(); void call(); }}>
        {raw ? <JsonInput rows={6} value={value} onChange={(v) => setValue(v ?? {})} /> : Object.keys(schema.properties ?? {}).length === 0 ? <p className="text-sm text-dim">It takes no arguments.</p> : <SchemaForm schema={{ ...schema, type: "object" }} value={value} errors={errors} onChange={setValue} />}
        {raw && Object.keys(errors).length > 0 && <p role="alert" className="text-sm text-bad">{Object.entries(errors).map(([p, m]) => `${p || "/"}: ${m}`).join("; ")}</p>}
        <div className="flex flex-wrap items-center gap-1.5">
          <Button type="submit" tone="primary" disabled={busy}>Call the tool</Button>
          <Copy label="Copy as CLI" text={`tenon tools call ${tool.name} --params ${quoted}`} />
          <Copy label="curl" text={`curl -H "Authorization: Bearer $TENON_TOKEN" -H 'Content-Type: application/json' ${location.origin}/api/v1/tools/${encodeURIComponent(tool.name)}/call -d '${JSON.stringify({ arguments: value ?? {} }).replaceAll("'", `'\\''`)}'`} />
          <Copy label="Go" text={`result, err := h.CallTool(ctx, ${JSON.stringify(tool.name)}, json.RawMessage(${json.includes("`") ? JSON.stringify(json) : `\`${json}\``}))`} />
          <span className="text-xs text-dim">Your own call needs no approval; rules that deny it still hold.</span>
        </div>
      </form>
      {error !== undefined && <ErrorBox error={error} />}
      {run && <Outcome run={run} server={tool.server} />}
    </Panel>
  );
}

function Outcome({ run, server }: { run: Run; server: string }) {
  const owner = useMe().data?.owner;
  const connected = (useServers().data?.items ?? []).some((s) => s.name === server && s.transport !== "program");
  const [wire, setWire] = useState(false);
  const { view } = useRun(run.id);
  const waiting = (useApprovals().data?.items ?? []).filter((a) => a.run === run.id);
  const call = view.items.find((i) => i.kind === "call");
  return (
    <div className="flex flex-col gap-2 border-t border-line p-3">
      <p className="flex items-center gap-2 text-sm"><State state={call?.kind === "call" ? call.status : view.state} /><To to={path("runs", run.id)}>the call as a run</To>{owner && connected && <Button tone="quiet" className="ml-auto" aria-expanded={wire} onClick={() => setWire(!wire)}>Protocol</Button>}</p>
      {wire && <Frames server={server} />}
      {call?.kind === "call" && <CallProgress call={call} />}
      {waiting.map((a) => <ApprovalCard key={a.id} approval={a} />)}
      {call?.kind === "call" && call.result && <Result result={call.result} />}
      {call?.kind === "call" && (call.unrun ?? call.reason) && !call.result && <p className="text-sm break-words text-dim">{visible((call.unrun ?? call.reason)!)}</p>}
      {(view.error ?? (call?.kind === "call" ? call.error : undefined)) && <p role="alert" className="text-sm break-words text-bad">{visible((view.error ?? (call?.kind === "call" ? call.error : undefined))!.message)}</p>}
    </div>
  );
}

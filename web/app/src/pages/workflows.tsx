// Workflows: their graphs, a form to run each, and how far its last run has come.

import { useQuery } from "@tanstack/react-query";
import { Suspense, lazy, useMemo, useState } from "react";
import { get, post, type Page } from "../api";
import { ApprovalCard } from "../approval";
import { base64 } from "../attach";
import { invalidate, useApprovals, useMe, useRuns, useWorkflows } from "../data";
import { progressOf } from "../flow";
import { FlowGraph } from "../flowgraph";
import { SchemaForm } from "../form";
import { useRun } from "../run";
import { go, usePlace } from "../router";
import { initial, problems as problemsOf } from "../schema";
import type { Run, RunTable, TableFile, Workflow } from "../types";
import { Ago, Badge, Button, Empty, ErrorBox, Labelled, Panel, State, To, cx, field, path, plural, visible } from "../ui";
import { RunTables } from "./tables";

const FlowEdit = lazy(() => import("../flowedit"));
const NewFlow = lazy(() => import("../flowedit").then((m) => ({ default: m.NewFlow })));

export default function Workflows({ name }: { name: string }) {
  const list = useWorkflows();
  const items = list.data?.items ?? [];
  const owner = useMe().data?.owner;
  const { query } = usePlace();
  const making = !name && query.has("new");
  const chosen = items.find((w) => w.tool === name);
  return (
    <div className="flex h-full min-h-0">
      <div className={cx("min-h-0 w-full flex-col overflow-auto border-r border-line bg-panel md:flex md:w-64 md:shrink-0", name || making ? "hidden" : "flex")}>
        <div className="flex items-center gap-2 px-3 py-2.5"><h1 className="text-lg font-semibold">Workflows</h1>{owner && <Button className="ml-auto" onClick={() => go("/workflows?new=1")}>New workflow</Button>}</div>
        {list.isError && <ErrorBox error={list.error} retry={() => void list.refetch()} />}
        {list.data && items.length === 0 && <Empty>There are none yet. A workflow is a tool made of steps: calls, queries, texts, agents, requests.</Empty>}
        <ul aria-label="List of workflows">
          {items.map((w) => (
            <li key={w.tool}>
              <To to={path("workflows", w.tool!)} aria-current={w.tool === name ? "page" : undefined} className={cx("block border-b border-line px-3 py-1.5", w.tool === name ? "bg-accent-ground" : "hover:bg-sunk")}>
                <span className="block truncate font-mono text-xs font-medium text-ink">{visible(w.tool!)}</span>
                <span className="line-clamp-2 text-xs text-dim">{visible(w.description)}</span>
              </To>
            </li>
          ))}
        </ul>
      </div>
      <div className={cx("min-h-0 min-w-0 flex-1 overflow-auto", !name && !making && "hidden md:block")}>
        {making ? <Making /> : !name ? <Empty>{items.length > 0 ? "Choose a workflow." : "Make one with “New workflow”: it begins with an example that works."}</Empty> : chosen ? <Detail key={name} workflow={chosen} /> : list.data && <Empty>There is no workflow {visible(name)}. <To to="/workflows">all workflows</To></Empty>}
      </div>
    </div>
  );
}

function Making() {
  return (
    <div className="mx-auto flex max-w-7xl flex-col gap-3 p-3 md:p-5">
      <div className="md:hidden"><h1 className="sr-only">Workflows</h1><To to="/workflows">all workflows</To></div>
      <h2 className="text-lg font-semibold">New workflow</h2>
      <Suspense fallback={<Empty>Loading…</Empty>}><NewFlow /></Suspense>
    </div>
  );
}

function Detail({ workflow: w }: { workflow: Workflow }) {
  const { query } = usePlace();
  const owner = useMe().data?.owner;
  if (query.has("edit")) return (
    <div className="mx-auto flex max-w-7xl flex-col gap-3 p-3 md:p-5">
      <div className="md:hidden"><h1 className="sr-only">Workflows</h1><To to="/workflows">all workflows</To></div>
      <h2 className="font-mono text-lg font-semibold break-all">{visible(w.tool ?? w.name)}</h2>
      <Suspense fallback={<Empty>Loading…</Empty>}><FlowEdit name={w.tool!} /></Suspense>
    </div>
  );
  const run = query.get("run") ?? "";
  const steps = w.graph.nodes.filter((n) => !["input", "output", "message"].includes(n.kind)).length;
  return (
    <div className="mx-auto flex max-w-5xl flex-col gap-3 p-3 md:p-5">
      <div className="md:hidden"><h1 className="sr-only">Workflows</h1><To to="/workflows">all workflows</To></div>
      <header className="flex flex-wrap items-center gap-2">
        <h2 className="font-mono text-lg font-semibold break-all">{visible(w.tool ?? w.name)}</h2>
        <Badge>{steps} {steps === 1 ? "step" : "steps"}</Badge>
        {w.tool && <span className="ml-auto text-sm"><To to={path("tools", w.tool)}>the tool that models see</To></span>}
        {owner && w.tool && <Button onClick={() => go(`${path("workflows", w.tool!)}?edit=1`)}>Edit</Button>}
      </header>
      {w.description && <p className="text-sm whitespace-pre-wrap break-words">{visible(w.description)}</p>}
      {run ? <LiveRun key={run} run={run} workflow={w} /> : <Panel title="Graph"><FlowGraph graph={w.graph} /></Panel>}
      <RunForm workflow={w} />
      <Ports workflow={w} />
      <Recent name={w.name} tool={w.tool!} current={run} />
    </div>
  );
}

function LiveRun({ run, workflow }: { run: string; workflow: Workflow }) {
  const followed = useRun(run);
  const { view: v, events } = followed;
  const progress = useMemo(() => progressOf(events), [events]);
  const waiting = (useApprovals().data?.items ?? []).filter((a) => a.run === run || a.run.startsWith(`${run}/`));
  const [error, setError] = useState<unknown>();
  if (followed.link === "refused") return <ErrorBox error={new Error(followed.why)} />;
  return (
    <>
      <Panel
        title={<span className="flex flex-wrap items-center gap-2">Run <State state={v.state} /></span>}
        actions={
          <>
            {!v.ended && <Button tone="danger" onClick={() => { post(`/api/v1/runs/${encodeURIComponent(run)}/cancel`, { reason: "stopped in the workbench" }).catch(setError); }}>Cancel</Button>}
            <To to={path("runs", run)} className="text-sm text-accent underline">What happened</To>
          </>
        }>
        {error !== undefined && <ErrorBox error={error} />}
        <FlowGraph graph={workflow.graph} progress={progress} ended={v.ended !== undefined} onChoose={(step) => go(`${path("runs", run)}?step=${encodeURIComponent(step)}`)} />
        {v.error && <p role="alert" className="border-t border-line px-3 py-2 text-sm break-words text-bad">{visible(v.error.message)}</p>}
        {v.answer && <p className="border-t border-line px-3 py-2 text-sm whitespace-pre-wrap break-words" aria-label="Message of the workflow" role="status">{visible(v.answer)}</p>}
      </Panel>
      {waiting.map((a) => <ApprovalCard key={a.id} approval={a} />)}
      <RunTables run={run} seq={v.ended} />
    </>
  );
}

/** Where the table of an input comes from. */
type Source = { file?: File; id?: string; run?: string; table?: string };

function RunForm({ workflow: w }: { workflow: Workflow }) {
  const schema = { ...w.parameters, type: "object" as const };
  const [value, setValue] = useState<unknown>(() => initial(schema) ?? {});
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [sources, setSources] = useState<Record<string, Source>>({});
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const start = async () => {
    const found = problemsOf(schema, value);
    for (const i of w.inputs) if (!sources[i.name]) found[`in:${i.name}`] = "choose a table";
    setErrors(found);
    if (Object.keys(found).length > 0) return;
    setBusy(true);
    setError(undefined);
    try {
      const inputs: Record<string, unknown> = {};
      for (const [port, s] of Object.entries(sources)) inputs[port] = s.file ? { data: await base64(s.file) } : s.id ? { file: s.id } : { run: s.run, table: s.table };
      const r = await post<{ run: Run }>(`/api/v1/workflows/${encodeURIComponent(w.tool!)}/run`, { parameters: value, ...(w.inputs.length ? { inputs } : {}) });
      invalidate(["runs"]);
      go(`${path("workflows", w.tool!)}?run=${encodeURIComponent(r.run.id)}`);
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  const none = Object.keys(schema.properties ?? {}).length === 0;
  return (
    <Panel title="Run it">
      <form className="flex flex-col gap-3 p-3" noValidate onSubmit={(e) => { e.preventDefault(); void start(); }}>
        {none && w.inputs.length === 0 && <p className="text-sm text-dim">It takes no parameters.</p>}
        {!none && <SchemaForm schema={schema} value={value} errors={errors} onChange={setValue} />}
        {w.inputs.map((i) => <TableChoice key={i.name} port={i} error={errors[`in:${i.name}`]} onChange={(s) => setSources((old) => { const next = { ...old }; if (s) next[i.name] = s; else delete next[i.name]; return next; })} />)}
        <div className="flex flex-wrap items-center gap-2">
          <Button type="submit" tone="primary" disabled={busy}>{busy ? "Starting…" : "Run"}</Button>
          <span className="text-xs text-dim">To run it is your consent to the workflow; what its steps call goes through the rules.</span>
        </div>
      </form>
      {error !== undefined && <ErrorBox error={error} />}
    </Panel>
  );
}

function TableChoice({ port, error, onChange }: { port: Workflow["inputs"][number]; error?: string; onChange: (s: Source | undefined) => void }) {
  const owner = useMe().data?.owner;
  const files = useQuery({ queryKey: ["tables"], queryFn: () => get<Page<TableFile>>("/api/v1/tables"), enabled: !!owner });
  const runs = useRuns({ limit: 50 }).data?.items.filter((r) => r.core.startsWith("workflow") && r.state === "completed").slice(0, 10) ?? [];
  const made = useQuery({
    queryKey: ["run tables", "made", runs.map((r) => r.id).join()],
    queryFn: async () => (await Promise.all(runs.map(async (r) => (await get<Page<RunTable>>(`/api/v1/runs/${encodeURIComponent(r.id)}/tables`)).items.filter((t) => t.role === "output").map((t) => ({ run: r, t }))))).flat(),
    enabled: runs.length > 0,
  });
  const [file, setFile] = useState<File>();
  const [at, setAt] = useState("");
  const pick = (value: string) => {
    setAt(value);
    setFile(undefined);
    const [kind, n] = value.split(" ");
    const f = files.data?.items[Number(n)];
    const m = made.data?.[Number(n)];
    onChange(kind === "file" && f ? { id: f.id } : kind === "made" && m ? { run: m.run.id, table: m.t.digest } : undefined);
  };
  const columns = Object.entries(port.columns ?? {}).map(([k, v]) => `${k}: ${v}`).join(", ");
  return (
    <Labelled label={<>{visible(port.name)} <span className="text-xs font-normal text-dim">table</span></>} error={error} hint={visible([port.description, columns && `with the columns ${columns}`].filter(Boolean).join(" · "))}>
      {(id) => (
        <div className="flex flex-wrap items-center gap-2">
          <select id={id} className={`${field} w-auto! max-w-full`} value={at} onChange={(e) => pick(e.target.value)}>
            <option value="">choose…</option>
            {(files.data?.items ?? []).map((f, i) => <option key={f.id} value={`file ${i}`}>{visible(f.name)}</option>)}
            {(made.data ?? []).map((m, i) => <option key={`${m.run.id} ${i}`} value={`made ${i}`}>{visible(`${m.t.name} of ${m.run.title}, ${plural(m.t.rows, "row")}`)}</option>)}
          </select>
          <label className="text-sm">or a file <input type="file" accept=".arrow,.arrows,.tooltable" aria-label={`File for ${visible(port.name)}`} className="max-w-full text-xs"
            onChange={(e) => { const f = e.target.files?.[0]; setFile(f); setAt(""); onChange(f && { file: f }); }} key={file ? "own" : "none"} /></label>
          {file && <span className="text-xs text-dim">{visible(file.name)}</span>}
        </div>
      )}
    </Labelled>
  );
}

function Ports({ workflow: w }: { workflow: Workflow }) {
  if (w.outputs.length === 0) return null;
  return (
    <Panel title="Tables that come out">
      <ul className="divide-y divide-line text-sm">
        {w.outputs.map((o) => <li key={o.name} className="px-3 py-1.5"><span className="font-mono text-xs font-medium">{visible(o.name)}</span> <span className="break-words text-dim">{visible(o.description ?? "")}</span></li>)}
      </ul>
    </Panel>
  );
}

function Recent({ name, tool, current }: { name: string; tool: string; current: string }) {
  const runs = (useRuns({ limit: 50 }).data?.items ?? []).filter((r) => r.core.startsWith("workflow") && r.title === `workflow ${name}`).slice(0, 10);
  if (runs.length === 0) return null;
  return (
    <Panel title="Its last runs">
      <ul className="divide-y divide-line text-sm">
        {runs.map((r) => (
          <li key={r.id} className={cx("flex flex-wrap items-center gap-2 px-3 py-1.5", r.id === current && "bg-accent-ground")}>
            <State state={r.interrupted ? "interrupted" : r.state} /><To to={`${path("workflows", tool)}?run=${encodeURIComponent(r.id)}`} className="truncate font-mono text-xs text-accent underline">{r.id}</To><span className="ml-auto text-xs text-dim"><Ago time={r.created} /></span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

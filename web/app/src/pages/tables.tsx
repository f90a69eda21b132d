// Tables: those in files, and those of runs, as grids.

import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { Failure, get, request, headers, readFailure, type Page } from "../api";
import { useMe } from "../data";
import { parse } from "../exact";
import { Grid, type Read } from "../grid";
import { go, usePlace } from "../router";
import type { RunTable, TableFile, TablePage } from "../types";
import { Ago, Badge, Button, Empty, ErrorBox, Panel, To, bytes, cx, grouped, path, visible } from "../ui";

export default function Tables() {
  const { query } = usePlace();
  const owner = useMe().data?.owner;
  const file = query.get("file") ?? "";
  const run = query.get("run") ?? "";
  const table = query.get("table") ?? "";
  return (
    <div className="mx-auto flex max-w-6xl flex-col gap-3 p-3 md:p-5">
      <h1 className="text-lg font-semibold">Tables</h1>
      {run ? <OfRun run={run} chosen={table} /> : owner ? <Files chosen={file} /> : <Empty>The tables in files are for the owner of this tenon. Those of your runs stand on the pages of the <To to="/runs">runs</To>.</Empty>}
      {run && table && <RunGrid key={run + table} run={run} table={table} />}
      {!run && file && <FileGrid key={file} file={file} />}
    </div>
  );
}

/** Sends a file as the body of a request. fetch reports no progress of a body, so this is an XMLHttpRequest. */
function upload(f: File, onProgress: (share: number) => void, stop: AbortSignal): Promise<TableFile> {
  return new Promise((resolve, reject) => {
    const x = new XMLHttpRequest();
    x.open("PUT", `/api/v1/tables?name=${encodeURIComponent(f.name)}`);
    for (const [name, value] of Object.entries(headers({ "Content-Type": "application/octet-stream" }))) x.setRequestHeader(name, value);
    x.upload.onprogress = (e) => onProgress(e.total ? e.loaded / e.total : 0);
    x.onload = () => {
      if (x.status === 201) resolve(parse(x.responseText) as TableFile);
      else void readFailure(new Response(x.responseText, { status: x.status })).then(reject);
    };
    x.onerror = () => reject(new Failure(0, "unreachable", "The upload broke off. Is tenon serve running?"));
    x.onabort = () => reject(new Failure(0, "cancelled", "The upload was stopped."));
    stop.addEventListener("abort", () => x.abort());
    x.send(f);
  });
}

function Files({ chosen }: { chosen: string }) {
  const list = useQuery({ queryKey: ["tables"], queryFn: () => get<Page<TableFile>>("/api/v1/tables"), staleTime: 0 });
  const [error, setError] = useState<unknown>();
  const [sent, setSent] = useState<number>(); // the share of an upload in progress
  const stop = useRef<AbortController>(undefined);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => () => stop.current?.abort(), []);
  const bring = async (f: File | undefined) => {
    if (!f) return;
    setError(undefined);
    setSent(0);
    stop.current = new AbortController();
    try {
      const t = await upload(f, setSent, stop.current.signal);
      await list.refetch();
      go(`/tables?file=${encodeURIComponent(t.id)}`);
    } catch (e) {
      setError(e);
    } finally {
      setSent(undefined);
      if (input.current) input.current.value = "";
    }
  };
  const remove = async (id: string) => {
    setError(undefined);
    try {
      await request("DELETE", `/api/v1/tables?file=${encodeURIComponent(id)}`);
      if (id === chosen) go("/tables");
      await list.refetch();
    } catch (e) {
      setError(e);
    }
  };
  const items = list.data?.items ?? [];
  return (
    <Panel title="In files" actions={
      <>
        <input ref={input} type="file" accept=".arrow,.arrows,.tooltable" aria-label="Table to upload" className="sr-only" tabIndex={-1} onChange={(e) => void bring(e.target.files?.[0])} />
        {sent === undefined ? <Button onClick={() => input.current?.click()}>Upload a table</Button> : (
          <>
            <progress aria-label="Upload" className="w-32" max={1} value={sent} />
            <span role="status" className="text-xs text-dim">{sent < 1 ? `${Math.floor(sent * 100)} %` : "checking…"}</span>
            <Button onClick={() => stop.current?.abort()}>Stop</Button>
          </>
        )}
      </>
    }>
      {list.isError && <ErrorBox error={list.error} retry={() => void list.refetch()} />}
      {error !== undefined && <ErrorBox error={error} />}
      {list.data && items.length === 0 && <Empty>There are no tables (.arrow, .arrows, .tooltable) in the project's folder, and none was uploaded.</Empty>}
      <ul aria-label="Tables" className="max-h-64 divide-y divide-line overflow-auto">
        {items.map((t) => (
          <li key={t.id} className={cx("flex flex-wrap items-center gap-x-3 px-3 py-1 text-sm", t.id === chosen && "bg-accent-ground")}>
            <To to={`/tables?file=${encodeURIComponent(t.id)}`} aria-current={t.id === chosen ? "page" : undefined} className="min-w-0 font-mono text-xs break-all text-ink hover:underline">{visible(t.name)}</To>
            {t.source === "uploaded" && <Badge>uploaded</Badge>}
            <span className="ml-auto text-xs text-dim">{bytes(t.bytes)}</span><span className="text-xs text-dim"><Ago time={t.changed} /></span>
            {t.source === "uploaded" && <Button tone="quiet" aria-label={`Remove ${visible(t.name)}`} onClick={() => void remove(t.id)}>✕</Button>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

const page = (at: string, skip: number, limit: number, whole: boolean, more = "") => get<TablePage>(`${at}skip=${skip}&limit=${limit}${whole ? "&whole=true" : ""}${more}`);

function FileGrid({ file }: { file: string }) {
  const at = `/api/v1/tables/rows?file=${encodeURIComponent(file)}&`;
  const first = useQuery({ queryKey: ["tables", "rows", file], queryFn: () => page(at, 0, 100, false, "&count=true"), staleTime: 0, gcTime: 0 });
  const read = useCallback<Read>((skip, limit, whole) => page(at, skip, limit, whole), [at]);
  if (first.isError) return <ErrorBox error={first.error} retry={() => void first.refetch()} />;
  if (!first.data) return <Empty>Reading…</Empty>;
  const [source = "", name = ""] = file.split(/:(.*)/s);
  return <Panel title={visible(name || source)}><Grid key={first.dataUpdatedAt} first={first.data} read={read} label={`Table ${name}`} /></Panel>;
}

export function RunGrid({ run, table }: { run: string; table: string }) {
  const api = `/api/v1/runs/${encodeURIComponent(run)}/tables/${encodeURIComponent(table)}?`;
  const first = useQuery({ queryKey: ["run tables", run, table], queryFn: () => page(api, 0, 100, false), gcTime: 0 });
  const read = useCallback<Read>((skip, limit, whole) => page(api, skip, limit, whole), [api]);
  if (first.isError) return <ErrorBox error={first.error} retry={() => void first.refetch()} />;
  if (!first.data) return <Empty>Reading…</Empty>;
  return <Panel title="Rows"><Grid first={first.data} read={read} label="Rows" /></Panel>;
}

function OfRun({ run, chosen }: { run: string; chosen: string }) {
  return (
    <>
      <p className="text-sm">Of run <To to={path("runs", run)}><span className="font-mono">{run}</span></To> · <To to="/tables">all tables</To></p>
      <RunTables run={run} chosen={chosen} />
    </>
  );
}

/** The tables that a run got, made and gave. */
export function RunTables({ run, chosen, seq }: { run: string; chosen?: string; seq?: number }) {
  const list = useQuery({ queryKey: ["run tables", run, "list", seq ?? 0], queryFn: () => get<Page<RunTable>>(`/api/v1/runs/${encodeURIComponent(run)}/tables`), placeholderData: (old) => old });
  const [error, setError] = useState<unknown>();
  const items = list.data?.items ?? [];
  if (list.isError) return <ErrorBox error={list.error} retry={() => void list.refetch()} />;
  if (items.length === 0) return null;
  return (
    <Panel title="Tables">
      {error !== undefined && <ErrorBox error={error} />}
      <ul aria-label="Tables of the run" className="max-h-64 divide-y divide-line overflow-auto">
        {items.slice(0, 500).map((t, i) => (
          <li key={i} className={cx("flex flex-wrap items-center gap-x-3 px-3 py-1 text-sm", t.digest === chosen && "bg-accent-ground")}>
            <Badge tone={t.role === "output" ? "ok" : t.role === "input" ? "accent" : "dim"}>{t.role}</Badge>
            <To to={`/tables?run=${encodeURIComponent(run)}&table=${encodeURIComponent(t.digest ?? "")}`} aria-current={t.digest === chosen ? "page" : undefined} className="font-mono text-xs break-all text-ink hover:underline">{visible(t.name)}</To>
            <span className="min-w-0 truncate text-xs text-dim">{visible(t.columns.slice(0, 8).map((c) => c.name).join(", "))}</span>
            <span className="ml-auto text-xs text-dim">{grouped(t.rows)} {t.rows === 1 ? "row" : "rows"}</span>
            <Button tone="quiet" onClick={() => { setError(undefined); save(run, t).catch(setError); }}>Download</Button>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** A link alone would not carry the token. */
async function save(run: string, t: RunTable): Promise<void> {
  const res = await fetch(`/api/v1/runs/${encodeURIComponent(run)}/tables/${encodeURIComponent(t.digest ?? "")}?download=true`, { headers: headers(), cache: "no-store" });
  if (!res.ok) throw await readFailure(res);
  const url = URL.createObjectURL(await res.blob());
  Object.assign(document.createElement("a"), { href: url, download: `${t.name.replace(/[^\w.-]/g, "_")}.arrow` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

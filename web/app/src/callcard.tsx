// A tool call as a card that lives: what was called, with what, how it gets on, what
// came of it.

import { memo, useEffect, useState } from "react";
import { Arguments } from "./judged";
import { FileRow, Whole, mostDrawn, sizeOf } from "./files";
import { type Call, type Progress, progressText } from "./fold";
import type { Content, ToolResult } from "./types";
import { Badge, Button, Json, LongText, State, To, cx, millis, path, plural, visible } from "./ui";

export const CallCard = memo(function CallCard({ call, run, open: opened }: { call: Call; run: string; open?: boolean }) {
  const [open, setOpen] = useState(opened ?? false);
  const took = call.started && call.ended ? call.ended - call.started : undefined;
  return (
    <div data-step={call.step} className="rounded-lg border border-line bg-panel">
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)} className="flex w-full min-w-0 items-center gap-2 rounded-lg px-3 py-1.5 text-left hover:bg-sunk">
        <span aria-hidden className="text-dim">{open ? "▾" : "▸"}</span>
        <span className="min-w-0 truncate font-mono text-xs">
          {call.server && <span className="text-dim">{visible(call.server)}.</span>}<strong>{visible(call.remote ?? call.name)}</strong>
          {!open && <span className="ml-2 text-dim">{summary(call.arguments ?? call.proposed)}</span>}
        </span>
        <span className="ml-auto flex shrink-0 items-center gap-1.5 text-xs text-dim">
          {call.source === "cache" && <Badge tone="accent">cached</Badge>}
          {call.attempts > 1 && <Badge tone="warn">attempt {call.attempts}</Badge>}
          {call.status === "running" ? <Running since={call.started} /> : millis(took)}
          <State state={call.status} />
        </span>
      </button>
      <CallProgress call={call} />
      {!open && <CallFiles call={call} />}
      {open && (
        <div className="flex flex-col gap-2 border-t border-line px-3 py-2">
          <Arguments value={call.arguments ?? call.proposed} />
          {(call.by || call.reason) && (
            <p className="text-xs break-words text-dim">
              {(call.status === "denied" && !call.unrun) || call.status === "invalid" ? "refused" : "decided"}{call.by && ` by ${visible(call.by)}`}{call.reason && `: ${visible(call.reason)}`}
            </p>
          )}
          {call.unrun && <p className="text-sm break-words text-warn">{visible(call.unrun)}</p>}
          {call.error && <p role="alert" className="text-sm break-words text-bad">{visible(call.error.message)} <span className="font-mono text-xs">{call.error.code}</span></p>}
          {call.status === "unknown" && <p className="text-sm text-violet">The call was in flight when its process or connection ended. Whether it took effect is not known; it is not repeated.</p>}
          {call.result && <Result result={call.result} />}
          {call.artifact && <Whole run={run} id={call.artifact.id} size={call.artifact.bytes} />}
          <p className="flex gap-3 text-xs">
            <To to={`${path("runs", run)}?step=${encodeURIComponent(call.step)}`}>Open in the run</To>
            {call.child && <To to={path("runs", call.child)}>Run of the agent</To>}
            {call.server && call.remote && <To to={path("tools", `${call.server}.${call.remote}`)}>The tool</To>}
          </p>
        </div>
      )}
    </div>
  );
});

function summary(args: unknown): string {
  if (!args || typeof args !== "object") return "";
  const text = Object.entries(args).map(([k, v]) => `${k}: ${typeof v === "string" ? v.slice(0, 80) : JSON.stringify(v)?.slice(0, 80)}`).join(", ");
  return visible(text.slice(0, 200));
}

function Running({ since }: { since?: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const t = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(t);
  }, []);
  return <span>{since ? millis(now - since) : ""}</span>;
}

/** How far a call is, while it runs and its server has said so. */
export function CallProgress({ call, named }: { call: Call; named?: boolean }) {
  if (!call.progress || call.status !== "running") return null;
  const { progress, total }: Progress = call.progress;
  return (
    <div className="px-3 pb-1.5">
      <progress className="h-1.5 w-full accent-accent" value={total ? Math.min(1, progress / total) : undefined} max={1} aria-label="progress" />
      <p className="truncate text-xs text-dim">
        {named && <span className="mr-2 font-mono">{visible(call.remote ?? call.name)}</span>}{visible(progressText(call.progress))}
      </p>
    </div>
  );
}

/** The pictures, sounds and files of a result. */
export const filesOf = (call: Call) => (call.result?.content ?? []).filter((c) => !!dataOf(c)).slice(0, 20);

/** What of a result is seen without unfolding its call. */
export function CallFiles({ call }: { call: Call }) {
  const shown = filesOf(call);
  if (shown.length === 0) return null;
  return <div className="flex flex-wrap gap-2 px-3 pb-2">{shown.map((c, i) => <Block key={i} c={c} />)}</div>;
}

type Tab = "text" | "table" | "json";

/** A result as what it is: text, a table where its rows have one shape, a tree, pictures. */
export function Result({ result }: { result: ToolResult }) {
  const rows = tableOf(result.structuredContent);
  const tabs: Tab[] = ["text", ...(rows ? ["table" as const] : []), "json"];
  const [tab, setTab] = useState<Tab>(rows ? "table" : "text");
  return (
    <div className={cx("rounded-md border", result.isError ? "border-bad/50" : "border-line")}>
      <div role="tablist" aria-label="Result as" className="flex gap-1 border-b border-line px-1 py-0.5">
        {tabs.map((t) => (
          <Button key={t} role="tab" aria-selected={t === tab} tone="quiet" className={cx("text-xs", t === tab && "bg-sunk text-ink")} onClick={() => setTab(t)}>{t}</Button>
        ))}
        {result.isError && <span className="ml-auto self-center pr-1"><Badge tone="bad">the tool reports an error</Badge></span>}
      </div>
      <div className="p-2">
        {tab === "json" ? <Json value={result} /> : tab === "table" && rows ? <Table rows={rows} /> : <Blocks content={result.content ?? []} structured={result.structuredContent} />}
      </div>
    </div>
  );
}

function Blocks({ content, structured }: { content: Content[]; structured?: unknown }) {
  if (content.length === 0) return structured !== undefined ? <Json value={structured} /> : <p className="text-xs text-dim">an empty result</p>;
  return <div className="flex flex-col gap-2">{content.slice(0, 100).map((c, i) => <Block key={i} c={c} />)}</div>;
}

const pictures = /^image\/(png|jpeg|gif|webp|avif)$/;
const sounds = /^audio\/[\w.+-]+$/;
const dataOf = (c: Content) => c.data ?? c.resource?.blob;
const mimeOf = (c: Content) => c.mimeType ?? c.resource?.mimeType ?? "";

/** Says whether a picture or sound is drawn in place. Other files have a row with a button to save them. */
export const isDrawn = (c: Content) => {
  const data = dataOf(c);
  return !!data && sizeOf(data) <= mostDrawn && (pictures.test(mimeOf(c)) || sounds.test(mimeOf(c)));
};

export function Block({ c }: { c: Content }) {
  if (c.type === "text") return isDiff(c.text ?? "") ? <Diff text={c.text!} /> : <LongText text={c.text ?? ""} />;
  const data = dataOf(c);
  const mime = mimeOf(c);
  if (isDrawn(c)) {
    if (pictures.test(mime)) return <img alt={c.name ? visible(c.name) : "a picture from the tool"} className="max-w-full self-start rounded border border-line" src={`data:${mime};base64,${data}`} />;
    return <audio controls className="max-w-full" aria-label={c.name ? visible(c.name) : "a sound from the tool"} src={`data:${mime};base64,${data}`} />;
  }
  if (data) return <FileRow c={c} data={data} mime={mime} />;
  if (c.resource?.text !== undefined) return <><p className="font-mono text-xs text-dim">{visible(c.resource.uri)}</p><LongText text={c.resource.text} /></>;
  if (c.type === "resource_link") return <p className="text-sm break-all">→ {visible(c.name ?? "")} <span className="font-mono text-xs text-dim">{visible(c.uri ?? "")}</span></p>;
  return <Json value={c} />;
}

const isDiff = (t: string) => t.length < 100_000 && /^(--- |diff --git )/m.test(t) && /^@@ .* @@/m.test(t);

function Diff({ text }: { text: string }) {
  return (
    <pre tabIndex={0} className="max-h-96 overflow-auto font-mono text-xs">
      {text.split("\n").slice(0, 2000).map((l, i) => (
        <span key={i} className={cx("block", l.startsWith("+") ? "bg-ok-ground text-ok" : l.startsWith("-") ? "bg-bad-ground text-bad" : l.startsWith("@@") && "text-accent")}>{visible(l) || " "}</span>
      ))}
    </pre>
  );
}

/** The rows of structured content that is a list of objects, or holds just one such list. */
function tableOf(v: unknown): Record<string, unknown>[] | null {
  if (v && typeof v === "object" && !Array.isArray(v)) {
    const lists = Object.values(v).filter(Array.isArray);
    return lists.length === 1 ? tableOf(lists[0]) : null;
  }
  if (!Array.isArray(v) || v.length === 0 || !v.every((r) => r && typeof r === "object" && !Array.isArray(r))) return null;
  return v as Record<string, unknown>[];
}

function Table({ rows }: { rows: Record<string, unknown>[] }) {
  const [n, setN] = useState(50);
  const columns = [...new Set(rows.slice(0, 50).flatMap((r) => Object.keys(r)))].slice(0, 30);
  return (
    <div className="max-h-96 overflow-auto" tabIndex={0}>
      <table className="w-full text-xs">
        <thead className="sticky top-0 bg-panel"><tr>{columns.map((c) => <th key={c} scope="col" className="border-b border-line px-2 py-1 text-left font-medium text-dim">{visible(c)}</th>)}</tr></thead>
        <tbody>
          {rows.slice(0, n).map((r, i) => (
            <tr key={i} className="odd:bg-sunk">{columns.map((c) => <td key={c} className="max-w-80 truncate px-2 py-0.5 font-mono">{cell(r[c])}</td>)}</tr>
          ))}
        </tbody>
      </table>
      {rows.length > n && <Button tone="quiet" onClick={() => setN(n + 200)}>{plural(rows.length - n, "more row")}</Button>}
    </div>
  );
}

const cell = (v: unknown) => (v === undefined ? "" : visible(typeof v === "string" ? v.slice(0, 500) : JSON.stringify(v).slice(0, 500)));

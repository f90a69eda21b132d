// One run, three views of its one history: over time, event by event, as JSON.

import { useVirtualizer } from "@tanstack/react-virtual";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { CitedText, Made } from "../answer";
import { get, post } from "../api";
import { ApprovalCard } from "../approval";
import { CallCard, CallFiles, CallProgress, filesOf } from "../callcard";
import { useApprovals, useInterrupted } from "../data";
import { type Call, type Item, type Text, toolsText, unsent } from "../fold";
import { progressOf, stepOf } from "../flow";
import { Whole } from "../files";
import { FlowGraph } from "../flowgraph";
import { Markdown } from "../markdown";
import { follower, useRun } from "../run";
import { go, usePlace } from "../router";
import type { Replay, RunEvent, Workflow } from "../types";
import { RunTables } from "./tables";
import { Ago, Button, ErrorBox, Json, Panel, State, To, count, cx, dollars, millis, path, plural, visible } from "../ui";
import { Waterfall } from "../waterfall";

export default function RunPage({ id }: { id: string }) {
  const followed = useRun(id);
  const { view: v, events } = followed;
  const { query } = usePlace();
  const chosen = query.get("step") ?? "";
  const [tab, setTab] = useState<"events" | "json">("events");
  const [error, setError] = useState<unknown>();
  const [replayed, setReplayed] = useState<Replay>();
  const flow = v.core.startsWith("workflow");
  const waiting = (useApprovals().data?.items ?? []).filter((a) => a.run === id || a.run.startsWith(`${id}/`));
  const choose = (step: string) => go(step === chosen ? path("runs", id) : `${path("runs", id)}?step=${encodeURIComponent(step)}`, true);
  const act = async (what: string, body: unknown = {}) => {
    setError(undefined);
    try {
      await post(`/api/v1/runs/${encodeURIComponent(id)}/${what}`, body);
      if (what === "resume") follower(id).again();
    } catch (e) {
      setError(e);
    }
  };
  const replay = async () => {
    setError(undefined);
    setReplayed(undefined);
    try {
      setReplayed(await post<Replay>(`/api/v1/runs/${encodeURIComponent(id)}/replay`));
    } catch (e) {
      setError(e);
    }
  };
  const shown = useMemo(() => (chosen ? events.filter((e) => e.step === chosen || e.step?.startsWith(`${chosen}/`) || (flow && e.step && stepOf(e.step) === chosen)) : events), [events, chosen, flow]);
  const interrupted = useInterrupted(id, v.state === "working" && followed.caughtUp);
  const stopped = v.items.findLast((i) => i.kind === "text" && i.cut && i.text !== "");
  if (followed.link === "refused") return <ErrorBox error={new Error(followed.why)} />;
  const call = v.items.findLast((i) => i.kind === "call" && i.step === chosen) as Call | undefined;
  const ended = v.ended !== undefined;
  return (
    <div className="mx-auto flex max-w-6xl flex-col gap-3 p-3 md:p-5">
      <header className="flex flex-wrap items-center gap-2">
        <h1 className="line-clamp-3 min-w-0 basis-full text-lg font-semibold break-words sm:line-clamp-1 sm:flex-1 sm:basis-0">{visible(v.question || id)}</h1>
        <State state={interrupted ? "interrupted" : v.state} />
        {!ended && <Button tone="danger" onClick={() => void act("cancel", { reason: "stopped in the workbench" })}>Cancel</Button>}
        {(v.state === "failed" || (v.state !== "completed" && v.state !== "cancelled")) && <Button onClick={() => void act("resume")}>Resume</Button>}
        <Button title="fold the journal again and compare; nothing is carried out" onClick={() => void replay()}>Replay</Button>
        {v.session && <Button onClick={() => go(path("sessions", v.session))}>Conversation</Button>}
      </header>
      {error !== undefined && <ErrorBox error={error} />}
      {replayed && (
        <p role="status" aria-label="Replay" className={cx("rounded-md px-3 py-2 text-sm break-words", replayed.same ? "bg-ok-ground text-ok" : "bg-bad-ground text-bad")}>
          {replayed.same ? `Replayed: ${plural(replayed.events, "event")} and ${plural(replayed.commands, "command")} give the same run. Nothing was carried out.` : `Replayed: the run is not what its journal says. ${visible(replayed.mismatch ?? "")}`}
        </p>
      )}
      {followed.link === "lost" && <p role="status" className="text-sm text-warn">Not up to date since <Ago time={followed.since} />; it is tried again.</p>}
      <dl className="grid grid-cols-2 gap-x-4 gap-y-1 text-sm sm:grid-cols-4 lg:grid-cols-8">
        {flow ? <Fact name="Logic">workflow</Fact> : <><Fact name="Agent">{visible(v.agent)}</Fact><Fact name="Model">{visible(v.model)}</Fact></>}
        <Fact name="Begun"><Ago time={v.created} /></Fact>
        <Fact name="Took">{v.created ? millis((v.ended ?? Date.now()) - v.created) : ""}</Fact>
        {!flow && <Fact name="Turns">{v.turns}</Fact>}
        {(!flow || v.usage.input_tokens > 0) && <Fact name="Tokens">{count(v.usage.input_tokens)} in, {count(v.usage.output_tokens)} out</Fact>}
        <Fact name="Cost">{dollars(v.cost) || "not known"}</Fact>
        <Fact name="End">{v.stop?.replaceAll("_", " ") ?? "not yet"}</Fact>
      </dl>
      {events.filter((e) => e.kind === "handoff").flatMap((e) => unsent(e.data).map((text, i) => (
        <p key={`${e.seq} ${i}`} role="status" className="border-l-2 border-warn px-2 text-sm break-words text-warn">Step {e.step}, handed over to {visible(e.data.agent)}: {visible(text)}</p>
      )))}
      {waiting.map((a) => <ApprovalCard key={a.id} approval={a} />)}
      {v.error && <ErrorBox error={new Error(v.error.message)} />}
      <Panel>
        <Waterfall view={v} chosen={chosen} onChoose={choose} />
        {v.items.map((i) => i.kind === "call" && i !== call && <CallProgress key={i.step} call={i} named />)}
      </Panel>
      {call && <CallCard key={call.step} call={call} run={id} open />}
      <Files items={v.items.filter((i) => i !== call)} run={id} />
      {stopped?.kind === "text" && <Panel title="Answer until it was stopped"><div className="p-3"><Markdown text={visible(stopped.text)} /></div></Panel>}
      {v.answer && <Panel title="Answer"><div className="flex flex-col gap-2 p-3"><CitedText text={v.answer} citations={citedFor(v.answer, v.items)} /></div></Panel>}
      {flow && <RunFlow id={id} events={events} ended={ended} chosen={chosen} onChoose={choose} />}
      <RunTables run={id} seq={v.ended} />
      <Panel
        title="History"
        actions={
          <>
            {chosen && <Button tone="quiet" onClick={() => choose(chosen)}>all steps</Button>}
            <div role="tablist" aria-label="History as" className="flex gap-1">
              {(["events", "json"] as const).map((t) => <Button key={t} role="tab" aria-selected={t === tab} tone="quiet" className={cx(t === tab && "bg-sunk text-ink")} onClick={() => setTab(t)}>{t === "json" ? "JSON" : "Events"}</Button>)}
            </div>
          </>
        }>
        <History events={shown} json={tab === "json"} begin={v.created ?? 0} />
      </Panel>
      <p className="text-xs text-dim">
        <span className="font-mono">{id}</span> · <code className="font-mono">tenon runs show {id}</code>
        {v.id.includes("/") && <> · called by <To to={path("runs", v.id.slice(0, v.id.lastIndexOf("/")))}>another run</To></>}
      </p>
    </div>
  );
}

const mostWithFiles = 20;

/** The citations of an answer. Those of structured output refer to another text and keep no place. */
function citedFor(answer: string, items: Item[]): Text["citations"] {
  const last = items.findLast((i) => i.kind === "text" && i.text !== "" && !i.cut) as Text | undefined;
  return last?.text === answer ? last.citations : last?.citations?.map((c) => ({ ...c, start: 0, end: 0 }));
}

/** What the steps gave besides text, where one sees it without choosing a step. */
function Files({ items, run }: { items: Item[]; run: string }) {
  const [all, setAll] = useState(false);
  const made = items.filter((i): i is Call | Text => (i.kind === "call" ? !!i.artifact || filesOf(i).length > 0 : i.kind === "text" && !!i.media));
  if (made.length === 0) return null;
  return (
    <Panel title="Artifacts">
      <ol aria-label="Artifacts" className="divide-y divide-line">
        {made.slice(0, all ? made.length : mostWithFiles).map((c) => (
          <li key={c.step} className="flex min-w-0 flex-col gap-1 py-1.5">
            <p className="px-3 font-mono text-xs"><To to={`${path("runs", run)}?step=${encodeURIComponent(c.step)}`}>step {c.step}</To> {visible(c.kind === "text" ? (c.model ?? "the model") : (c.remote ?? c.name))}</p>
            {c.kind === "text" ? <div className="px-3 pb-1"><Made media={c.media!} step={c.step} /></div> : <CallFiles call={c} />}
            {c.kind === "call" && c.artifact && <div className="px-3"><Whole run={run} id={c.artifact.id} size={c.artifact.bytes} /></div>}
          </li>
        ))}
      </ol>
      {!all && made.length > mostWithFiles && <Button tone="quiet" onClick={() => setAll(true)}>{made.length - mostWithFiles} more steps</Button>}
    </Panel>
  );
}

/** The graph of a workflow's run, with how far each step has come. */
function RunFlow({ id, events, ended, chosen, onChoose }: { id: string; events: RunEvent[]; ended: boolean; chosen: string; onChoose: (step: string) => void }) {
  const w = useQuery({ queryKey: ["workflows", "of", id], queryFn: () => get<Workflow>(`/api/v1/runs/${encodeURIComponent(id)}/workflow`) });
  const progress = useMemo(() => progressOf(events), [events]);
  if (w.isError) return <ErrorBox error={w.error} retry={() => void w.refetch()} />;
  if (!w.data) return null;
  return <Panel title={<>Steps of {visible(w.data.name)}</>}><FlowGraph graph={w.data.graph} progress={progress} ended={ended} chosen={stepOf(chosen)} onChoose={onChoose} /></Panel>;
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return <div className="min-w-0"><dt className="text-xs text-dim">{name}</dt><dd className="truncate">{children}</dd></div>;
}

const rowHeight = 26;

function History({ events, json, begin }: { events: RunEvent[]; json: boolean; begin: number }) {
  const box = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<number>();
  const rows = useVirtualizer({ count: events.length, getScrollElement: () => box.current, estimateSize: () => rowHeight, overscan: 15, getItemKey: (i) => events[i]!.seq });
  useEffect(() => {
    setOpen(undefined);
    rows.measure();
  }, [json, rows]);
  const toggle = (e: RunEvent, row: number) => {
    rows.resizeItem(row, rowHeight); // what opens is measured; most rows never are, because that makes the browser lay out the page
    setOpen(open === e.seq ? undefined : e.seq);
  };
  return (
    <div ref={box} tabIndex={0} role="region" aria-label="Events" className="max-h-[60vh] overflow-auto">
      <ol style={{ height: rows.getTotalSize() }} className="relative">
        {rows.getVirtualItems().map((r) => {
          const e = events[r.index]!;
          return (
            <li key={r.key} data-index={r.index} ref={json || open === e.seq ? rows.measureElement : undefined} className="absolute inset-x-0 border-b border-line" style={{ transform: `translateY(${r.start}px)` }}>
              {json ? (
                <pre className="overflow-x-auto px-3 py-1 font-mono text-xs whitespace-pre-wrap break-all">{visible(short(JSON.stringify(e)))}</pre>
              ) : (
                <>
                  <button type="button" aria-expanded={open === e.seq} onClick={() => toggle(e, r.index)} className="flex h-6.25 w-full items-center gap-3 px-3 text-left text-xs hover:bg-sunk">
                    <span className="w-10 shrink-0 text-right text-dim max-sm:hidden">{e.seq}</span>
                    <span className="w-14 shrink-0 text-right text-dim sm:w-16">{begin ? `+${millis(Date.parse(e.time) - begin)}` : ""}</span>
                    <span className="w-8 shrink-0 truncate font-mono sm:w-12">{e.step}</span>
                    <span className="w-16 shrink-0 truncate font-medium sm:w-28">{e.kind}</span>
                    <span className="min-w-0 truncate font-mono text-dim">{visible(gist(e))}</span>
                  </button>
                  {open === e.seq && <div className="px-3 pb-2"><Json value={e.data} /></div>}
                </>
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

const short = (t: string) => (t.length > 20_000 ? `${t.slice(0, 20_000)}… (${count(t.length)} characters)` : t);

/** What an event says, in a line. */
function gist(e: RunEvent): string {
  const d = e.data ?? {};
  switch (e.kind) {
    case "proposed": return `${d.name} ${short(JSON.stringify(d.arguments ?? d.malformed ?? {})).slice(0, 200)}`;
    case "decided": case "decision": return [d.verdict, d.by && `by ${d.by}`, d.reason].filter(Boolean).join(", ");
    case "result": return (d.result?.content ?? []).map((c: { type: string; text?: string }) => c.text?.slice(0, 200) ?? c.type).join(" ");
    case "model": return (d.message?.parts ?? []).map((p: { type: string; text?: string; call?: { name: string } }) => p.text?.slice(0, 200) ?? p.call?.name ?? "").filter(Boolean).join(" ");
    case "failed": return d.error?.message ?? "";
    case "done": return `${d.state}, ${d.stop_reason}`;
    case "tools": return toolsText(d);
    case "handoff": return [`to ${d.agent}`, ...unsent(d)].join("; ");
    case "message": return d.text ?? "";
    case "started": return d.kind ?? "";
    case "run": return d.data?.question ?? "";
  }
  return "";
}

// One run within a conversation: what was asked, what was done about it, the answer.

import { memo, useEffect, useMemo, useState } from "react";
import { CitedText, Made } from "./answer";
import { Sent } from "./attach";
import { post } from "./api";
import { ApprovalCard } from "./approval";
import { CallCard } from "./callcard";
import { type Row, CallGroup, rowsOf } from "./callgroup";
import { useApprovals, useInterrupted } from "./data";
import type { Call, Item, Text as TextItem, View } from "./fold";
import { follower, useRun } from "./run";
import { Steps } from "./steps";
import type { Approval, Run } from "./types";
import { Ago, Button, Copy, ErrorBox, Spinner, State, To, count, cx, dollars, path, plural, visible } from "./ui";

export function RunView({ run, onFork, onAsk, onAgain }: { run: Run; onFork?: (at: string) => void; onAsk?: (question: string) => void; onAgain?: (question: string) => Promise<void> }) {
  const followed = useRun(run.id);
  const v = followed.view;
  const rows = useMemo(() => rowsOf(v.items), [v.items]);
  const waiting = useWaiting(run.id, v);
  const interrupted = useInterrupted(run.id, v.state === "working" && followed.caughtUp);
  const end = v.items.at(-1);
  const answered = end?.kind === "text" && (end.text !== "" || !!end.media);
  return (
    <section aria-label={`Question: ${visible(v.question.slice(0, 80))}`} data-run={run.id} className="flex flex-col gap-2.5">
      <div className="flex flex-col gap-0.5">
        <Bubble who="you"><p className="whitespace-pre-wrap break-words">{visible(v.question || run.title || "")}</p><Sent files={v.attached} /></Bubble>
        {onAsk && v.ended && <Button tone="quiet" className="self-end px-1! py-0 text-xs" onClick={() => onAsk(v.question)}>Edit and ask again</Button>}
      </div>
      <Steps count={rows.length} what="step" render={(i) => <RowView row={rows[i]!} run={run.id} onFork={v.ended ? onFork : undefined} />} />
      {waiting.map((a) => <ApprovalCard key={a.id} approval={a} />)}
      {v.error && !said(v) && <p role="alert" className="rounded-md border border-bad/40 bg-bad-ground px-3 py-2 text-sm break-words text-bad">{visible(v.error.message)} <span className="font-mono text-xs">{v.error.code}</span></p>}
      {interrupted && <p role="status" className="px-1 text-sm text-warn">The process of this run died. <To to={path("runs", run.id)}>Its page</To> resumes it.</p>}
      {v.state === "working" && !interrupted && followed.caughtUp && !v.items.some((i) => (i.kind === "text" && i.live) || (i.kind === "call" && i.status === "running")) && <p className="flex items-center gap-2 px-1 text-sm text-dim" role="status"><Spinner /> Thinking…<Since time={v.spans.findLast((s) => s.end === undefined)?.start ?? v.created} /></p>}
      <footer className="flex flex-wrap items-center gap-x-3 gap-y-1 px-1 text-xs text-dim">
        <State state={interrupted ? "interrupted" : v.state} />
        {v.stop && v.stop !== "stop" && v.stop !== v.state && !(v.state === "failed" && v.stop === "error") && <span>{v.stop.replaceAll("_", " ")}</span>}
        <Ago time={v.ended ?? v.created} />
        {v.usage.input_tokens + v.usage.output_tokens > 0 && <span>{plural(v.usage.input_tokens, "token")} in, {count(v.usage.output_tokens)} out</span>}
        {v.cost !== undefined && <span>{dollars(v.cost)}</span>}
        {onFork && v.ended && !answered && <Button tone="quiet" className="px-1 py-0 text-xs" onClick={() => onFork(run.id)}>Branch from here</Button>}
        <To to={path("runs", run.id)}>What happened</To>
        {v.ended && <Again run={run.id} view={v} onAgain={onAgain} />}
        {followed.link === "lost" && <span className="text-warn">not up to date since <Ago time={followed.since} /></span>}
      </footer>
    </section>
  );
}

/** The seconds since a time, from the third on. */
function Since({ time }: { time?: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const t = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(t);
  }, []);
  const s = time ? Math.floor((now - time) / 1000) : 0;
  return s > 2 ? <span aria-hidden>{s} s</span> : null;
}

/** Whether a note among the items says already why the run ended. */
function said(v: View): boolean {
  return v.items.some((i) => i.kind === "note" && (v.state === "cancelled" ? i.step === "cancel" : i.tone === "error" && i.text.includes(v.error!.message)));
}

/** Continues a run that failed, or asks its question again, which begins a branch. */
function Again({ run, view, onAgain }: { run: string; view: View; onAgain?: (question: string) => Promise<void> }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const act = (f: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    f().catch(setError).finally(() => setBusy(false));
  };
  const resume = async () => {
    await post(`/api/v1/runs/${encodeURIComponent(run)}/resume`, {});
    follower(run).again();
  };
  return (
    <>
      {view.state === "failed" && <Button tone="quiet" className="px-1 py-0 text-xs" disabled={busy} title="goes on after the last step that ended" onClick={() => act(resume)}>Try again</Button>}
      {onAgain && view.plain && <Button tone="quiet" className="px-1 py-0 text-xs" disabled={busy} title="the same question once more, in a branch" onClick={() => act(() => onAgain(view.question))}>{view.state === "completed" ? "Answer again" : "Ask again"}</Button>}
      {error !== undefined && <ErrorBox error={error} />}
    </>
  );
}

/**
 * What a run waits for, with what the list of approvals knows; also what runs that it called wait for. The list
 * may be older than the view: what is decided there is left out. Calls that run beside others may ask before the
 * run itself waits.
 */
function useWaiting(run: string, { waiting, spans, session }: View): Approval[] {
  const all = useApprovals().data?.items ?? [];
  const listed = all.filter((a) => a.run === run || a.run.startsWith(`${run}/`));
  const open = (step: string) => waiting.some((w) => w.step === step) || spans.some((s) => s.lane === "wait" && s.step === step && s.end === undefined);
  const own = waiting
    .filter((w) => w.data && w.data.kind !== "child" && !listed.some((a) => a.run === run && a.step === w.step))
    .map((w) => ({ ...w.data!, id: `${run}/${w.step}`, run, step: w.step, session, since: w.since, expires: w.expires }));
  return [...listed.filter((a) => a.run !== run || open(a.step)), ...own];
}

const RowView = memo(function RowView({ row, run, onFork }: { row: Row; run: string; onFork?: (at: string) => void }) {
  return row.length > 1 ? <CallGroup calls={row as Call[]} run={run} /> : <ItemView item={row[0]!} run={run} onFork={onFork} />;
}, (a, b) => a.run === b.run && a.onFork === b.onFork && a.row.length === b.row.length && a.row.every((item, i) => item === b.row[i]));

const ItemView = memo(function ItemView({ item, run, onFork }: { item: Item; run: string; onFork?: (at: string) => void }) {
  switch (item.kind) {
    case "call":
      return <CallCard call={item} run={run} />;
    case "text":
      return <TextView item={item} onFork={onFork && item.seq ? () => onFork(`${run}:${item.seq}`) : undefined} />;
    case "said":
      return <Bubble who={item.by && item.by !== "local" ? visible(item.by) : "you, meanwhile"}><p className="whitespace-pre-wrap break-words">{visible(item.text)}</p></Bubble>;
    case "note":
      return <p role={item.tone === "error" ? "alert" : undefined} className={cx("border-l-2 px-2 text-sm break-words", item.tone === "error" ? "border-bad text-bad" : item.tone === "warn" ? "border-warn text-warn" : "border-line text-dim")}>{visible(item.text)}</p>;
  }
});

function TextView({ item, onFork }: { item: TextItem; onFork?: () => void }) {
  const [open, setOpen] = useState(false);
  if (!item.text && !item.thinking && !item.media && !item.hosted) return null;
  return (
    <div className="flex flex-col gap-1.5" aria-live={item.live ? "polite" : undefined}>
      {item.thinking && (
        <div className="text-sm text-dim">
          <button type="button" aria-expanded={open} className="rounded hover:text-ink" onClick={() => setOpen(!open)}>{open ? "▾" : "▸"} Reasoning</button>
          {open && <p className="mt-1 border-l-2 border-line pl-3 whitespace-pre-wrap break-words">{visible(item.thinking)}</p>}
        </div>
      )}
      {item.hosted?.slice(0, 20).map((h, i) => <p key={i} className="px-1 text-xs break-words text-dim"><span aria-hidden>⚙ </span>{visible(h.slice(0, 500))}</p>)}
      <CitedText text={item.text} citations={item.citations}>{item.live && <span aria-hidden className="ml-0.5 inline-block h-4 w-1.5 animate-pulse bg-accent align-text-bottom" />}</CitedText>
      {item.media && <div className="px-1"><Made media={item.media} step={item.step} /></div>}
      {item.cut && !item.told && <p className="px-1 text-xs text-warn">It was stopped here.</p>}
      {(item.text || item.media) && !item.live && (
        <div className="flex gap-2 text-xs [&_button]:px-1! [&_button]:py-0 [&_button]:text-xs">
          {item.text && <Copy text={item.text} name="Copy the answer" />}
          {onFork && <Button tone="quiet" onClick={onFork}>Branch from here</Button>}
        </div>
      )}
    </div>
  );
}

export function Bubble({ who, children }: { who: string; children: React.ReactNode }) {
  return (
    <div className="ml-auto max-w-[85%] rounded-xl rounded-br-sm bg-accent-ground px-3 py-2">
      <span className="sr-only">{who}: </span>
      {who !== "you" && <span className="block text-xs text-dim" aria-hidden>{who}</span>}
      {children}
    </div>
  );
}

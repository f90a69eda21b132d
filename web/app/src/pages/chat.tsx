// The conversation: sessions at the side, one of them in the middle, the next
// question below.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { CitedText, Made } from "../answer";
import { get, post, request, type Page } from "../api";
import { AttachButtons, type Attached, Attachments, DropZone, nothing, toRequest } from "../attach";
import { Block } from "../callcard";
import { cache, invalidate, useAgents, useMe, useModels, useSession, useSessions } from "../data";
import { beside } from "../fold";
import { draftOf, dropDraft, keepDraft } from "../drafts";
import { FirstModel } from "../keysform";
import { useRun, useTotals } from "../run";
import { Bubble, RunView } from "../runview";
import { go, usePlace } from "../router";
import { SlashMenu, usePromptCommands } from "../slash";
import type { Content, Run, Session } from "../types";
import { Ago, Button, Dialog, ErrorBox, Spinner, To, count, cx, dollars, field, path, plural, visible } from "../ui";

export function Chat({ session }: { session: string }) {
  const [side, setSide] = useState(false);
  return (
    <div className="flex h-full min-h-0">
      <aside aria-label="Sessions" className={cx("w-64 shrink-0 flex-col border-r border-line bg-panel lg:flex", side ? "absolute z-20 flex h-full" : "hidden")}>
        <SessionList current={session} onPick={() => setSide(false)} />
      </aside>
      <Conversation key={session} session={session} openSide={() => setSide(!side)} />
    </div>
  );
}

function SessionList({ current, onPick }: { current: string; onPick: () => void }) {
  const list = useSessions();
  const [words, setWords] = useState("");
  const found = useQuery({
    queryKey: ["sessions", "search", words],
    queryFn: () => get<Page<{ session: string; title?: string; text?: string; snippet?: string }>>(`/api/v1/search?q=${encodeURIComponent(words)}`),
    enabled: words.trim().length > 1,
  });
  const searching = words.trim().length > 1;
  return (
    <>
      <div className="flex flex-col gap-2 p-2">
        <Button onClick={() => { go("/"); onPick(); }}>New chat</Button>
        <input type="search" aria-label="Search in all sessions" placeholder="Search what was said" className={field} value={words} onChange={(e) => setWords(e.target.value)} />
      </div>
      <ul className="min-h-0 flex-1 overflow-auto px-1 pb-2" onClick={onPick}>
        {searching
          ? (found.data?.items ?? []).map((f, i) => (
              <li key={i}><To to={path("sessions", f.session)} className="block rounded-md px-2 py-1 hover:bg-sunk"><span className="block truncate text-sm text-ink">{visible(f.title || f.session)}</span><span className="block truncate text-xs text-dim">{visible(f.snippet ?? f.text ?? "")}</span></To></li>
            ))
          : (list.data?.items ?? []).map((s) => (
              <li key={s.id}>
                <To to={path("sessions", s.id)} aria-current={s.id === current ? "page" : undefined} className={cx("block rounded-md px-2 py-1", s.id === current ? "bg-accent-ground" : "hover:bg-sunk")}>
                  <span className="block truncate text-sm text-ink">{visible(s.title || "untitled")}</span>
                  <span className="flex gap-2 text-xs text-dim"><Ago time={s.updated} />{s.interrupted && <span className="text-warn">interrupted</span>}{s.parent && <span>branch</span>}{s.agent && s.agent !== "default" && <span className="truncate">{visible(s.agent)}</span>}</span>
                </To>
              </li>
            ))}
        {searching && found.data?.items.length === 0 && <li className="px-2 py-1 text-sm text-dim">Nothing was found.</li>}
        {found.isError && searching && <li><ErrorBox error={found.error} /></li>}
      </ul>
    </>
  );
}

function Conversation({ session, openSide }: { session: string; openSide: () => void }) {
  const info = useSession(session);
  const runs = (info.data?.run_list ?? []).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const scroll = useRef<HTMLDivElement>(null);
  const [forking, setForking] = useState<unknown>();
  const [asked, setAsked] = useState<string>(); // a question that is on its way
  const [shown, setShown] = useState(15); // questions
  const last = runs.at(-1);
  const fork = async (at: string) => {
    try {
      const f = await post<{ session: { id: string } }>(`/api/v1/sessions/${encodeURIComponent(session)}/fork`, { at });
      invalidate(["sessions"]);
      go(path("sessions", f.session.id));
    } catch (e) {
      setForking(e);
    }
  };
  /** What was there before a question; "" for nothing. */
  const beginOf = (r: Run) => runs[runs.indexOf(r) - 1]?.id ?? (r.parent ? `${r.parent}${r.parent_seq ? `:${r.parent_seq}` : ""}` : "");
  /** Goes back to before a question, with the question to be changed. */
  const askOtherwise = async (r: Run, question: string) => {
    const before = beginOf(r);
    if (!before) {
      keepDraft("", { text: question });
      go("/");
      return;
    }
    try {
      const f = await post<{ session: { id: string } }>(`/api/v1/sessions/${encodeURIComponent(session)}/fork`, { at: before });
      keepDraft(f.session.id, { text: question });
      invalidate(["sessions"]);
      go(path("sessions", f.session.id));
    } catch (e) {
      setForking(e);
    }
  };
  /** Asks a question once more, from before it was asked. */
  const askAgain = async (r: Run, question: string) => {
    const before = beginOf(r);
    const f = before && (await post<{ session: { id: string } }>(`/api/v1/sessions/${encodeURIComponent(session)}/fork`, { at: before }));
    const started = await post<{ run: Run }>("/api/v1/runs", { question, ...(f ? { session: f.session.id } : {}), ...(r.agent ? { agent: r.agent } : {}) }, { "Idempotency-Key": crypto.randomUUID() });
    show(started.run, question);
  };
  return (
    <div className="flex min-h-0 min-w-0 flex-1 flex-col">
      <header className="flex items-center gap-2 border-b border-line bg-panel px-3 py-1.5">
        <Button tone="quiet" className="lg:hidden" onClick={openSide} aria-label="Sessions">☰</Button>
        <h1 className="min-w-0 truncate font-semibold">{session ? visible(info.data?.title || "…") : "New chat"}</h1>
        {runs.length > 0 && <Meter runs={runs.slice(-shown).map((r) => r.id)} all={runs.length <= shown} />}
        {session && <SessionMenu id={session} title={info.data?.title ?? ""} />}
      </header>
      <Stick box={scroll} to={asked}>
        <div className="mx-auto flex max-w-3xl flex-col gap-6 p-3 md:p-5">
          {info.isError && <ErrorBox error={info.error} retry={() => void info.refetch()} />}
          {!session && !asked && <Welcome />}
          {info.data?.parent && <Inherited session={session} own={runs} onFork={fork} />}
          {runs.length > shown && <div className="text-center"><Button tone="quiet" onClick={() => setShown(shown + 10)}>{runs.length - shown} earlier questions</Button></div>}
          {runs.slice(-shown).map((r) => <RunView key={r.id} run={r} onFork={fork} onAsk={(q) => void askOtherwise(r, q)} onAgain={r === last ? (q) => askAgain(r, q) : undefined} />)}
          {asked && <Asked question={asked} />}
          {forking !== undefined && <ErrorBox error={forking} />}
        </div>
      </Stick>
      {last ? <ComposerOfRun key={last.id} session={session} run={last} onAsk={setAsked} /> : <Composer session={session} onAsk={setAsked} />}
    </div>
  );
}

/** Shows a run that has just begun, before the list of its session is read again. */
function show(run: Run, question: string): void {
  const key = ["sessions", "one", run.session];
  cache.setQueryData<Session & { run_list: Run[] }>(key, (old) => ({ ...(old ?? { ...run, id: run.session, title: question.slice(0, 80) } as never), run_list: [...(old?.run_list ?? []).filter((r) => r.id !== run.id), { ...run, title: run.title || question }] }));
  invalidate(["sessions", "runs"]);
  go(path("sessions", run.session));
}

/** A question that tenon has not taken yet. */
function Asked({ question }: { question: string }) {
  return (
    <section aria-label="The question that is being sent" className="flex flex-col gap-2.5">
      <Bubble who="you"><p className="whitespace-pre-wrap break-words">{visible(question)}</p></Bubble>
      <p role="status" className="flex items-center gap-2 px-1 text-sm text-dim"><Spinner /> Sending…</p>
    </section>
  );
}

/** What the conversation has used so far. */
function Meter({ runs, all }: { runs: string[]; all: boolean }) {
  const t = useTotals(runs);
  if (t.input + t.output === 0) return null;
  return (
    <span aria-label="Used so far" title={all ? "tokens in and out, and what they cost as far as prices are known" : "by the questions that are shown"} className="shrink-0 rounded bg-sunk px-1.5 py-px text-xs text-dim max-sm:hidden">
      {plural(t.input, "token")} in, {count(t.output)} out{t.cost !== undefined && `, ${dollars(t.cost)}`}{!all && " +"}
    </span>
  );
}

/** Keeps the end in sight while it grows, unless somebody has scrolled up. */
function Stick({ box, to, children }: { box: React.RefObject<HTMLDivElement | null>; to?: string; children: React.ReactNode }) {
  const atEnd = useRef(true);
  const [away, setAway] = useState(false);
  const inner = useRef<HTMLDivElement>(null);
  const top = useRef(0);
  const scrolled = (b: HTMLElement) => {
    const left = b.scrollHeight - b.scrollTop - b.clientHeight;
    if (left < 4) atEnd.current = true;
    else if (b.scrollTop < top.current) atEnd.current = false;
    else atEnd.current ||= left < 60;
    top.current = b.scrollTop;
    setAway(left > b.clientHeight / 2);
  };
  const toEnd = () => {
    atEnd.current = true;
    box.current!.scrollTop = box.current!.scrollHeight;
  };
  // What the person asked is shown, wherever they had scrolled to.
  useLayoutEffect(() => {
    if (to) toEnd();
  }, [to]);
  useLayoutEffect(() => {
    const b = box.current!;
    const o = new ResizeObserver(() => {
      if (atEnd.current) b.scrollTop = b.scrollHeight;
      setAway(b.scrollHeight - b.scrollTop - b.clientHeight > b.clientHeight / 2);
    });
    o.observe(inner.current!);
    return () => o.disconnect();
  }, [box]);
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div ref={box} tabIndex={0} role="log" aria-label="Conversation" className="min-h-0 flex-1 overflow-auto [overflow-anchor:none] outline-offset-[-2px]"
        onScroll={(e) => scrolled(e.currentTarget)}>
        <div ref={inner}>{children}</div>
      </div>
      {away && <Button className="absolute right-4 bottom-3 rounded-full! shadow" aria-label="To the end of the conversation" onClick={toEnd}>↓</Button>}
    </div>
  );
}

interface SaidMessage {
  n: number;
  run: string;
  seq: number;
  role: string;
  parts: { type: string; text?: string; mime_type?: string; data?: string; call?: { name: string }; result?: { name: string; content: Content[] } }[];
}

/** What a branch shares with the session that it left. */
function Inherited({ session, own, onFork }: { session: string; own: Run[]; onFork: (at: string) => void }) {
  const said = useQuery({ queryKey: ["sessions", "said", session], queryFn: () => get<Page<SaidMessage>>(`/api/v1/sessions/${encodeURIComponent(session)}/messages`) });
  const mine = new Set(own.map((r) => r.id));
  const shared = (said.data?.items ?? []).filter((m) => !mine.has(m.run));
  if (shared.length === 0) return null;
  return (
    <section aria-label="From the session that this one left" className="flex flex-col gap-2.5 border-b border-dashed border-line pb-4">
      {shared.map((m) => {
        const text = m.parts.filter((p) => p.type === "text").map((p) => p.text).join("");
        if (m.role === "user") return <div key={m.n} className="group flex flex-col"><Bubble who="you"><p className="whitespace-pre-wrap break-words">{visible(text)}</p></Bubble></div>;
        if (m.role === "tool") return <div key={m.n} className="rounded-lg border border-line bg-panel px-3 py-1.5 text-xs text-dim">{m.parts.map((p, i) => <details key={i}><summary>result of {visible(p.result?.name ?? "")}</summary>{(p.result?.content ?? []).map((c, n) => <Block key={n} c={c} />)}</details>)}</div>;
        const more = beside(m.parts);
        return <div key={m.n} className="flex flex-col gap-1.5"><CitedText text={text} citations={more.citations} />{more.media && <Made media={more.media} step={String(m.n)} />}<Button tone="quiet" className="self-start px-1 py-0 text-xs" onClick={() => onFork(String(m.n))}>Branch from here</Button></div>;
      })}
      <p className="text-xs text-dim">Up to here this is shared with the session that it left.</p>
    </section>
  );
}

function SessionMenu({ id, title }: { id: string; title: string }) {
  const [dialog, setDialog] = useState<"rename" | "delete">();
  const [name, setName] = useState(title);
  const [error, setError] = useState<unknown>();
  const done = (f: Promise<unknown>) => f.then(() => { setDialog(undefined); invalidate(["sessions"]); }, setError);
  return (
    <div className="ml-auto flex gap-1">
      <Button tone="quiet" onClick={() => { setName(title); setDialog("rename"); }}>Rename</Button>
      <Button tone="quiet" onClick={() => void download(id)}>Export</Button>
      <Button tone="quiet" onClick={() => setDialog("delete")}>Delete</Button>
      {dialog === "rename" && (
        <Dialog title="Rename the session" onClose={() => setDialog(undefined)}>
          <form className="flex gap-2" onSubmit={(e) => { e.preventDefault(); void done(request("PATCH", `/api/v1/sessions/${encodeURIComponent(id)}`, { title: name })); }}>
            <input autoFocus aria-label="Title" className={field} value={name} onChange={(e) => setName(e.target.value)} />
            <Button type="submit" tone="primary">Rename</Button>
          </form>
          {error !== undefined && <ErrorBox error={error} />}
        </Dialog>
      )}
      {dialog === "delete" && (
        <Dialog title="Delete the session?" onClose={() => setDialog(undefined)}>
          <p>Its runs, results and files are deleted from the store for good. Sessions that branched from it keep what they share.</p>
          {error !== undefined && <ErrorBox error={error} />}
          <div className="mt-3 flex justify-end gap-2">
            <Button onClick={() => setDialog(undefined)}>Keep</Button>
            <Button tone="danger" onClick={() => void done(request("DELETE", `/api/v1/sessions/${encodeURIComponent(id)}`)).then(() => go("/"))}>Delete</Button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

async function download(id: string): Promise<void> {
  const data = await get<unknown>(`/api/v1/sessions/${encodeURIComponent(id)}/export`);
  const url = URL.createObjectURL(new Blob([JSON.stringify(data, null, 2)], { type: "application/json" }));
  const a = Object.assign(document.createElement("a"), { href: url, download: `${id}.json` });
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function Welcome() {
  const owner = useMe().data?.owner;
  return (
    <div className="py-10 text-center text-dim">
      <p className="text-lg text-ink">What do you want to do?</p>
      <p className="mt-1">Tool calls that may change something ask you first. Every step is kept: see <To to="/runs">Runs</To>.</p>
      <p className="mt-1">Type <code className="font-mono">/</code> for the prompts that your servers offer.</p>
      {owner && <FirstModel />}
    </div>
  );
}

function ComposerOfRun({ session, run, onAsk }: { session: string; run: Run; onAsk: (question?: string) => void }) {
  const { view, caughtUp } = useRun(run.id);
  const working = caughtUp ? !view.ended : !["completed", "failed", "cancelled"].includes(run.state);
  return <Composer session={session} run={run} working={working} withdrawn={view.ended ? view.unsent : none} onAsk={onAsk} />;
}

const none: string[] = [];

function Composer({ session, run, working, withdrawn = none, onAsk }: { session: string; run?: Run; working?: boolean; withdrawn?: string[]; onAsk: (question?: string) => void }) {
  const agents = useAgents().data?.items ?? [];
  const models = useModels().data?.items ?? [];
  const [text, setText] = useState(draftOf(session).text);
  const [agent, setAgent] = useState("");
  const named = usePlace().query.get("model") ?? "";
  const [model, setModel] = useState(named);
  useEffect(() => { if (named) setModel(named); }, [named]);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [attached, setAttached] = useState<Attached>(draftOf(session).attached ?? nothing);
  const [missing, setMissing] = useState<{ server?: string; message: string }[]>([]);
  const box = useRef<HTMLTextAreaElement>(null);
  const prompts = usePromptCommands(text);
  useEffect(() => keepDraft(session, { text, attached }), [session, text, attached]);
  useEffect(() => {
    const b = box.current;
    if (!b) return;
    b.style.height = "auto";
    b.style.height = `${Math.min(b.scrollHeight, 240)}px`;
  }, [text]);
  const stopped = useRef(false); // by this page: messages that the model has not received return to the input
  useEffect(() => {
    if (!stopped.current || withdrawn.length === 0) return;
    stopped.current = false;
    setText((typed) => [...withdrawn, typed].filter(Boolean).join("\n"));
  }, [withdrawn]);
  const send = async () => {
    const question = text.trim();
    if (!question || busy) return;
    setBusy(true);
    setError(undefined);
    setText("");
    try {
      if (working && run) {
        await post(`/api/v1/runs/${encodeURIComponent(run.id)}/steer`, { text: question });
      } else {
        onAsk(question);
        const started = await post<{ run: Run; problems?: { server?: string; message: string }[] }>("/api/v1/runs",
          { question, ...(session ? { session } : {}), ...(agent ? { agent } : {}), ...(model ? { model } : {}), ...(await toRequest(attached)) }, { "Idempotency-Key": crypto.randomUUID() });
        setMissing(started.problems ?? []);
        show(started.run, question);
      }
      dropDraft(session);
      setAttached(nothing);
    } catch (e) {
      setText((typed) => typed || question);
      setError(e);
    } finally {
      onAsk(undefined);
      setBusy(false);
      box.current?.focus();
    }
  };
  const stop = async () => {
    if (!run) return;
    stopped.current = true;
    box.current?.focus(); // the button goes
    try {
      await post(`/api/v1/runs/${encodeURIComponent(run.id)}/cancel`, { reason: "stopped in the workbench", withdraw: true });
    } catch (e) {
      stopped.current = false;
      setError(e);
    }
  };
  return (
    <div className="border-t border-line bg-panel p-2 md:p-3">
      <div className="relative mx-auto max-w-3xl">
        {error !== undefined && <ErrorBox error={error} />}
        {missing.length > 0 && (
          <p role="status" className="mb-1 text-xs text-warn">The tools of {missing.map((m) => m.server).filter(Boolean).join(", ")} are missing: {visible(missing[0]!.message)} <To to="/servers">Servers</To></p>
        )}
        {!working && <DropZone onFiles={(files) => setAttached({ ...attached, files: [...attached.files, ...files] })} />}
        <SlashMenu prompts={prompts} onText={(t) => { setText(t); box.current?.focus(); }} />
        {!working && <Attachments value={attached} onChange={setAttached} />}
        <form className="flex items-end gap-2" onSubmit={(e) => { e.preventDefault(); void send(); }}>
          <textarea ref={box} rows={1} autoFocus aria-label={working ? "Tell the agent something while it works" : "Question"} placeholder={working ? "Tell it something while it works" : "Ask something; Shift+Enter adds a line"}
            className={`${field} max-h-60 resize-none py-2`} value={text} onChange={(e) => setText(e.target.value)}
            onPaste={(e) => {
              if (working || e.clipboardData.files.length === 0) return;
              e.preventDefault();
              setAttached({ ...attached, files: [...attached.files, ...e.clipboardData.files] });
            }}
            onKeyDown={(e) => {
              if (e.key === "Enter" && !e.shiftKey && !e.nativeEvent.isComposing && !prompts.open) {
                e.preventDefault();
                void send();
              }
            }} />
          {working && <Button tone="danger" className="h-9" onClick={() => void stop()}>Stop</Button>}
          <Button type="submit" tone="primary" className="h-9" disabled={busy || !text.trim()}>{working ? "Tell" : "Send"}</Button>
        </form>
        {!working && (
          <div className="mt-1.5 flex flex-wrap gap-2 text-xs text-dim">
            <label className="flex items-center gap-1"><span aria-hidden>Agent</span>
              <select aria-label="Agent" className={`${field} w-auto! py-0.5 text-xs`} value={agent} onChange={(e) => setAgent(e.target.value)}>
                <option value="">{session ? "as before" : "default"}</option>
                {agents.filter((a) => session || a.name !== "default").map((a) => <option key={a.name} value={a.name} title={visible(a.description ?? "")}>{visible(a.name)}</option>)}
              </select>
            </label>
            <label className="flex items-center gap-1"><span aria-hidden>Model</span>
              <select aria-label="Model" className={`${field} w-auto max-w-52 py-0.5 text-xs`} value={model} onChange={(e) => setModel(e.target.value)}>
                <option value="">the agent's</option>
                {model && !models.some((m) => m.name === model) && <option value={model}>{visible(model)}</option>}
                {models.map((m) => <option key={m.name} value={m.name}>{visible(m.name)}</option>)}
              </select>
            </label>
            <AttachButtons value={attached} onChange={setAttached} />
          </div>
        )}
      </div>
    </div>
  );
}

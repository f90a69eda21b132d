// A run as a page shows it, folded from the run's events. The same events always
// give the same view, so a page that was away catches up by reading on.

import type { Citation } from "./cited";
import { type Limits, close, decided, ending, noLimits, spent } from "./unended";
import type { ApiError, Asking, Content, Run, RunEvent, RunState, ToolResult, Usage, Waiting } from "./types";

export type CallStatus = "proposed" | "asking" | "running" | "ok" | "error" | "denied" | "invalid" | "unknown" | "stopped" | "question";

/** How far a running call is; message is the last that the server sent. */
export interface Progress {
  progress: number;
  total?: number;
  message?: string;
}

/** A tool call of a turn. */
export interface Call {
  kind: "call";
  step: string;
  name: string;
  server?: string;
  remote?: string;
  proposed?: unknown; // as the model wrote them
  arguments?: unknown; // as they were decided and sent
  status: CallStatus;
  by?: string; // who decided
  reason?: string;
  verdict?: string; // of the decision that counts
  unrun?: string; // why it was not run or not ended, without an event of it
  number: number; // among the calls since the limits of the run were reset
  beyond?: string; // the reason of a call beyond the limit of its tool in the run
  perhaps?: string; // of one that may be beyond the limit in the conversation
  waits?: boolean; // for input
  child?: string; // the run of the agent that was called
  attempts: number;
  result?: ToolResult;
  artifact?: { id: string; bytes: number }; // the whole of a result of which the model got a part
  error?: ApiError;
  started?: number; // ms since the epoch
  ended?: number;
  progress?: Progress; // of the running attempt
  source?: string; // cache
}

export interface Text {
  kind: "text";
  step: string;
  seq?: number; // of its event
  text: string;
  thinking: string;
  live: boolean;
  cut?: boolean; // the run ended before it was complete
  told?: boolean; // a note below says why it was cut
  model?: string;
  usage?: Usage;
  cost?: number;
  citations?: Citation[]; // of the text
  media?: Content[]; // pictures and sounds that the model made
  hosted?: string[]; // what it did with tools of its provider
}

export interface Note {
  kind: "note";
  step: string;
  tone: "info" | "warn" | "error";
  text: string;
  seq: number;
}

export interface Said {
  kind: "said"; // by a person, into the running run
  step: string;
  seq?: number; // of its event
  text: string;
  by?: string;
}

export type Item = Call | Text | Note | Said;

/** What went with a question: a text by its name and size, a picture or another file with its data. */
export interface Attachment {
  name: string;
  bytes?: number; // unknown for what has an address
  mime?: string;
  data?: string; // base64
}

/** One lane entry of the waterfall. */
export interface Span {
  step: string;
  lane: "model" | "tool" | "wait" | "compact";
  label: string;
  start: number;
  end?: number;
  outcome: string;
}

export interface View {
  id: string;
  session: string;
  core: string; // which logic reads the journal: agent@1, workflow@1
  agent: string;
  model: string;
  question: string;
  attached: Attachment[]; // what went with the question
  plain: boolean; // the question is a text and nothing else
  state: RunState;
  stop?: string;
  answer?: string;
  error?: ApiError;
  created?: number;
  ended?: number;
  seq: number;
  items: Item[];
  spans: Span[];
  usage: Usage;
  cost?: number;
  turns: number;
  waiting: Waiting[];
  cut: string[]; // steps that were cut off and have not begun again
  live: number; // texts among the items that are still being said
  unsent: string[]; // messages of persons that no model call has sent; after the end, those that were withdrawn
  withdraws: boolean; // the run was cancelled, and its unsent messages with it
  limits: Limits;
}

export function emptyView(run?: Run): View {
  return {
    id: run?.id ?? "", session: run?.session ?? "", core: run?.core ?? "", agent: run?.agent ?? "", model: run?.model ?? "",
    question: run?.title ?? "", attached: [], plain: false, state: run?.state ?? "working", items: [], spans: [], seq: 0,
    usage: { input_tokens: 0, output_tokens: 0 }, turns: 0, waiting: run?.waiting ?? [], cut: [], live: 0, unsent: [], withdraws: false, limits: noLimits,
  };
}

/** Folds one event into a view and returns the new one; the old one stays as it was. */
export function apply(v: View, e: RunEvent): View {
  if (e.seq > 0 && e.seq <= v.seq) return v; // read twice
  const next: View = { ...v, items: [...v.items], spans: [...v.spans], usage: { ...v.usage } };
  if (e.seq > 0) next.seq = e.seq;
  fold(next, e);
  return next;
}

export function applyAll(v: View, events: RunEvent[]): View {
  const next: View = { ...v, items: [...v.items], spans: [...v.spans], usage: { ...v.usage } };
  for (const e of events) {
    if (e.seq > 0 && e.seq <= next.seq) continue;
    if (e.seq > 0) next.seq = e.seq;
    fold(next, e);
  }
  return next;
}

const at = (e: RunEvent) => Date.parse(e.time);

function fold(v: View, e: RunEvent): void {
  const d = e.data ?? {};
  const step = e.step ?? "";
  switch (e.kind) {
    case "run":
      v.id = e.run;
      v.session = d.run?.session ?? v.session;
      v.core = d.run?.core ?? v.core;
      v.agent = d.data?.agent ?? d.run?.agent ?? v.agent;
      v.model = d.data?.model ?? v.model;
      v.question = d.data?.question ?? d.run?.title ?? v.question;
      v.attached = attachments(d.data?.files);
      v.plain = !["files", "history", "output_schema", "sampling", "tools_selected", "tool_groups", "table", "data", "state_asked"].some((k) => d.data?.[k]);
      v.limits = { ...noLimits, most: d.data?.tool_calls ?? 0 };
      v.created = at(e);
      v.state = "working";
      return;
    case "started":
      v.waiting = v.waiting.filter((w) => w.step !== step);
      v.state = "working";
      if (v.cut.includes(step)) {
        v.cut = v.cut.filter((s) => s !== step);
        v.items.push({ kind: "note", step, tone: "warn", seq: e.seq, text: `Step ${step} was cut off and is done again.` });
      }
      if (d.kind === "sql" || d.kind === "table") {
        v.spans.push({ step, lane: "tool", label: d.kind, start: at(e), outcome: "open" });
      } else if (d.kind === "tool" || d.kind === "child" || d.kind === "handoff") {
        changeCall(v, step, (c) => ({ ...c, status: "running", attempts: e.attempt ?? 1, started: c.started ?? at(e), ended: undefined, progress: undefined, unrun: undefined, waits: false }));
        v.spans.push({ step, lane: "tool", label: label(v, step), start: at(e), outcome: "open" });
      } else if (d.kind === "compact") {
        v.spans.push({ step, lane: "compact", label: "compaction", start: at(e), outcome: "open" });
      } else {
        dropLive(v, step);
        if (d.kind === "model" || d.kind === "final") {
          v.limits = { ...v.limits, final: d.kind === "final" };
          v.unsent = [];
          close(v, e);
        }
        v.spans.push({ step, lane: "model", label: v.model, start: at(e), outcome: "open" });
      }
      return;
    case "model": {
      endSpan(v, step, at(e), "ok");
      dropLive(v, step);
      const parts: any[] = d.message?.parts ?? [];
      const text = parts.filter((p) => p.type === "text").map((p) => p.text).join("");
      const thinking = parts.filter((p) => p.type === "thinking").map((p) => p.text).join("");
      v.turns++;
      use(v, d);
      close(v, e); // the core settles a call without an event if it was never started, or if no further attempt follows
      v.limits = { ...v.limits, stop: d.stop ?? "" };
      v.items.push({ kind: "text", step, seq: e.seq, text, thinking, live: false, model: d.model, usage: d.usage, cost: d.cost, ...beside(parts) });
      return;
    }
    case "proposed":
      v.limits = { ...v.limits, made: v.limits.made + 1 };
      v.items.push({ kind: "call", step, name: d.name, proposed: d.arguments ?? d.malformed, status: "proposed", attempts: 0, number: v.limits.made });
      return;
    case "decided": {
      const status: CallStatus = d.verdict === "ask" ? "asking" : d.verdict === "deny" ? (d.by === "catalog" ? "invalid" : "denied") : "proposed";
      changeCall(v, step, (c) => ({
        ...c, ...decided(v, c.name, d), status, verdict: d.verdict, by: d.by, reason: d.reason, server: d.server ?? c.server, remote: d.remote_name ?? c.remote,
        arguments: d.arguments ?? c.proposed, child: d.kind === "agent" ? `${v.id}/${step}` : undefined,
      }));
      if (status === "asking") v.spans.push({ step, lane: "wait", label: label(v, step), start: at(e), outcome: "open" });
      return;
    }
    case "admitted":
      if (d.refused) changeCall(v, step, (c) => ({ ...c, status: "denied", unrun: d.refused, ended: at(e) }));
      return;
    case "decision":
      if (!step.includes(".")) v.limits = { ...v.limits, made: 0 }; // a person has let the run continue past its limit
      v.waiting = v.waiting.filter((w) => w.step !== step);
      endSpan(v, step, at(e), d.verdict === "deny" ? "denied" : "ok");
      changeCall(v, step, (c) => ({
        ...c, status: c.status === "asking" ? (d.verdict === "deny" ? "denied" : "proposed") : c.status,
        verdict: d.verdict, by: d.by, reason: d.reason || c.reason, arguments: d.arguments ?? c.arguments,
      }));
      return;
    case "result": {
      endSpan(v, step, at(e), d.result?.isError ? "error" : "ok");
      changeCall(v, step, (c) => ({
        ...c, status: d.result?.isError ? "error" : "ok", result: d.result, artifact: d.whole, source: d.source, ended: at(e), progress: undefined,
      }));
      if (d.spent) use(v, d.spent);
      spent(v, d.spent?.tool_calls);
      return;
    }
    case "failed":
      endSpan(v, step, at(e), "error");
      if (isCall(v, step)) {
        changeCall(v, step, (c) => ({ ...c, status: d.retry ? "proposed" : "error", error: d.error, ended: at(e), progress: undefined }));
      } else {
        dropLive(v, step);
        if (d.partial) v.items.push({ ...partial(step, d.partial), cut: true });
        v.items.push({ kind: "note", step, tone: d.retry ? "warn" : "error", seq: e.seq,
          text: (v.core.startsWith("workflow") ? `Step ${step} ${d.retry ? "is tried again" : "has failed"}: ` : d.retry ? "The model did not answer and is asked again: " : "The model did not answer: ") + (d.error?.message ?? "") });
      }
      return;
    case "unknown":
      endSpan(v, step, at(e), "unknown");
      changeCall(v, step, (c) => ({ ...c, status: "unknown", ended: at(e), progress: undefined }));
      return;
    case "interrupted":
      endSpan(v, step, at(e), "interrupted"); // its text stays until the step begins again
      if (d.text || d.thinking) {
        dropLive(v, step); // the journal has all of it, a follower that joined late may not
        v.items.push({ ...partial(step, d), live: true });
        v.live++;
      }
      v.cut = [...v.cut, step]; // whether it is done again is seen when it is: the run may end here
      return;
    case "question":
    case "input_required":
      changeCall(v, step.split("/")[0]!, (c) => ({ ...c, status: "question", waits: c.waits || e.kind === "input_required" }));
      if (e.kind === "input_required") {
        endSpan(v, step, at(e), "ok");
        use(v, d);
      }
      v.spans.push({ step, lane: "wait", label: label(v, step.split("/")[0]!), start: at(e), outcome: "open" });
      return;
    case "answer":
      v.waiting = v.waiting.filter((w) => w.step !== step);
      endSpan(v, step, at(e), "ok");
      changeCall(v, step.split("/")[0]!, (c) => ({ ...c, status: "running" }));
      use(v, d);
      return;
    case "expired":
      v.waiting = v.waiting.filter((w) => w.step !== step);
      endSpan(v, step, at(e), "expired");
      changeCall(v, step.split("/")[0]!, (c) => (c.status === "asking" ? { ...c, status: "denied", by: "nobody", reason: d.reason || "nobody decided in time" } : c));
      return;
    case "message":
      v.items.push({ kind: "said", step: String(e.seq), seq: e.seq, text: d.text ?? "", by: d.by });
      v.unsent = [...v.unsent, d.text ?? ""];
      return;
    case "compacted":
      endSpan(v, step, at(e), "ok");
      use(v, d);
      v.items.push({ kind: "note", step, tone: "info", seq: e.seq,
        text: d.summary ? `Earlier messages were summed up (${d.why}).` : `Old tool results were left out (${d.why}).` });
      return;
    case "tools": {
      const text = toolsText(d);
      if (text) v.items.push({ kind: "note", step, tone: "info", seq: e.seq, text });
      for (const why of withheldText(d)) v.items.push({ kind: "note", step, tone: "warn", seq: e.seq, text: why });
      return;
    }
    case "handoff":
      endSpan(v, step, at(e), "ok");
      changeCall(v, step, (c) => ({ ...c, status: "ok", ended: at(e) }));
      v.agent = d.agent ?? v.agent;
      v.model = d.model ?? v.model;
      v.items.push({ kind: "note", step, tone: "info", seq: e.seq, text: `Agent ${d.agent} has taken over.` });
      for (const text of unsent(d)) v.items.push({ kind: "note", step, tone: "warn", seq: e.seq, text });
      return;
    case "cancel":
      v.withdraws ||= Boolean(d.withdraw);
      v.items.push({ kind: "note", step: "cancel", tone: "warn", seq: e.seq, text: "Stopped" + (d.by ? ` by ${d.by}` : "") + (d.reason ? `: ${d.reason}` : "") });
      return;
    case "retry":
      v.state = "working";
      v.stop = v.error = v.ended = undefined;
      v.limits = { ...v.limits, made: 0 };
      v.items = v.items.map((i) => (i.kind === "call" && i.status === "stopped" ? { ...i, status: "proposed", unrun: undefined } : i));
      v.items.push({ kind: "note", step: "retry", tone: "info", seq: e.seq, text: "The failed run was taken up again." });
      return;
    case "done":
      v.state = d.state;
      v.stop = d.stop_reason;
      v.answer = d.answer;
      v.error = d.error;
      v.ended = at(e);
      v.waiting = [];
      v.live = 0;
      if (!v.withdraws || v.state !== "cancelled") v.unsent = []; // the next question sends them
      else if (v.unsent.length) v.items.push({ kind: "note", step: "withdrawn", tone: "info", seq: e.seq, text: `Withdrawn, because the model had not received it: ${v.unsent.join(" / ")}` });
      v.spans = v.spans.map((s) => (s.end === undefined ? { ...s, end: at(e), outcome: "stopped" } : s.outcome === "interrupted" && v.cut.includes(s.step) ? { ...s, outcome: "stopped" } : s));
      v.items = v.items.map((i) =>
        i.kind === "text" && i.live ? { ...i, live: false, cut: true } : i.kind !== "call" || !["proposed", "asking", "running", "question"].includes(i.status) ? i
          : i.status === "proposed" && i.attempts > 0 ? { ...i, status: "error" } : { ...i, status: "stopped", unrun: ending(v, i, d.error) });
      if (v.state === "cancelled") { // why it ended is said once, below what was said until then
        const why = v.items.filter((i) => i.kind === "note" && i.step === "cancel");
        if (why.length) v.items = [...v.items.filter((i) => !why.includes(i)).map((i) => (i.kind === "text" && i.cut ? { ...i, told: true } : i)), ...why];
      }
      return;
    // What follows is live: it is not in the journal.
    case "delta": {
      const last = v.items.findLastIndex((i) => i.kind === "text" && i.live && i.step === step);
      const old = last >= 0 ? (v.items[last] as Text) : { kind: "text" as const, step, text: "", thinking: "", live: true };
      const item = { ...old, [d.kind === "thinking" ? "thinking" : "text"]: (d.kind === "thinking" ? old.thinking : old.text) + (d.text ?? "") };
      if (d.kind !== "text" && d.kind !== "thinking") return;
      if (last >= 0) v.items[last] = item;
      else {
        v.items.push(item);
        v.live++;
      }
      return;
    }
    case "reset":
      dropLive(v, step);
      return;
    case "progress":
      changeCall(v, step, (c) => ({ ...c, progress: { ...d, message: d.message || c.progress?.message } }));
      return;
    case "waiting":
      v.waiting = Array.isArray(d) ? d : [];
      v.state = "input_required";
      for (const w of v.waiting) {
        const asked = w.data as Asking | undefined;
        changeCall(v, w.step.split("/")[0]!, (c) => ({ ...c, status: asked?.kind === "approval" ? "asking" : asked?.kind === "child" ? c.status : "question" }));
      }
      return;
  }
}

/** The progress in a line: the share, or the count where no total is known, and the last message. */
export function progressText({ progress, total, message }: Progress): string {
  const far = total ? `${Math.floor(100 * Math.min(1, Math.max(0, progress / total)))}%` : `${progress}`;
  return message ? `${far} ${message}` : far;
}

/** The settings of the question that the model of a handoff is not sent, a sentence each. */
export const unsent = (d: { warnings?: string[] }) => (d.warnings ?? []).slice(0, 20);

/** Why servers with removed tools offer none of the present ones until a person accepts them; with the command for it. */
export const withheldText = (d: { withheld?: { server: string; reason: string }[] }) => (d.withheld ?? []).slice(0, 20).map((w) => w.reason || `tools of server ${w.server} are withheld`);

/** What has become of the tools that the model sees, in the words of the command line; "" for nothing. */
export function toolsText(d: { added?: string[]; changed?: string[]; removed?: string[]; withheld?: { server: string }[] }): string {
  const most = 10;
  const parts = (["added", "changed", "removed"] as const).flatMap((word) => {
    const names = d[word] ?? [];
    if (names.length === 0) return [];
    return `${word} ${names.slice(0, most).join(", ")}${names.length > most ? ` and ${names.length - most} more` : ""}`;
  });
  for (const w of d.withheld ?? []) parts.push(`others of ${w.server} wait until you accept them`);
  return parts.length ? `tools: ${parts.join("; ")}` : "";
}

/** The parts of a question besides its text. A text begins with a line that names its file. */
export function attachments(parts: any[] = []): Attachment[] {
  return parts.slice(0, 50).map((p): Attachment => {
    if (p.type === "text") {
      const [, name, text] = /^(?:File|Resource) ([^\n]{1,300}):\n\n([\s\S]*)$/.exec(p.text ?? "") ?? [, "text", p.text ?? ""];
      return { name: name!, bytes: new TextEncoder().encode(text).length };
    }
    const name = p.text || p.uri || (p.type === "image" ? "picture" : "file");
    return { name, mime: p.mime_type, ...(p.data ? { data: p.data, bytes: Math.floor((p.data.replace(/=+$/, "").length * 3) / 4) } : {}) };
  });
}

/** What parts of an answer hold besides text. */
export function beside(parts: any[]): Pick<Text, "citations" | "media" | "hosted"> {
  const citations: Citation[] = [];
  let at = 0;
  if (parts.some((p) => p.citations?.length)) {
    for (const p of parts) {
      if (p.type !== "text") continue;
      for (const c of p.citations ?? []) citations.push(c.end > 0 ? { ...c, start: (c.start ?? 0) + at, end: c.end + at } : c);
      at += new TextEncoder().encode(p.text ?? "").length;
    }
  }
  const media = parts.filter((p) => p.data && (p.type === "image" || p.type === "file")).map((p): Content => {
    const sound = /^audio\//.test(p.mime_type ?? "");
    return { type: p.type === "image" ? "image" : sound ? "audio" : "file", mimeType: p.mime_type, data: p.data, name: p.text || (p.type === "image" ? "a picture that the model made" : sound ? "a sound that the model made" : "file") };
  });
  const hosted = parts.filter((p) => p.type === "opaque" && p.text).map((p) => p.text as string);
  return { ...(citations.length && { citations }), ...(media.length && { media }), ...(hosted.length && { hosted }) };
}

function use(v: View, d: { usage?: Usage; cost?: number | null }): void {
  if (d.usage) {
    v.usage.input_tokens += d.usage.input_tokens ?? 0;
    v.usage.output_tokens += d.usage.output_tokens ?? 0;
  }
  if (typeof d.cost === "number") v.cost = (v.cost ?? 0) + d.cost;
}

function changeCall(v: View, step: string, change: (c: Call) => Call): void {
  const i = v.items.findLastIndex((x) => x.kind === "call" && x.step === step);
  if (i >= 0) v.items[i] = change(v.items[i] as Call);
}

const isCall = (v: View, step: string) => v.items.some((i) => i.kind === "call" && i.step === step);

function label(v: View, step: string): string {
  const c = v.items.findLast((i) => i.kind === "call" && i.step === step) as Call | undefined;
  return c ? (c.server ? `${c.server}.${c.remote ?? c.name}` : c.name) : step;
}

/** What a model had said when it was stopped. */
const partial = (step: string, d: any): Text => ({ kind: "text", step, text: d.text ?? "", thinking: d.thinking ?? "", live: false });

function dropLive(v: View, step: string): void {
  if (v.live === 0) return;
  const before = v.items.length;
  v.items = v.items.filter((i) => !(i.kind === "text" && i.live && i.step === step));
  v.live -= before - v.items.length;
}

/** The view without what is being said: a stream that is taken up says it again. */
export function withoutLive(v: View): View {
  return v.live === 0 ? v : { ...v, live: 0, items: v.items.filter((i) => i.kind !== "text" || !i.live) };
}

function endSpan(v: View, step: string, end: number, outcome: string): void {
  const i = v.spans.findLastIndex((s) => s.step === step && s.end === undefined);
  if (i >= 0) v.spans[i] = { ...v.spans[i]!, end, outcome };
}

import { expect, test } from "vitest";
import { type Call, apply, applyAll, emptyView, progressText, toolsText } from "./fold";
import type { RunEvent } from "./types";

let seq = 0;
const at = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();
const event = (kind: string, step: string, data: unknown, ms = seq * 10): RunEvent => ({ run: "run_1", seq: ++seq, time: at(ms), step, kind, attempt: 1, data });
const live = (kind: string, step: string, data: unknown): RunEvent => ({ run: "run_1", seq: 0, time: at(0), step, kind, data });

function journal(): RunEvent[] {
  seq = 0;
  return [
    event("run", "", { run: { session: "ses_1" }, data: { agent: "default", model: "main", question: "why?" } }),
    event("started", "1", { kind: "model" }),
    event("model", "1", { message: { parts: [{ type: "text", text: "Let me see." }, { type: "tool_call" }] }, usage: { input_tokens: 10, output_tokens: 5 }, cost: 0.25 }),
    event("proposed", "1.0", { name: "counter", arguments: { a: 1 } }),
    event("decided", "1.0", { verdict: "ask", by: "policy", server: "demo", remote_name: "counter", arguments: { a: 1 } }),
    event("decision", "1.0", { verdict: "allow", by: "ann", arguments: { a: 2 } }),
    event("started", "1.0", { kind: "tool" }),
    event("result", "1.0", { result: { content: [{ type: "text", text: "1" }] } }),
    event("started", "2", { kind: "model" }),
    event("model", "2", { message: { parts: [{ type: "text", text: "Because." }] }, usage: { input_tokens: 20, output_tokens: 3 }, cost: 0.5 }),
    event("done", "", { state: "completed", stop_reason: "stop", answer: "Because." }),
  ];
}

test("a whole run", () => {
  const v = applyAll(emptyView(), journal());
  expect(v).toMatchObject({ question: "why?", state: "completed", answer: "Because.", turns: 2, usage: { input_tokens: 30, output_tokens: 8 }, cost: 0.75 });
  expect(v.items.map((i) => i.kind)).toEqual(["text", "call", "text"]);
  expect(v.items[1]).toMatchObject({ status: "ok", server: "demo", by: "ann", arguments: { a: 2 }, attempts: 1 });
  expect(v.spans.map((s) => [s.step, s.lane, s.outcome])).toEqual([["1", "model", "ok"], ["1.0", "wait", "ok"], ["1.0", "tool", "ok"], ["2", "model", "ok"]]);
});

test("events that come twice count once, in whatever portions they come", () => {
  const all = journal();
  const whole = applyAll(emptyView(), all);
  for (let cut = 0; cut <= all.length; cut++) {
    const some = applyAll(emptyView(), all.slice(0, cut));
    expect(applyAll(some, all)).toEqual(whole);
    expect(all.reduce(apply, some)).toEqual(whole);
  }
});

test("folding changes no view that was handed out", () => {
  let v = emptyView();
  for (const e of journal()) {
    const before = structuredClone(v);
    const next = apply(v, e);
    expect(v).toEqual(before);
    v = next;
  }
});

test("live text is replaced by the answer, and dropped at a reset", () => {
  const all = journal();
  let v = applyAll(emptyView(), all.slice(0, 2));
  v = apply(apply(v, live("delta", "1", { kind: "text", text: "Let " })), live("delta", "1", { kind: "text", text: "me" }));
  expect(v.items).toMatchObject([{ kind: "text", live: true, text: "Let me" }]);
  expect(apply(v, live("reset", "1", {})).items).toEqual([]);
  v = apply(v, all[2]!);
  expect(v.items).toMatchObject([{ kind: "text", live: false, text: "Let me see." }]);
});

test("RP-7 a running call has the last progress and the last message, until it ends or is tried again", () => {
  const all = journal().slice(0, 7);
  const said = (v: ReturnType<typeof emptyView>) => (v.items[1] as Call).progress;
  let v = apply(applyAll(emptyView(), all), live("progress", "1.0", { progress: 1, total: 3, message: "step 1" }));
  expect(progressText(said(v)!)).toBe("33% step 1");
  v = apply(v, live("progress", "1.0", { progress: 2, total: 3 }));
  expect(progressText(said(v)!)).toBe("66% step 1");
  expect(said(apply(v, event("started", "1.0", { kind: "tool" })))).toBeUndefined();
  expect(said(apply(v, event("result", "1.0", { result: { content: [] } })))).toBeUndefined();
  expect([{ progress: 7 }, { progress: 9, total: 3, message: "late" }].map(progressText)).toEqual(["7", "100% late"]);
});

test("RP-8 tools that changed are one line of the run", () => {
  const all = journal();
  const changed = event("tools", "2", { tools: "sha256:00", added: ["rent"], changed: ["price"], removed: ["sell"] });
  const v = apply(applyAll(emptyView(), all.slice(0, 9)), changed);
  expect(v.items.at(-1)).toMatchObject({ kind: "note", tone: "info", text: "tools: added rent; changed price; removed sell" });
  expect(v.spans).toEqual(applyAll(emptyView(), all.slice(0, 9)).spans);
  expect(toolsText({ added: Array.from({ length: 12 }, (_, i) => `t${i}`) })).toMatch(/^tools: added t0, .*, t9 and 2 more$/);
  expect(apply(v, event("tools", "2", { tools: "sha256:00" })).items).toEqual(v.items);
});

test("tools of a server that wait for a person are a line, and a warning with the reason", () => {
  const withheld = [{ server: "bank", reason: "server 'bank' is not what was pinned: accept it with 'tenon tools pins accept bank'" }];
  const v = apply(applyAll(emptyView(), journal().slice(0, 9)), event("tools", "2", { tools: "sha256:00", removed: ["sell"], withheld }));
  expect(v.items.at(-2)).toMatchObject({ kind: "note", tone: "info", text: "tools: removed sell; others of bank wait until you accept them" });
  expect(v.items.at(-1)).toMatchObject({ kind: "note", tone: "warn", text: withheld[0]!.reason });
  expect(toolsText({ withheld })).toBe("tools: others of bank wait until you accept them");
});

test("a call whose outcome is not known, a retry, a denial, a run that is stopped", () => {
  const all = journal().slice(0, 7);
  const unknown = apply(applyAll(emptyView(), all), event("unknown", "1.0", {}));
  expect((unknown.items[1] as Call).status).toBe("unknown");
  const retried = apply(applyAll(emptyView(), all), event("failed", "1.0", { retry: true, error: { code: "unreachable", message: "gone" } }));
  expect((retried.items[1] as Call).status).toBe("proposed");
  const denied = apply(applyAll(emptyView(), all.slice(0, 5)), event("decision", "1.0", { verdict: "deny", by: "ann", reason: "no" }));
  expect(denied.items[1]).toMatchObject({ status: "denied", reason: "no" });
  const limited = apply(applyAll(emptyView(), [...all.slice(0, 4), event("decided", "1.0", { verdict: "allow", by: "policy", server: "demo", remote_name: "counter", arguments: { a: 1 } })]),
    event("model", "2", { message: { parts: [] } }));
  expect(limited.items[1]).toMatchObject({ status: "denied", unrun: "not run: the limit of the run was reached" });
  const stopped = apply(applyAll(emptyView(), all), event("done", "", { state: "cancelled", stop_reason: "cancelled" }));
  expect(stopped).toMatchObject({ state: "cancelled" });
  expect((stopped.items[1] as Call).status).toBe("stopped");
  expect(stopped.spans.every((s) => s.end !== undefined)).toBe(true);
});

test("a step that was cut off is told of as done again only when it is", () => {
  const cut = applyAll(emptyView(), [...journal().slice(0, 7), event("cancel", "", { reason: "enough" }), event("interrupted", "1.0", {})]);
  const stopped = apply(cut, event("done", "", { state: "cancelled", stop_reason: "cancelled", error: { code: "cancelled", message: "enough" } }));
  expect(stopped.items.filter((i) => i.kind === "note").map((n) => n.text)).toEqual(["Stopped: enough"]);
  expect(stopped.spans.at(-1)).toMatchObject({ step: "1.0", outcome: "stopped" });
  const again = apply(applyAll(emptyView(), [...journal().slice(0, 7), event("interrupted", "1.0", {})]), event("started", "1.0", { kind: "tool" }));
  expect(again.items.filter((i) => i.kind === "note").map((n) => n.text)).toEqual(["Step 1.0 was cut off and is done again."]);
  expect(again.spans.slice(-2).map((s) => s.outcome)).toEqual(["interrupted", "open"]);
});

test("messages that a stopped answer did not take are withdrawn", () => {
  const said = [...journal().slice(0, 7), event("message", "", { text: "this way" })];
  const stop = (data: unknown) => applyAll(emptyView(), [...said, event("cancel", "", data), event("done", "", { state: "cancelled" })]);
  expect(stop({ reason: "enough", withdraw: true }).unsent).toEqual(["this way"]);
  expect(stop({ reason: "enough" }).unsent).toEqual([]); // the next question sends it
  const sent = applyAll(emptyView(), [...said, event("started", "2", { kind: "model" }), event("cancel", "", { withdraw: true }), event("done", "", { state: "cancelled" })]);
  expect(sent.unsent).toEqual([]);
});

test("an event of a kind that is not known changes nothing but the number", () => {
  const v = applyAll(emptyView(), journal());
  expect(apply(v, event("from_the_future", "9", { a: 1 }))).toEqual({ ...v, seq: v.seq + 1 });
});

test("MD-4 an answer has its citations in bytes of its whole text, what the model made, and what its provider did", () => {
  const parts = [
    { type: "opaque", text: "web_search: rivers" },
    { type: "text", text: "Grün.", citations: [{ title: "A", url: "https://a.example/", start: 0, end: 6 }] },
    { type: "text", text: "ü!", citations: [{ title: "B", url: "https://b.example/", start: 0, end: 2 }, { file: "f.pdf" }] },
    { type: "image", mime_type: "image/png", data: "AAAA" },
    { type: "file", mime_type: "audio/wav", data: "AAAA", text: "song" },
  ];
  const v = applyAll(emptyView(), [journal()[0]!, event("model", "1", { message: { parts } })]);
  expect(v.items.at(-1)).toMatchObject({
    text: "Grün.ü!", hosted: ["web_search: rivers"],
    citations: [{ title: "A", start: 0, end: 6 }, { title: "B", start: 6, end: 8 }, { file: "f.pdf" }],
    media: [{ type: "image", mimeType: "image/png" }, { type: "audio", name: "song" }],
  });
  expect(applyAll(emptyView(), journal()).items.at(-1)).not.toHaveProperty("citations");
});

test("RP-4 a handoff names the settings that its model is not sent", () => {
  const v = apply(applyAll(emptyView(), journal().slice(0, 7)), event("handoff", "1.0", { agent: "writer", model: "other", warnings: ["stop is not sent", "top_k is not sent"] }));
  expect(v.items.slice(-3)).toMatchObject([{ tone: "info", text: "Agent writer has taken over." }, { tone: "warn", text: "stop is not sent" }, { tone: "warn", text: "top_k is not sent" }]);
  expect(apply(applyAll(emptyView(), journal().slice(0, 7)), event("handoff", "1.0", { agent: "writer" })).items.at(-1)).toMatchObject({ tone: "info" });
});

test("UX-9 what went with a question: names, sizes, pictures", () => {
  const files = [
    { type: "text", text: "File tenon.yaml:\n\nversion: 1\n" },
    { type: "image", mime_type: "image/png", data: "AAAAAA==" },
    { type: "file", mime_type: "application/pdf", text: "a.pdf", data: "AAAA" },
    { type: "file", uri: "https://a.example/b.pdf" },
  ];
  const run = journal()[0]!;
  const v = applyAll(emptyView(), [{ ...run, data: { ...run.data, data: { ...run.data?.data, files } } }]);
  expect(v.attached).toEqual([
    { name: "tenon.yaml", bytes: 11 }, { name: "picture", mime: "image/png", data: "AAAAAA==", bytes: 4 },
    { name: "a.pdf", mime: "application/pdf", data: "AAAA", bytes: 3 }, { name: "https://a.example/b.pdf", mime: undefined },
  ]);
  expect(v.plain).toBe(false);
});

test("UX-9 why a run was stopped is said once, below what was said until then", () => {
  seq = 0;
  const all = [journal()[0]!, event("started", "1", { kind: "model" }), event("cancel", "", { by: "local", reason: "enough" }), event("interrupted", "1", { text: "Half" }), event("done", "", { state: "cancelled", stop_reason: "cancelled" })];
  expect(applyAll(emptyView(), all).items).toMatchObject([{ kind: "text", text: "Half", live: false, cut: true, told: true }, { kind: "note", text: "Stopped by local: enough" }]);
});

test("10,000 steps", () => {
  seq = 0;
  const all: RunEvent[] = [journal()[0]!];
  for (let i = 1; i <= 10_000; i++) all.push(event("started", `${i}`, { kind: "model" }), event("model", `${i}`, { message: { parts: [{ type: "text", text: "x" }] } }));
  const v = applyAll(emptyView(), all);
  expect(v.turns).toBe(10_000);
  expect(v.spans).toHaveLength(10_000);
});

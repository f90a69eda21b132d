import { expect, test } from "vitest";
import { progressOf, stepOf } from "./flow";
import type { RunEvent } from "./types";

let seq = 0;
const event = (kind: string, step: string, data: unknown = {}, attempt = 1): RunEvent => ({ run: "run_1", seq: ++seq, time: new Date(Date.UTC(2026, 0, 1) + seq * 10).toISOString(), step, kind, attempt, data });
const states = (events: RunEvent[]) => Object.fromEntries([...progressOf(events)].map(([k, p]) => [k, p.of ? `${p.state} ${p.done}/${p.of}` : p.state]));

test("the step of an event", () => {
  expect(["a", "a.0", "a.3~2", "a~2", "b/1.0", "a.1/x"].map(stepOf)).toEqual(["a", "a", "a", "a", "b", "a"]);
});

test("steps of each kind, as they come", () => {
  const all = [
    event("run", ""),
    event("planned", "sql", { arguments: {} }), event("started", "sql", { kind: "sql" }), event("result", "sql", { result: {} }),
    event("planned", "call.0", { args: {} }), event("decided", "call.0", { verdict: "ask" }), event("decision", "call.0", { verdict: "allow" }), event("started", "call.0", { kind: "tool" }), event("result", "call.0", { result: { content: [] } }),
    event("planned", "text", { text: "hello" }),
    event("planned", "not", { skip: true }),
    event("planned", "bad", { error: { message: "no such key" } }),
    event("done", "", { state: "failed" }),
  ];
  expect(states(all.slice(0, 3))).toEqual({ sql: "running" });
  expect(states(all.slice(0, 6))).toEqual({ sql: "ok", call: "asking" });
  expect(states(all.slice(0, 8))).toEqual({ sql: "ok", call: "running" });
  expect(states(all)).toEqual({ sql: "ok", call: "ok", text: "ok", not: "skipped", bad: "error" });
  expect(progressOf(all).get("bad")!.error).toBe("no such key");
});

test("a step that is repeated ends with the last of its calls; one that failed stays so", () => {
  const all = [event("planned", "each", { each: true, items: [1, 2, 3] }), event("planned", "each.0", { args: {} }), event("started", "each.0", { kind: "tool" }), event("result", "each.0", { result: {} })];
  expect(states(all)).toEqual({ each: "running 1/3" });
  all.push(event("result", "each.1", { result: { isError: true, content: [{ type: "text", text: "broken" }] } }), event("result", "each.2", { result: {} }));
  expect(states(all)).toEqual({ each: "error 3/3" });
});

test("denied, unknown, stopped, and taken up again", () => {
  const denied = [event("planned", "a.0", { args: {} }), event("decided", "a.0", { verdict: "ask" }), event("decision", "a.0", { verdict: "deny", by: "ann" })];
  expect(states(denied)).toEqual({ a: "error" });
  const lost = [event("planned", "a.0", { args: {} }), event("started", "a.0", { kind: "tool" }), event("unknown", "a.0")];
  expect(states(lost)).toEqual({ a: "unknown" });
  const stopped = [event("planned", "a.0", { args: {} }), event("started", "a.0", { kind: "tool" }), event("done", "", { state: "cancelled" })];
  expect(states(stopped)).toEqual({ a: "stopped" });
  expect(states([...stopped, event("retry", ""), event("started", "a.0", { kind: "tool" }, 2), event("result", "a.0", { result: {} })])).toEqual({ a: "ok" });
});

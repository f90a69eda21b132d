// Holds the fold of the page to the journals and the reports that the Go tests hold package view to.

/// <reference types="vite/client" />
import { expect, test } from "vitest";
import { type Call, type View, applyAll, emptyView, toolsText } from "./fold";
import type { RunEvent } from "./types";

const journals = import.meta.glob<any>("../../../view/testdata/journals/*.json", { eager: true, import: "default" });

// The status that the page shows for each outcome of a record.
const statusOf = (c: { outcome: string; success: boolean }) =>
  c.outcome === "result" ? (c.success ? "ok" : "error") : c.outcome === "failed" ? "error" : c.outcome;

// The reason of a call that has none of its own in an event.
const unrunOf = (c: { error?: string }) => (/^(not run|interrupted): /.test(c.error ?? "") ? c.error : undefined);

const callsOf = (v: View) =>
  v.items.filter((i): i is Call => i.kind === "call").map((c) => ({
    step: c.step, name: c.name, server: c.server, remote: c.remote, args: c.arguments ?? c.proposed ?? {}, by: c.by, attempts: c.attempts, unrun: c.unrun,
    status: c.status !== "stopped" ? c.status : c.attempts > 0 ? "interrupted" : "denied", // the page has one word for both
  }));

const lanes: Record<string, string> = { model: "model", final: "model", compact: "compact", tool: "tool", child: "tool", handoff: "tool", sql: "tool", table: "tool" };

test("there are journals", () => expect(Object.keys(journals).length).toBeGreaterThan(5));

for (const [file, { events, report, steps }] of Object.entries(journals)) {
  test(`the journal ${file.split("/").pop()}`, () => {
    const v = applyAll(emptyView(), events as RunEvent[]);
    expect({ state: v.state, stop: v.stop, turns: v.turns, cost: v.cost ?? null, error: v.error }).toEqual(
      { state: report.state, stop: report.stop_reason, turns: report.turns, cost: report.cost, error: report.error });
    expect(v.usage).toMatchObject({ input_tokens: report.usage?.input_tokens ?? 0, output_tokens: report.usage?.output_tokens ?? 0 });
    if (v.core.startsWith("agent@") && report.state === "completed") expect(v.answer).toEqual(report.answer);
    if (events.some((e: RunEvent) => e.kind === "proposed")) {
      expect(callsOf(v)).toEqual(report.tool_calls.map((c: any) => ({
        step: c.step, name: c.name, server: c.server, remote: c.remote_name, args: c.args, status: statusOf(c), by: c.decided_by, attempts: c.attempts ?? 0, unrun: unrunOf(c),
      })));
    }
    expect(v.items.flatMap((i) => (i.kind === "note" && i.text.startsWith("tools: ") ? [i.text] : []))).toEqual(
      events.flatMap((e: RunEvent) => (e.kind === "tools" ? [toolsText(e.data)] : [])));
    // Every attempt and every wait of the waterfall is a span of the page, with the same times. Waits for
    // answers to a server's questions are spans of the page only.
    const began = Date.parse(events[0].time);
    const spans = v.spans.filter((s) => !s.step.includes("/")).map((s) => ({ step: s.step, wait: s.lane === "wait", start: s.start - began, millis: (s.end ?? s.start) - s.start }));
    const want = steps.flatMap((s: any) => (s.spans ?? []).filter((x: any) => x.wait || lanes[s.kind]).map((x: any) => (
      { step: s.step, wait: x.wait ?? false, start: x.start_ms, millis: x.duration_ms })));
    const order = (a: { start: number; step: string }, b: { start: number; step: string }) => a.start - b.start || a.step.localeCompare(b.step);
    expect(spans.sort(order)).toEqual(want.sort(order));
  });
}

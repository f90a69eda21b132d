// How far the steps of a workflow have come, folded from the events of its run.

import type { RunEvent } from "./types";

export type StepState = "waiting" | "running" | "asking" | "ok" | "error" | "skipped" | "unknown" | "stopped";

export interface Progress {
  state: StepState;
  /** Of a step that is repeated: how many of its calls have ended, and how many there are. */
  done: number;
  of: number;
  attempts: number;
  started?: number;
  ended?: number;
  error?: string;
}

/** The id of the step in the workflow that an event's step is about: STEP.ITEM~TRY/CHILD. */
export const stepOf = (step: string) => step.split(/[.~/]/, 1)[0]!;

const fresh = (): Progress => ({ state: "waiting", done: 0, of: 0, attempts: 0 });

/** The progress of each step that has begun. */
export function progressOf(events: readonly RunEvent[]): Map<string, Progress> {
  const steps = new Map<string, Progress>();
  for (const e of events) {
    if (e.kind === "done") {
      for (const [id, p] of steps) if (p.state === "running" || p.state === "asking") steps.set(id, { ...p, state: e.data?.state === "completed" ? "ok" : "stopped", ended: Date.parse(e.time) });
      continue;
    }
    if (e.kind === "retry") {
      for (const [id, p] of steps) if (p.state === "error" || p.state === "unknown" || p.state === "stopped") steps.set(id, fresh());
      continue;
    }
    if (!e.step) continue;
    const id = stepOf(e.step);
    const p = { ...(steps.get(id) ?? fresh()) };
    steps.set(id, p);
    one(p, e);
  }
  return steps;
}

function one(p: Progress, e: RunEvent): void {
  const d = e.data ?? {};
  const end = (state: StepState, why?: string) => {
    p.done = p.of ? Math.min(p.of, p.done + 1) : 1;
    if (state !== "ok" && p.state !== "error") p.error = why;
    // A step that is repeated has ended when all of its calls have.
    if (state !== "ok") p.state = state;
    else if (p.state !== "error" && p.state !== "unknown") p.state = p.of && p.done < p.of ? "running" : "ok";
    p.ended = Date.parse(e.time);
  };
  switch (e.kind) {
    case "planned":
      p.started ??= Date.parse(e.time);
      if (d.error) end("error", d.error.message);
      else if (d.skip && !/[.]/.test(e.step!)) Object.assign(p, { state: "skipped", ended: Date.parse(e.time) });
      else if (d.skip) end("ok");
      else if (d.each) Object.assign(p, { of: d.items?.length ?? 0, state: d.items?.length ? "running" : "ok" });
      else if (d.text !== undefined && d.args === undefined && d.rows === undefined) Object.assign(p, { state: p.of ? p.state : "ok", done: p.of ? p.done : 1, ended: Date.parse(e.time) });
      else p.state = p.state === "waiting" ? "running" : p.state;
      return;
    case "started":
      if (/\//.test(e.step!)) return;
      p.started ??= Date.parse(e.time);
      p.attempts = Math.max(p.attempts, e.attempt ?? 1);
      p.state = "running";
      p.ended = undefined;
      return;
    case "decided":
      if (d.verdict === "ask") p.state = "asking";
      else if (d.verdict === "deny") end("error", d.reason ?? "it was denied");
      return;
    case "question":
      p.state = "asking";
      return;
    case "decision":
      if (d.verdict === "deny") end("error", d.reason || `denied by ${d.by ?? "somebody"}`);
      else p.state = "running";
      return;
    case "answer":
      p.state = "running";
      return;
    case "expired":
      end("error", d.reason ?? "nobody decided in time");
      return;
    case "result":
      if (d.result?.isError) end("error", d.result.content?.[0]?.text);
      else end("ok");
      return;
    case "failed":
      if (d.retry) return;
      end("error", d.error?.message);
      return;
    case "unknown":
      end("unknown", "whether it took effect is not known");
  }
}

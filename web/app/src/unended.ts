// Why a call that no event ends was not run: what package view says of it (view/unended.go), for the page.

import type { ApiError, RunEvent } from "./types";
import type { Call, View } from "./fold";

/** What the limits of a run have counted so far. */
export interface Limits {
  most: number; // calls of the run, 0 for no limit
  made: number; // calls since the limits were reset
  stop: string; // of the last answer
  final: boolean; // a limit was reached, and the model gives its last answer
  count: Record<string, number>; // calls that were allowed, by tool
}

export const noLimits: Limits = { most: 0, made: 0, stop: "", final: false, count: {} };

const limitText = "not run: the limit of the run was reached";

const tooMany = (name: string, most: number, of: string) =>
  `not run: limit of ${most} ${most === 1 ? "call" : "calls"} reached for tool '${name}' in this ${of}; go on without it`;

/** Counts a call that is allowed, and says what of it if it is beyond the limit of its tool. */
export function decided(v: View, name: string, d: any): Pick<Call, "beyond" | "perhaps"> {
  if (d.verdict === "deny") return {};
  const key = `${d.server_identity ?? ""}/${d.server ?? ""}/${d.remote_name ?? ""}`;
  const n = v.limits.count[key] ?? 0;
  if (d.max_calls > 0 && n >= d.max_calls) return { beyond: tooMany(name, d.max_calls, "run") };
  v.limits = { ...v.limits, count: { ...v.limits.count, [key]: n + 1 } };
  return d.max_session_calls > 0 ? { perhaps: tooMany(name, d.max_session_calls, "session") } : {}; // calls of earlier runs count, too
}

/** Counts the calls of runs that the run called. */
export const spent = (v: View, calls: unknown) => {
  if (typeof calls === "number") v.limits = { ...v.limits, made: v.limits.made + calls };
};

/** Why a call was not run; "" if only the end of the run explains it. */
function passed(v: View, c: Call): string {
  const { most, stop, final } = v.limits;
  if (stop && stop !== "tool_use" && stop !== "stop") return `not run: the answer was cut off (${stop})`;
  if (most > 0 && c.number > most && !c.verdict) return "not run: the run's limit of tool calls is reached";
  if (c.beyond && c.verdict === "allow") return c.beyond;
  return final ? limitText : c.perhaps ?? "";
}

/** The calls since the last answer that were never begun although the model is asked again are settled. */
export function close(v: View, e: RunEvent): void {
  for (let n = v.items.length - 1; n >= 0; n--) {
    const i = v.items[n]!;
    if (i.kind === "text" && !i.live) return;
    if (i.kind !== "call" || i.status !== "proposed") continue;
    v.items[n] = i.attempts > 0 ? { ...i, status: "error" } : { ...i, status: "denied", unrun: passed(v, i) || limitText, ended: Date.parse(e.time) };
  }
}

/** Why a call had not ended when its run did. */
export function ending(v: View, c: Call, error?: ApiError): string {
  const why = c.attempts > 0 ? "" : passed(v, c);
  if (why) return why;
  if (c.waits) return "interrupted: the run was stopped while this call waited for input";
  if (c.attempts > 0) return "interrupted: the run was stopped while this call was under way; it is safe to repeat";
  return error?.code === "limit" ? `not run: ${error.message}` : "not run: the run was stopped before";
}

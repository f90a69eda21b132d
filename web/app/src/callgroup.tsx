// Many calls of one tool in a row, as one card that unfolds.

import { useState } from "react";
import { CallCard, CallFiles, CallProgress } from "./callcard";
import type { Call, Item } from "./fold";
import { Badge, State, cx, visible } from "./ui";

/** What is shown together: one item, or calls of one tool. */
export type Row = Item[];

const few = 3; // so many calls are shown one by one

/** Puts calls of one tool that follow each other together, where they are many. */
export function rowsOf(all: Item[]): Row[] {
  const items = all.filter((i) => i.kind !== "text" || i.text || i.thinking || i.media || i.hosted); // a turn may have calls and no text
  const rows: Row[] = [];
  for (let i = 0; i < items.length; ) {
    let end = i + 1;
    while (items[i]!.kind === "call" && end < items.length && together(items[i] as Call, items[end]!)) end++;
    if (end - i > few) rows.push(items.slice(i, end));
    else for (const item of items.slice(i, end)) rows.push([item]);
    i = end;
  }
  return rows;
}

// A call that asks stays visible by itself.
const together = (a: Call, b: Item) => b.kind === "call" && a.name === b.name && a.server === b.server && !asks(a) && !asks(b);
const asks = (c: Call) => c.status === "asking" || c.status === "question";

export function CallGroup({ calls, run }: { calls: Call[]; run: string }) {
  const [open, setOpen] = useState(false);
  const [first] = calls as [Call];
  const running = calls.filter((c) => c.status === "running");
  const wrong = calls.filter((c) => !["ok", "running", "proposed"].includes(c.status));
  return (
    <div role="group" aria-label={`${calls.length} calls of ${visible(first.remote ?? first.name)}`} className="rounded-lg border border-line bg-panel">
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)} className="flex w-full min-w-0 items-center gap-2 rounded-lg px-3 py-1.5 text-left hover:bg-sunk">
        <span aria-hidden className="text-dim">{open ? "▾" : "▸"}</span>
        <span className="min-w-0 truncate font-mono text-xs">{first.server && <span className="text-dim">{visible(first.server)}.</span>}<strong>{visible(first.remote ?? first.name)}</strong></span>
        <span className="shrink-0 text-xs text-dim">{calls.length} calls</span>
        <span className="ml-auto flex shrink-0 items-center gap-1.5">
          {wrong.length > 0 && <Badge tone="bad">{wrong.length} not ok</Badge>}
          <State state={running.length ? "running" : calls.some((c) => c.status === "proposed") ? "proposed" : wrong.length === calls.length ? wrong[0]!.status : "ok"} />
        </span>
      </button>
      {!open && running.map((c) => <CallProgress key={c.step} call={c} />)}
      {!open && calls.map((c) => <CallFiles key={c.step} call={c} />)}
      <div className={cx("flex flex-col gap-1.5 border-t border-line p-2", !open && "hidden")}>{open && calls.map((c) => <CallCard key={c.step} call={c} run={run} />)}</div>
    </div>
  );
}

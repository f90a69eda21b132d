// A bar of what the definitions of tools take of each request, with a scale; from 50,000 tokens on, what to do about it.

import type { Tool } from "./types";
import { count, cx, plural, visible } from "./ui";
import { heavy, scale, shares } from "./weight";

const colours = ["bg-accent", "bg-violet", "bg-ok", "bg-warn", "bg-bad", "bg-dim"];

export function WeightBar({ tools }: { tools: Tool[] }) {
  const list = shares(tools);
  const total = list.reduce((n, s) => n + s.tokens, 0);
  if (total === 0) return null;
  const { end, marks } = scale(total);
  return (
    <div className="px-1">
      <div role="img" aria-label={`${plural(total, "token")}: ${list.map((s) => `${s.server} ${count(s.tokens)}`).join(", ")}`} className="relative mt-0.5">
        <div className="flex h-2 overflow-hidden rounded bg-sunk">
          {list.map((s, i) => <span key={s.server} title={`${visible(s.server)}: ${plural(s.tools, "tool")}, ${plural(s.tokens, "token")}`} className={colours[i]} style={{ width: `${(100 * s.tokens) / end}%` }} />)}
        </div>
        <div aria-hidden className="flex justify-between text-xs text-dim">{marks.map((m) => <span key={m}>{count(m)}</span>)}</div>
      </div>
      <details className="text-xs text-dim">
        <summary>by server</summary>
        <ul aria-label="Weights">{list.map((s, i) => <li key={s.server} className="flex items-center gap-1.5"><span aria-hidden className={cx("size-2 shrink-0 rounded-sm", colours[i])} /><span className="min-w-0 truncate">{visible(s.server)}</span><span className="ml-auto shrink-0">{plural(s.tokens, "token")} in {s.tools} {s.tools === 1 ? "tool" : "tools"}</span></li>)}</ul>
      </details>
      {total >= heavy && (
        <p role="alert" className="mt-1 rounded bg-warn-ground px-2 py-1 text-xs text-warn">
          An agent with all these tools would send {count(total)} tokens of definitions with each request. Above <code className="font-mono">tool_search.threshold</code> it gets a tool that searches for them instead; give agents fewer tools in <code className="font-mono">agents.NAME.tools</code>, or disable servers that nobody uses.
        </p>
      )}
    </div>
  );
}

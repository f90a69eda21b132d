// A workflow as a picture: what waits for what, from left to right, with how far each
// step has come.

import { useMemo } from "react";
import type { WorkflowGraph } from "./types";
import type { Progress } from "./flow";
import { high, most, pathOf, route, wide } from "./flowroute";
import { cx, millis, visible } from "./ui";

const looks: Record<string, { box: string; mark: string; word: string; text: string }> = {
  waiting: { box: "fill-panel stroke-line", mark: "○", word: "not yet", text: "fill-dim" },
  running: { box: "fill-accent-ground stroke-accent", mark: "●", word: "running", text: "fill-accent" },
  asking: { box: "fill-warn-ground stroke-warn", mark: "◆", word: "waits for you", text: "fill-warn" },
  ok: { box: "fill-ok-ground stroke-ok", mark: "✓", word: "done", text: "fill-ok" },
  error: { box: "fill-bad-ground stroke-bad", mark: "✕", word: "failed", text: "fill-bad" },
  skipped: { box: "fill-sunk stroke-line", mark: "⊘", word: "skipped", text: "fill-dim" },
  unknown: { box: "fill-violet-ground stroke-violet", mark: "?", word: "unknown", text: "fill-violet" },
  stopped: { box: "fill-sunk stroke-line", mark: "■", word: "stopped", text: "fill-dim" },
};

interface Props {
  graph: WorkflowGraph;
  /** Of a run; without one the graph alone is drawn. */
  progress?: Map<string, Progress>;
  ended?: boolean;
  chosen?: string;
  onChoose?: (step: string) => void;
}

export function FlowGraph({ graph, progress, ended, chosen, onChoose }: Props) {
  const { at, edges, width, height } = useMemo(() => route(graph), [graph]);
  const nodes = graph.nodes.slice(0, most);
  const short = (s: string, n: number) => (s.length > n ? `${s.slice(0, n - 1)}…` : s);
  return (
    <div tabIndex={0} role="region" aria-label={`Graph of ${visible(graph.name)}`} className="max-h-[60vh] overflow-auto">
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label="Steps" className="font-sans">
        <defs><marker id="flow-tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" className="fill-dim" /></marker></defs>
        <g aria-hidden>
          {edges.map((points, i) => points && <path key={i} data-flow-edge d={pathOf(points)} fill="none" className="stroke-dim" strokeWidth={1.2} markerEnd="url(#flow-tip)" />)}
        </g>
        {nodes.map((n) => {
          const [x, y] = at.get(n.id)!;
          const port = n.kind === "input" || n.kind === "output" || n.kind === "message";
          const p = progress?.get(n.id);
          const state = port || !progress ? undefined : (p?.state ?? (ended ? "stopped" : "waiting"));
          const look = state ? looks[state]! : looks.waiting!;
          const took = p?.started && p.ended && p.state !== "skipped" ? millis(p.ended - p.started) : "";
          const words = state ? `${look.word}${p?.of ? ` ${p.done} of ${p.of}` : ""}${took && ` ${took}`}` : "";
          const choose = port || !onChoose ? undefined : () => onChoose(n.id);
          return (
            <g key={n.id} data-flow-step={port ? undefined : n.id} data-state={state} transform={`translate(${x} ${y})`} role={choose ? "button" : "img"} tabIndex={choose ? 0 : undefined} aria-pressed={choose ? chosen === n.id : undefined}
              aria-label={visible(`${n.id}, ${n.kind}${words && `, ${words}`}`)} className={cx(choose && "cursor-pointer")} onClick={choose}
              onKeyDown={choose && ((e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(); } })}>
              <title>{visible([n.id, n.kind, n.label, p?.error].filter(Boolean).join("\n"))}</title>
              <rect width={wide} height={high} rx={port ? 25 : 7} strokeWidth={chosen === n.id ? 2.5 : 1.2} strokeDasharray={port ? "4 3" : undefined} className={cx(look.box, state === "running" && "animate-pulse")} />
              <text x={12} y={20} fontSize={12.5} fontWeight={600} className="fill-ink">{visible(short(n.id, words ? 17 : 24))}</text>
              {state && <text x={wide - 10} y={20} fontSize={11} textAnchor="end" className={look.text}>{look.mark}{p?.of ? ` ${p.done}/${p.of}` : took && ` ${took}`}</text>}
              <text x={12} y={37} fontSize={11} className="fill-dim">{visible(short(`${n.kind} ${n.label ?? ""}`.trim(), 29))}</text>
            </g>
          );
        })}
      </svg>
      {graph.nodes.length > most && <p className="px-3 pb-2 text-xs text-dim">The first {most} of {graph.nodes.length} boxes are drawn.</p>}
    </div>
  );
}

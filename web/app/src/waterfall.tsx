// A run over time: a lane each for the model, waiting, tools and compaction.

import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";
import type { Span, View } from "./fold";
import { cx, millis, visible } from "./ui";

const colours: Record<Span["lane"], string> = { model: "bg-accent", tool: "bg-ok", wait: "bg-warn", compact: "bg-violet" };
const bad = new Set(["error", "denied", "unknown", "expired", "interrupted"]);
const rowHeight = 24;

export function Waterfall({ view, chosen, onChoose }: { view: View; chosen: string; onChoose: (step: string) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const begin = view.created ?? view.spans[0]?.start ?? 0;
  const now = view.ended ?? Math.max(Date.now(), ...view.spans.slice(-50).map((s) => s.end ?? s.start));
  const whole = Math.max(1, now - begin);
  const rows = useVirtualizer({ count: view.spans.length, getScrollElement: () => box.current, estimateSize: () => rowHeight, overscan: 20 });
  return (
    <div>
      <div className="flex flex-wrap items-center gap-3 border-b border-line px-3 py-1 text-xs text-dim">
        {(["model", "tool", "wait", "compact"] as const).map((l) => <span key={l} className="flex items-center gap-1"><span aria-hidden className={cx("size-2.5 rounded-sm", colours[l])} />{l === "wait" ? "waiting for a person" : l === "compact" ? "compaction" : l}</span>)}
        <span className="ml-auto">{millis(whole)} in all</span>
      </div>
      <div aria-hidden className="flex items-center gap-2 px-3 pt-1 text-xs text-dim">
        <span className="w-10 shrink-0">step</span><span className="w-40 shrink-0 max-sm:w-24">what</span>
        <span className="flex min-w-0 flex-1 justify-between"><span>0</span><span className="max-sm:hidden">{millis(whole / 2)}</span><span>{millis(whole)}</span></span>
        <span className="w-16 shrink-0 text-right">took</span>
      </div>
      <div ref={box} tabIndex={0} role="region" aria-label="Waterfall" className="max-h-[45vh] overflow-auto pb-1">
        <ol style={{ height: rows.getTotalSize() }} className="relative">
          {rows.getVirtualItems().map((r) => {
            const s = view.spans[r.index]!;
            const left = (100 * (s.start - begin)) / whole;
            const width = (100 * ((s.end ?? now) - s.start)) / whole;
            const took = millis((s.end ?? now) - s.start);
            return (
              <li key={r.key} className="absolute inset-x-0" style={{ top: r.start, height: rowHeight }}>
                <button type="button" aria-pressed={s.step === chosen} onClick={() => onChoose(s.step)} title={`${visible(s.label)} · ${took} · ${s.outcome}`}
                  className={cx("flex h-full w-full items-center gap-2 px-3 text-left text-xs hover:bg-sunk", s.step === chosen && "bg-accent-ground")}>
                  <span className="w-10 shrink-0 font-mono text-dim">{s.step}</span>
                  <span className="w-40 shrink-0 truncate font-mono max-sm:w-24">{visible(s.label)}</span>
                  <span className="relative h-3 min-w-0 flex-1 rounded bg-sunk">
                    <span className={cx("absolute h-3 rounded", bad.has(s.outcome) ? "bg-bad" : colours[s.lane], s.end === undefined && "animate-pulse")} style={{ left: `${Math.min(99.5, left)}%`, width: `max(3px, ${Math.min(100 - left, width)}%)` }} />
                  </span>
                  <span className="w-16 shrink-0 text-right text-dim">{took}</span>
                </button>
              </li>
            );
          })}
        </ol>
      </div>
    </div>
  );
}

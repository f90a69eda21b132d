// Lines over time. What they say stands in a table too: the picture is for the eye.

import { useEffect, useLayoutEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Line {
  label: string;
  values: (number | null)[];
}

// Told apart by their lightness too, on both grounds.
const strokes = ["#3b82f6", "#16a34a", "#d97706", "#a855f7", "#ef4444", "#0891b2"];
const dashes = [[], [6, 3], [2, 3], [10, 4], [4, 2, 1, 2], [1, 2]];
export const mostLines = strokes.length;

interface Props {
  title: string;
  times: number[]; // seconds since the epoch, ascending
  lines: Line[]; // at most mostLines
  say: (v: number) => string;
  /** A value holds for the whole of its hour or day: a sum, not a point. */
  stepped?: boolean;
}

export default function Chart({ title, times, lines, say, stepped }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  useLayoutEffect(() => {
    const b = box.current!;
    const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const axis = { stroke: colour("--c-dim"), grid: { stroke: colour("--c-line"), width: 1 }, ticks: { stroke: colour("--c-line"), width: 1 } };
    const newest = times.length - 1;
    const plot = new uPlot(
      {
        width: b.clientWidth || 600,
        height: 240,
        series: [{}, ...lines.map((l, i) => ({ label: l.label, stroke: strokes[i], dash: dashes[i], width: 2, points: { show: !stepped && times.length < 60, size: 5 }, ...(stepped ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}), value: (_: uPlot, v: number | null) => (v === null ? "none" : say(v)) }))],
        axes: [axis, { ...axis, size: 64, values: (_: uPlot, all: number[]) => all.map(say) }],
        scales: { y: { range: (_: uPlot, __: number, max: number) => [0, max > 0 ? max * 1.08 : 1] } },
        legend: { live: true },
        hooks: {
          // Without a pointer over it, the legend says the newest values rather than nothing.
          setLegend: [(u: uPlot) => { if (u.legend.idx == null) u.setLegend({ idx: newest }, false); }],
          ready: [(u: uPlot) => u.setLegend({ idx: newest }, false)],
        },
      },
      [times, ...lines.map((l) => l.values)],
      b,
    );
    const o = new ResizeObserver(() => plot.setSize({ width: Math.max(200, b.clientWidth), height: 240 }));
    o.observe(b);
    return () => {
      o.disconnect();
      plot.destroy();
    };
  }, [times, lines, say, stepped, theme]);
  return <div ref={box} role="img" aria-label={title} className="overflow-hidden text-xs" />;
}

function useTheme(): string {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "");
  useEffect(() => {
    const o = new MutationObserver(() => setTheme(document.documentElement.dataset.theme ?? ""));
    o.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => o.disconnect();
  }, []);
  return theme;
}

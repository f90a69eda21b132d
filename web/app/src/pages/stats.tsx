// What was called, how often, how fast, how well, at what cost: in all, and over time.

import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { get, type Page } from "../api";
import Chart, { type Line, mostLines } from "../chart";
import type { Stat } from "../types";
import { Button, Empty, ErrorBox, To, count, cx, dollars, field, millis, path, visible } from "../ui";

type Key = "calls" | "errors" | "denied" | "cached" | "p50_ms" | "p95_ms" | "tokens" | "cost";

const kinds = [["tools", "Tools"], ["servers", "Servers"], ["models", "Models"], ["agents", "Agents"]] as const;
const spans = [["1d", "hour", "a day"], ["7d", "hour", "a week"], ["30d", "day", "a month"], ["365d", "day", "a year"]] as const;
const figures: [Key, string][] = [["calls", "Calls"], ["errors", "Errors"], ["denied", "Denied"], ["cached", "Cached"], ["p50_ms", "p50"], ["p95_ms", "p95"], ["tokens", "Tokens"], ["cost", "Cost"]];

const value = (s: Stat, k: Key) => (k === "tokens" ? s.input_tokens + s.output_tokens : s[k]);
const label = (s: Stat) => (s.server ? `${s.server}.${s.remote_name}` : s.name);
const say: Record<Key, (v: number) => string> = { calls: whole, errors: whole, denied: whole, cached: whole, tokens: whole, p50_ms: millis, p95_ms: millis, cost: (v) => (v === 0 ? "$0" : dollars(v)) };

function whole(v: number): string {
  return Number.isInteger(v) ? count(v) : "";
}

export default function Stats() {
  const [by, setBy] = useState<(typeof kinds)[number][0]>("tools");
  const [span, setSpan] = useState(1);
  const [figure, setFigure] = useState<Key>("calls");
  const [since, per] = spans[span]!;
  const read = (q: string) => () => get<Page<Stat>>(`/api/v1/stats/${by}?${q}`);
  const all = useQuery({ queryKey: ["runs", "stats", by, since], queryFn: read(`since=${since}`), staleTime: 5_000, placeholderData: (old) => old });
  const over = useQuery({ queryKey: ["runs", "stats", by, since, per], queryFn: read(`since=${since}&per=${per}`), staleTime: 5_000, placeholderData: (old) => old });
  const items = useMemo(() => (all.data?.items ?? []).toSorted((a, b) => value(b, figure) - value(a, figure)), [all.data, figure]);
  const { times, lines } = useMemo(() => series(over.data?.items ?? [], items, figure, per), [over.data, items, figure, per]);
  const sum = (k: Key | "unknown") => items.reduce((n, s) => n + (k === "unknown" ? s.unknown : value(s, k)), 0);
  const name = figures.find(([k]) => k === figure)![1];
  return (
    <div className="mx-auto flex max-w-5xl flex-col gap-3 p-3 md:p-5">
      <header className="flex flex-wrap items-center gap-2">
        <h1 className="mr-2 text-lg font-semibold">Analytics</h1>
        <div role="group" aria-label="Counted by" className="flex flex-wrap gap-1">
          {kinds.map(([k, title]) => <Button key={k} tone="quiet" aria-pressed={k === by} className={cx("text-xs", k === by && "bg-accent-ground text-accent")} onClick={() => setBy(k)}>{title}</Button>)}
        </div>
        <select aria-label="Since" className={`${field} ml-auto w-auto!`} value={span} onChange={(e) => setSpan(Number(e.target.value))}>
          {spans.map(([, , title], i) => <option key={title} value={i}>{title}</option>)}
        </select>
        <select aria-label="Figure" className={`${field} w-auto!`} value={figure} onChange={(e) => setFigure(e.target.value as Key)}>
          {figures.map(([k, title]) => <option key={k} value={k}>{title}</option>)}
        </select>
      </header>
      {all.isError && <ErrorBox error={all.error} retry={() => void all.refetch()} />}
      {over.isError && <ErrorBox error={over.error} retry={() => void over.refetch()} />}
      {all.data && items.length === 0 && <Empty>Nothing was called in that time.</Empty>}
      {items.length > 0 && (
        <>
          <dl className="grid grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-6">
            <Figure name="calls" value={count(sum("calls"))} />
            <Figure name="errors" value={count(sum("errors"))} bad={sum("errors") > 0} />
            {by === "models" ? <Figure name="tokens" value={count(sum("tokens"))} /> : <Figure name="denied" value={count(sum("denied"))} />}
            <Figure name="answered from the cache" value={count(sum("cached"))} />
            <Figure name="outcome unknown" value={count(sum("unknown"))} bad={sum("unknown") > 0} />
            <Figure name="cost, as far as known" value={say.cost(sum("cost"))} />
          </dl>
          <section aria-label={`${name} over time`} className="rounded-lg border border-line bg-panel p-3">
            <h2 className="mb-1 text-sm font-semibold">{name} in each {per}</h2>
            <Chart title={`${name} in each ${per}, by ${by}: ${lines.map((l) => l.label).join(", ")}`} times={times} lines={lines} say={say[figure]} stepped={figure !== "p50_ms" && figure !== "p95_ms"} />
          </section>
          <Totals items={items} by={by} figure={figure} onFigure={setFigure} />
        </>
      )}
    </div>
  );
}

/** The lines of those that have most of a figure, with a value for every hour or day up to now. */
function series(stats: Stat[], items: Stat[], figure: Key, per: "hour" | "day"): { times: number[]; lines: Line[] } {
  const step = per === "hour" ? 3600 : 86_400;
  const at = (s: Stat) => Math.floor(Date.parse(s.at ?? "") / 1000);
  const begun = stats.map(at).filter((t) => !Number.isNaN(t));
  if (begun.length === 0) return { times: [], lines: [] };
  const last = Math.max(begun.reduce((a, b) => Math.max(a, b)), Math.floor(Date.now() / 1000 / step) * step);
  const first = Math.min(begun.reduce((a, b) => Math.min(a, b)), last - (per === "hour" ? 23 : 6) * step); // a picture needs some width
  const times = Array.from({ length: Math.min(2000, (last - first) / step + 1) }, (_, i) => first + i * step);
  const timed = figure === "p50_ms" || figure === "p95_ms";
  const lines = items.slice(0, mostLines).map((s): Line => {
    const mine = new Map(stats.filter((x) => label(x) === label(s)).map((x) => [at(x), value(x, figure)]));
    return { label: visible(label(s)), values: times.map((t) => mine.get(t) ?? (timed ? null : 0)) };
  });
  return { times, lines };
}

function Totals({ items, by, figure, onFigure }: { items: Stat[]; by: string; figure: Key; onFigure: (k: Key) => void }) {
  const most = Math.max(1, ...items.map((t) => t.calls));
  return (
    <div className="overflow-x-auto rounded-lg border border-line bg-panel" tabIndex={0} role="region" aria-label="In all">
      <table className="w-full text-sm">
        <thead>
          <tr className="border-b border-line text-left text-xs text-dim">
            <th scope="col" className="px-3 py-1.5 font-medium">Name</th>
            {figures.map(([k, title]) => (
              <th key={k} scope="col" aria-sort={figure === k ? "descending" : undefined} className="px-2 py-0.5"><Button tone="quiet" className={cx("-mx-[5px] px-1! text-xs", figure === k && "text-ink")} onClick={() => onFigure(k)}>{title}{figure === k && " ▾"}</Button></th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.slice(0, 500).map((t) => (
            <tr key={label(t)} className="border-b border-line last:border-0">
              <td className="max-w-80 truncate px-3 py-1 font-mono text-xs">
                {by === "tools" && t.server ? <To to={path("tools", label(t))} className="text-ink hover:underline">{visible(label(t))}</To> : by === "servers" ? <To to={path("servers", t.name)} className="text-ink hover:underline">{visible(t.name)}</To> : visible(t.name)}
              </td>
              <td className="px-2 py-1"><span className="flex items-center gap-2"><svg width="60" height="8" aria-hidden><rect width={(60 * t.calls) / most} height="8" rx="3" className="fill-accent" /><rect width={(60 * t.errors) / most} height="8" rx="3" className="fill-bad" /></svg>{t.calls}</span></td>
              <td className={cx("px-2 py-1", t.errors > 0 && "text-bad")}>{t.errors}</td>
              <td className="px-2 py-1">{t.denied}</td>
              <td className="px-2 py-1">{t.cached}</td>
              <td className="px-2 py-1">{millis(t.p50_ms)}</td>
              <td className="px-2 py-1">{millis(t.p95_ms)}</td>
              <td className="px-2 py-1">{count(value(t, "tokens"))}</td>
              <td className="px-2 py-1">{t.cost > 0 ? dollars(t.cost) : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Figure({ name, value, bad }: { name: string; value: string; bad?: boolean }) {
  return <div className="rounded-lg border border-line bg-panel px-3 py-2"><dt className="text-xs text-dim">{name}</dt><dd className={cx("text-xl font-semibold", bad && "text-bad")}>{value}</dd></div>;
}

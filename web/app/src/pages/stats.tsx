// What was called, how often, how fast, how well.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, type Page } from "../api";
import { Button, Empty, ErrorBox, To, count, cx, millis, path, visible } from "../ui";

interface ToolStat {
  name: string;
  server: string;
  remote_name: string;
  calls: number;
  errors: number;
  denied: number;
  unknown: number;
  p50_ms: number;
  p95_ms: number;
}

type Key = "calls" | "errors" | "denied" | "p50_ms" | "p95_ms";

export default function Stats() {
  const list = useQuery({ queryKey: ["runs", "stats"], queryFn: () => get<Page<ToolStat>>("/api/v1/stats/tools"), staleTime: 5_000 });
  const [by, setBy] = useState<Key>("calls");
  const items = (list.data?.items ?? []).toSorted((a, b) => b[by] - a[by]);
  const sum = (k: Key | "unknown") => items.reduce((n, t) => n + t[k], 0);
  const most = Math.max(1, ...items.map((t) => t.calls));
  return (
    <div className="mx-auto flex max-w-5xl flex-col gap-3 p-3 md:p-5">
      <h1 className="text-lg font-semibold">Analytics</h1>
      {list.isError && <ErrorBox error={list.error} retry={() => void list.refetch()} />}
      {list.data && items.length === 0 && <Empty>No tool was called yet.</Empty>}
      {items.length > 0 && (
        <>
          <dl className="grid grid-cols-2 gap-3 sm:grid-cols-4">
            <Figure name="calls" value={count(sum("calls"))} />
            <Figure name="errors" value={count(sum("errors"))} bad={sum("errors") > 0} />
            <Figure name="denied" value={count(sum("denied"))} />
            <Figure name="outcome unknown" value={count(sum("unknown"))} bad={sum("unknown") > 0} />
          </dl>
          <div className="overflow-x-auto rounded-lg border border-line bg-panel" tabIndex={0} role="region" aria-label="Tools">
            <table className="w-full text-sm">
              <thead>
                <tr className="border-b border-line text-left text-xs text-dim">
                  <th scope="col" className="px-3 py-1.5 font-medium">Tool</th>
                  {([["calls", "Calls"], ["errors", "Errors"], ["denied", "Denied"], ["p50_ms", "p50"], ["p95_ms", "p95"]] as [Key, string][]).map(([k, label]) => (
                    <th key={k} scope="col" aria-sort={by === k ? "descending" : undefined} className="px-2 py-0.5"><Button tone="quiet" className={cx("px-1 text-xs", by === k && "text-ink")} onClick={() => setBy(k)}>{label}{by === k && " ▾"}</Button></th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {items.map((t) => (
                  <tr key={`${t.server} ${t.remote_name}`} className="border-b border-line last:border-0">
                    <td className="px-3 py-1"><To to={path("tools", `${t.server}.${t.remote_name}`)} className="font-mono text-xs text-ink hover:underline">{visible(`${t.server}.${t.remote_name}`)}</To></td>
                    <td className="px-2 py-1"><span className="flex items-center gap-2"><svg width="80" height="8" aria-hidden><rect width={(80 * t.calls) / most} height="8" rx="3" className="fill-accent" /><rect width={(80 * t.errors) / most} height="8" rx="3" className="fill-bad" /></svg>{t.calls}</span></td>
                    <td className={cx("px-2 py-1", t.errors > 0 && "text-bad")}>{t.errors}</td>
                    <td className="px-2 py-1">{t.denied}</td>
                    <td className="px-2 py-1">{millis(t.p50_ms)}</td>
                    <td className="px-2 py-1">{millis(t.p95_ms)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </div>
  );
}

function Figure({ name, value, bad }: { name: string; value: string; bad?: boolean }) {
  return <div className="rounded-lg border border-line bg-panel px-3 py-2"><dt className="text-xs text-dim">{name}</dt><dd className={cx("text-xl font-semibold", bad && "text-bad")}>{value}</dd></div>;
}

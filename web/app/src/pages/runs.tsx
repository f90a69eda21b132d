// All runs, newest first.

import { useState } from "react";
import { useRuns } from "../data";
import { go, usePlace } from "../router";
import type { RunRow } from "../types";
import { Ago, Button, Empty, ErrorBox, State, To, cx, field, millis, path, visible } from "../ui";

const states = ["", "working", "input_required", "completed", "failed", "cancelled", "interrupted"];

export default function Runs() {
  const { query } = usePlace();
  const state = query.get("state") ?? "";
  const [cursors, setCursors] = useState<string[]>([]);
  const [words, setWords] = useState("");
  const died = state === "interrupted"; // the journal has such a run as working
  const list = useRuns({ state: died ? "working" : state, cursor: cursors.at(-1), limit: 50 });
  const shown = (list.data?.items ?? []).filter((r) => !died || r.interrupted).filter((r) => words.toLowerCase().split(/\s+/).every((w) => `${r.title} ${r.agent} ${r.model} ${r.id}`.toLowerCase().includes(w)));
  const longest = Math.max(1, ...shown.map((r) => Date.parse(r.updated) - Date.parse(r.created)));
  return (
    <div className="mx-auto flex max-w-6xl flex-col gap-3 p-3 md:p-5">
      <header className="flex flex-wrap items-center gap-2">
        <h1 className="mr-2 text-lg font-semibold">Runs</h1>
        <div role="group" aria-label="State" className="flex flex-wrap gap-1">
          {states.map((s) => (
            <Button key={s} tone="quiet" aria-pressed={s === state} className={cx("text-xs", s === state && "bg-accent-ground text-accent")} onClick={() => { setCursors([]); go(s ? `/runs?state=${s}` : "/runs"); }}>
              {s === "" ? "all" : s === "input_required" ? "waiting" : s}
            </Button>
          ))}
        </div>
        <input type="search" aria-label="Filter this page" placeholder="filter" className={`${field} ml-auto w-44!`} value={words} onChange={(e) => setWords(e.target.value)} />
      </header>
      {list.isError && <ErrorBox error={list.error} retry={() => void list.refetch()} />}
      {list.data && shown.length === 0 && <Empty>There is no such run{state === "" && words === "" ? " yet. Ask something in the chat." : "."}</Empty>}
      {shown.length > 0 && (
        <div className="overflow-x-auto rounded-lg border border-line bg-panel" tabIndex={0} role="region" aria-label="Runs">
          <table className="w-full text-sm">
            <thead>
              <tr className="border-b border-line text-left text-xs text-dim">
                <th scope="col" className="px-3 py-1.5 font-medium">Question</th>
                <th scope="col" className="hidden px-2 py-1.5 font-medium sm:table-cell">State</th>
                <th scope="col" className="hidden px-2 py-1.5 font-medium sm:table-cell">Agent, model</th>
                <th scope="col" className="hidden px-2 py-1.5 font-medium md:table-cell">Time</th>
                <th scope="col" className="px-2 py-1.5 font-medium">Begun</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((r) => {
                const took = Date.parse(r.updated) - Date.parse(r.created);
                return (
                  <tr key={r.id} className="border-b border-line last:border-0 hover:bg-sunk">
                    <td className="w-full max-w-0 px-3 py-1.5"><To to={path("runs", r.id)} className="block truncate text-ink hover:underline">{visible(r.title || r.id)}</To><p className="mt-0.5 sm:hidden"><RunState run={r} /></p></td>
                    <td className="hidden px-2 py-1.5 sm:table-cell"><RunState run={r} /></td>
                    <td className="hidden max-w-40 truncate lg:max-w-56 px-2 py-1.5 text-xs text-dim sm:table-cell">{visible(r.agent ?? "")} · {visible(r.model ?? "")}</td>
                    <td className="hidden px-2 py-1.5 text-xs text-dim md:table-cell">
                      <span className="flex items-center gap-1.5 whitespace-nowrap">
                        <svg className="shrink-0" width="48" height="6" aria-hidden><rect width="48" height="6" rx="3" className="fill-sunk" /><rect width={Math.max(2, (48 * took) / longest)} height="6" rx="3" className="fill-accent" /></svg>
                        {millis(took)}
                      </span>
                    </td>
                    <td className="px-2 py-1.5 text-xs text-dim"><Ago time={r.created} /></td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      <div className="flex gap-2">
        {cursors.length > 0 && <Button onClick={() => setCursors(cursors.slice(0, -1))}>Newer</Button>}
        {list.data?.next_cursor && <Button onClick={() => setCursors([...cursors, list.data!.next_cursor!])}>Older</Button>}
      </div>
    </div>
  );
}

/** The state of a run, and why it ended where the state does not say it. */
function RunState({ run: r }: { run: RunRow }) {
  const why = r.stop_reason && !["stop", r.state, ...(r.state === "failed" ? ["error"] : [])].includes(r.stop_reason) ? r.stop_reason.replaceAll("_", " ") : "";
  return <><State state={r.interrupted ? "interrupted" : r.state} /> {(r.interrupted || why) && <span className="text-xs text-dim">{r.interrupted ? "its process died; open it to resume it" : why}</span>}</>;
}

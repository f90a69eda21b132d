// A page with a list at its side and one of its entries beside it. On a narrow screen only one of them is seen.

import type { ReactNode } from "react";
import type { OffersQuery } from "./data";
import { Ago, Button, Empty, ErrorBox, Spinner, To, cx, field, visible } from "./ui";

export function Listed({ list, chosen, all, name, children }: { list: ReactNode; chosen: boolean; all: string; name: string; children: ReactNode }) {
  return (
    <div className="flex h-full min-h-0">
      <div className={cx("min-h-0 w-full flex-col border-r border-line md:flex md:w-80 md:shrink-0", chosen ? "hidden" : "flex")}>{list}</div>
      <div className={cx("min-h-0 min-w-0 flex-1 overflow-auto", !chosen && "hidden md:block")}>
        <div className="mx-auto flex max-w-4xl flex-col gap-3 p-3 md:p-5">
          {chosen && <h1 className="text-base font-normal md:hidden"><To to={all}>all {name}</To></h1>}
          {children}
        </div>
      </div>
    </div>
  );
}

/** The list, with a filter, its age, what is missing in it, and a word for an empty one. */
export function Choices({ title, words, onWords, query, count, none, children }: { title: string; words: string; onWords: (w: string) => void; query: OffersQuery<unknown>; count: number; none: string; children: ReactNode }) {
  return (
    <>
      <header className="flex flex-col gap-2 border-b border-line bg-panel p-2">
        <div className="flex items-center gap-2">
          <h1 className="px-1 text-lg font-semibold">{title}</h1>
          <Button tone="quiet" className="ml-auto" disabled={query.busy} onClick={query.ask}>{query.busy && <Spinner />} Ask the servers</Button>
        </div>
        <input type="search" aria-label={`Filter ${title.toLowerCase()}`} placeholder="filter" className={field} value={words} onChange={(e) => onWords(e.target.value)} />
        <p className="px-1 text-xs text-dim" role="status">
          {query.data ? `${count} ${title.toLowerCase()}` : query.error === undefined && "Asking the servers…"}
          {query.data?.listed && <>, as listed <Ago time={query.data.listed} /></>}
          {query.asked.length > 0 && <>; waiting for {visible(query.asked.join(", "))}</>}
        </p>
        {(query.data?.problems ?? []).map((p, i) => <p key={i} className="line-clamp-3 px-1 text-xs break-words text-warn" title={visible(p.message)}>{visible(p.message)}</p>)}
      </header>
      {query.error !== undefined && <ErrorBox error={query.error} retry={query.ask} />}
      {query.data && count === 0 && query.asked.length === 0 && <Empty>{none}</Empty>}
      <ul aria-label={title} tabIndex={0} className="min-h-0 flex-1 overflow-auto">{children}</ul>
    </>
  );
}

export function Choice({ to, current, name, server, below }: { to: string; current: boolean; name: string; server: string; below: string }) {
  return (
    <li>
      <To to={to} aria-current={current ? "page" : undefined} className={cx("block border-b border-line px-3 py-1.5", current ? "bg-accent-ground" : "hover:bg-sunk")}>
        <span className="flex items-center gap-2"><span className="truncate text-sm text-ink">{visible(name)}</span><span className="ml-auto shrink-0 text-xs text-dim">{visible(server)}</span></span>
        <span className="block truncate text-xs text-dim">{visible(below)}</span>
      </To>
    </li>
  );
}

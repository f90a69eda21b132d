// The last messages of the protocol, as they were on the wire.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, type Page } from "./api";
import type { Frame } from "./types";
import { Badge, Button, Empty, ErrorBox, LongText, bytes, cx, field, visible } from "./ui";

export function Frames({ server }: { server: string }) {
  const list = useQuery({ queryKey: ["frames", server], queryFn: () => get<Page<Frame>>(`/api/v1/servers/${encodeURIComponent(server)}/frames`), staleTime: 0 });
  const [words, setWords] = useState("");
  const [way, setWay] = useState("");
  const all = list.data?.items ?? [];
  const wanted = words.toLowerCase();
  const items = all.filter((f) => (way === "" || f.sent === (way === "sent")) && `${f.method ?? ""} ${f.text}`.toLowerCase().includes(wanted)).toReversed();
  return (
    <section aria-label="Protocol frames">
      <div className="flex flex-wrap items-center gap-2 px-3 py-1.5">
        <input type="search" aria-label="Filter frames" placeholder="method or text" className={`${field} w-48!`} value={words} onChange={(e) => setWords(e.target.value)} />
        <select aria-label="Direction" className={`${field} w-auto!`} value={way} onChange={(e) => setWay(e.target.value)}>
          <option value="">both ways</option>
          <option value="sent">sent by tenon</option>
          <option value="received">from the server</option>
        </select>
        <span role="status" className="text-xs text-dim">{items.length} of the last {all.length}</span>
        <Button tone="quiet" className="ml-auto" disabled={list.isFetching} onClick={() => void list.refetch()}>Read again</Button>
      </div>
      {list.isError && <ErrorBox error={list.error} retry={() => void list.refetch()} />}
      {list.data && all.length === 0 && <Empty>Nothing was exchanged with it since tenon serve began.</Empty>}
      <ol aria-label="Frames" tabIndex={0} className="max-h-96 divide-y divide-line overflow-auto border-t border-line text-xs">
        {items.map((f) => <FrameRow key={f.seq} frame={f} />)}
      </ol>
    </section>
  );
}

function FrameRow({ frame: f }: { frame: Frame }) {
  const [open, setOpen] = useState(false);
  const kind = f.answer ? "answer" : f.id ? "request" : "notice";
  const failed = f.answer && /"error"\s*:\s*\{/.test(f.text.slice(0, 200));
  return (
    <li>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)} className="flex w-full items-center gap-2 px-3 py-1 text-left hover:bg-sunk">
        <span className={cx("w-4 shrink-0", f.sent ? "text-accent" : "text-ok")} title={f.sent ? "sent by tenon" : "from the server"}><span aria-hidden>{f.sent ? "→" : "←"}</span><span className="sr-only">{f.sent ? "sent" : "received"}</span></span>
        <span className="w-20 shrink-0 text-dim">{clock(f.at)}</span>
        <span className="min-w-0 truncate font-mono">{visible(f.method || (f.sent ? "answer" : "?"))}</span>
        {f.id && <span className="shrink-0 truncate font-mono text-dim">#{visible(f.id.slice(0, 20))}</span>}
        {failed && <Badge tone="bad">error</Badge>}
        <span className="ml-auto shrink-0 text-dim">{kind}, {bytes(f.bytes)}</span>
      </button>
      {open && (
        <div className="px-3 pb-2">
          {f.hidden ? <p className="text-dim">Not shown: {visible(f.hidden)}.</p> : <>{f.cut && <p className="text-dim">The beginning of {bytes(f.bytes)}:</p>}<LongText text={f.text} /></>}
        </div>
      )}
    </li>
  );
}

const clock = (at: string) => at.slice(11, 23);

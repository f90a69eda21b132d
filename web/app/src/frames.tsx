// The last messages of the protocol, as they were on the wire.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, type Page } from "./api";
import type { Frame } from "./types";
import { Badge, Button, Copy, Empty, ErrorBox, LongText, To, bytes, cx, field, visible } from "./ui";

/** Frames that a person pinned, by server: they stay while others leave the list. */
const pinned = new Map<string, Frame[]>();
const maxPinned = 50;

export function Frames({ server }: { server: string }) {
  const [live, setLive] = useState(true);
  const list = useQuery({ queryKey: ["frames", server], queryFn: () => get<Page<Frame>>(`/api/v1/servers/${encodeURIComponent(server)}/frames`), staleTime: 0, refetchInterval: live ? 2000 : false });
  const [words, setWords] = useState("");
  const [way, setWay] = useState("");
  const [pins, setPins] = useState(pinned.get(server) ?? []);
  const pin = (f: Frame) => {
    const next = pins.some((p) => p.seq === f.seq) ? pins.filter((p) => p.seq !== f.seq) : [...pins, f].slice(-maxPinned);
    pinned.set(server, next);
    setPins(next);
  };
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
        <span className="ml-auto flex gap-1">
          <Button tone="quiet" disabled={items.length === 0} onClick={() => exportFrames(server, items)}>Export</Button>
          <Button tone="quiet" aria-pressed={!live} title="new messages are shown every two seconds" onClick={() => setLive(!live)}>{live ? "Pause" : "Continue"}</Button>
        </span>
      </div>
      {list.isError && <ErrorBox error={list.error} retry={() => void list.refetch()} />}
      {list.data && all.length === 0 && <Empty>Nothing was exchanged with it since tenon serve began.</Empty>}
      {pins.length > 0 && (
        <ol aria-label="Pinned frames" className="divide-y divide-line border-t border-line bg-accent-ground/40 text-xs">
          {pins.map((f) => <FrameRow key={f.seq} frame={f} server={server} pinned onPin={() => pin(f)} />)}
        </ol>
      )}
      <ol aria-label="Frames" tabIndex={0} className="max-h-96 divide-y divide-line overflow-auto border-t border-line text-xs">
        {items.map((f) => <FrameRow key={f.seq} frame={f} server={server} pinned={pins.some((p) => p.seq === f.seq)} onPin={() => pin(f)} />)}
      </ol>
    </section>
  );
}

/** Saves frames as JSON lines, oldest first. */
function exportFrames(server: string, items: Frame[]): void {
  const lines = items.toReversed().map((f) => JSON.stringify(f)).join("\n") + "\n";
  const url = URL.createObjectURL(new Blob([lines], { type: "application/jsonl" }));
  Object.assign(document.createElement("a"), { href: url, download: `${server.replace(/[^\w.-]/g, "_")}-frames.jsonl` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** The page with the form that sends a request once more, under the rules; "" if there is none. */
export function formOf(server: string, f: Frame): string {
  if (!f.sent || f.answer || f.cut || f.hidden) return "";
  try {
    const { method, params } = JSON.parse(f.text) as { method: string; params?: { name?: string; uri?: string; arguments?: unknown } };
    if (method === "tools/call" && params?.name) return `/tools/${encodeURIComponent(`${server}.${params.name}`)}?arguments=${encodeURIComponent(JSON.stringify(params.arguments ?? {}))}`;
    if (method === "prompts/get" && params?.name) return `/prompts/${encodeURIComponent(server)}/${encodeURIComponent(params.name)}`;
    if (method === "resources/read" && params?.uri) return `/resources/${encodeURIComponent(`${server}/${params.uri}`)}`;
  } catch {
    // what is no JSON has no form
  }
  return "";
}

function FrameRow({ frame: f, server, pinned, onPin }: { frame: Frame; server: string; pinned: boolean; onPin: () => void }) {
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
          <p className="flex flex-wrap items-center gap-1">
            <Button tone="quiet" className="px-1 text-xs" aria-pressed={pinned} onClick={onPin}>{pinned ? "Unpin" : "Pin"}</Button>
            {!f.hidden && <Copy text={f.text} />}
            {formOf(server, f) && <To to={formOf(server, f)}>Send again, in its form</To>}
          </p>
          {f.hidden ? <p className="text-dim">Not shown: {visible(f.hidden)}.</p> : <>{f.cut && <p className="text-dim">The beginning of {bytes(f.bytes)}:</p>}<LongText text={f.text} /></>}
        </div>
      )}
    </li>
  );
}

const clock = (at: string) => at.slice(11, 23);

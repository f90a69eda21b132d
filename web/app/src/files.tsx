// What a result holds besides text: files, and the whole of a text of which the model got a part.
// Nothing of it is opened as a page: pictures and sounds are drawn by the browser, all else is text or a download.

import { useState } from "react";
import { headers, readFailure } from "./api";
import type { Content } from "./types";
import { Badge, Button, ErrorBox, LongText, Spinner, bytes, visible } from "./ui";

/** The largest file that is drawn in place, in bytes. Larger ones are saved. */
export const mostDrawn = 8 << 20;
const mostText = 2 << 20; // bytes of a text that is shown

export const sizeOf = (base64: string) => Math.floor((base64.length * 3) / 4);

/** A name for the person's disk. */
const nameOf = (uri: string) => (uri.split(/[/?#]/).findLast((p) => p !== "") ?? "file").replace(/[^\w.-]/g, "_").slice(-100);

/** Saves bytes as a file. It is never opened in the page: it may be HTML. */
function keep(data: BlobPart, uri: string): void {
  const url = URL.createObjectURL(new Blob([data], { type: "application/octet-stream" }));
  Object.assign(document.createElement("a"), { href: url, download: nameOf(uri) }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

const decoded = (base64: string) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

/** Saves base64 as a file. */
export const save = (base64: string, uri: string) => keep(decoded(base64), uri);

const isText = (mime: string) => /^text\/|[/+](json|xml|yaml)$/.test(mime);

/** A file of a result that is neither a picture nor a sound that is drawn in place. */
export function FileRow({ c, data, mime }: { c: Content; data: string; mime: string }) {
  const [text, setText] = useState<string>();
  const [error, setError] = useState<unknown>();
  const uri = c.resource?.uri ?? c.uri ?? c.name ?? "file";
  const attempt = (what: () => void) => {
    setError(undefined);
    try {
      what();
    } catch {
      setError(new Error("The server sent what is not base64."));
    }
  };
  return (
    <div className="rounded border border-line p-2">
      <p className="flex min-w-0 flex-wrap items-center gap-2 text-xs">
        <span className="min-w-0 font-mono break-all">{visible(uri.slice(0, 300))}</span>
        {mime && <Badge>{visible(mime.slice(0, 80))}</Badge>}
        <span className="text-dim">{bytes(sizeOf(data))}</span>
        {isText(mime) && sizeOf(data) <= mostText && (
          <Button tone="quiet" className="text-xs" aria-expanded={text !== undefined} onClick={() => attempt(() => setText(text === undefined ? new TextDecoder().decode(decoded(data)) : undefined))}>{text === undefined ? "Show as text" : "Hide"}</Button>
        )}
        <Button tone="quiet" className="text-xs" onClick={() => attempt(() => save(data, uri))}>Download</Button>
      </p>
      {error !== undefined && <ErrorBox error={error} />}
      {text !== undefined && <LongText text={text} />}
    </div>
  );
}

/** The whole of a result that was too large for the model, which is fetched when it is asked for. */
export function Whole({ run, id, size }: { run: string; id: string; size: number }) {
  const [text, setText] = useState<string>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const read = async (then: (data: Blob) => void | Promise<void>) => {
    setError(undefined);
    setBusy(true);
    try {
      const res = await fetch(`/api/v1/runs/${encodeURIComponent(run)}/artifacts/${encodeURIComponent(id)}`, { headers: headers(), cache: "no-store" });
      if (!res.ok) throw await readFailure(res);
      await then(await res.blob());
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="flex flex-col gap-1">
      <p className="flex flex-wrap items-center gap-2 text-xs text-dim">
        <span className="break-all">The model got a part; the whole is artifact {visible(id)}, {bytes(size)}.</span>
        {busy && <Spinner />}
        {size <= mostText && <Button tone="quiet" className="text-xs" disabled={busy} aria-expanded={text !== undefined} onClick={() => (text === undefined ? void read(async (b) => setText(await b.text())) : setText(undefined))}>{text === undefined ? "Show the whole" : "Hide the whole"}</Button>}
        <Button tone="quiet" className="text-xs" disabled={busy} onClick={() => void read((b) => keep(b, `${id}.txt`))}>Download the whole</Button>
      </p>
      {error !== undefined && <ErrorBox error={error} />}
      {text !== undefined && <div role="region" aria-label="The whole result"><LongText text={text} /></div>}
    </div>
  );
}

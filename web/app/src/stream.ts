// Server-sent events over fetch, because EventSource cannot carry a token in a
// header. A stream that breaks off is taken up after the last event that was read,
// so that nothing is lost and nothing comes twice.

import { Failure, headers, isAuth, readFailure } from "./api";

export interface Message {
  id: string;
  type: string;
  data: string;
}

/** Splits text as it comes into events (HTML standard, 9.2.6). */
export class Parser {
  private rest = "";
  private data: string[] = [];
  private type = "";
  private id = "";
  private skipLF = false;

  push(chunk: string): Message[] {
    const out: Message[] = [];
    let text = this.rest + chunk;
    if (this.skipLF && text.startsWith("\n")) text = text.slice(1);
    this.skipLF = false;
    let start = 0;
    for (;;) {
      const m = /[\r\n]/g;
      m.lastIndex = start;
      const end = m.exec(text);
      if (!end) break;
      const line = text.slice(start, end.index);
      start = end.index + 1;
      if (end[0] === "\r") {
        if (start < text.length) start += text[start] === "\n" ? 1 : 0;
        else this.skipLF = true;
      }
      const event = this.line(line);
      if (event) out.push(event);
    }
    this.rest = text.slice(start);
    return out;
  }

  private line(line: string): Message | null {
    if (line === "") {
      const event = this.data.length ? { id: this.id, type: this.type || "message", data: this.data.join("\n") } : null;
      this.data = [];
      this.type = "";
      return event;
    }
    if (line.startsWith(":")) return null;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") this.data.push(value);
    else if (field === "event") this.type = value;
    else if (field === "id" && !value.includes("\0")) this.id = value;
    return null;
  }
}

export type Link = "connecting" | "open" | "lost" | "ended" | "refused";

export interface Follow {
  path: string;
  after?: string;
  /** What came; more says that the rest of it follows at once. */
  onMessages: (m: Message[], more: boolean) => void;
  /** How the connection is, and since when; told on each change. */
  onLink?: (l: Link, why?: string) => void;
  /** Whether to go on after the server has closed the stream in good order. */
  forever?: boolean;
}

const atOnce = 500;

/** Follows a stream until it is stopped. Returns what stops it. */
export function follow(f: Follow): () => void {
  const gone = new AbortController();
  let last = f.after ?? "";
  let failures = 0;
  void (async () => {
    while (!gone.signal.aborted) {
      f.onLink?.("connecting");
      let why = "";
      try {
        const res = await fetch(f.path, {
          headers: headers(last ? { Accept: "text/event-stream", "Last-Event-ID": last } : { Accept: "text/event-stream" }),
          cache: "no-store",
          signal: gone.signal,
        });
        if (res.status === 204) {
          f.onLink?.("ended");
          return;
        }
        if (!res.ok) throw await readFailure(res);
        f.onLink?.("open");
        failures = 0;
        const reader = res.body!.pipeThrough(new TextDecoderStream()).getReader();
        const parser = new Parser();
        const waiting: Message[] = [];
        let scheduled = false;
        // A long history comes in pieces, so that the page is not held up.
        const hand = () => {
          scheduled = false;
          if (!waiting.length || gone.signal.aborted) return;
          const batch = waiting.splice(0, atOnce);
          if (waiting.length) schedule();
          f.onMessages(batch, waiting.length > 0);
        };
        const schedule = () => {
          if (scheduled) return;
          scheduled = true; // one drawing for all that came meanwhile
          setTimeout(hand, 16);
        };
        for (;;) {
          const { done, value } = await reader.read();
          if (done) break;
          for (const m of parser.push(value)) {
            if (m.id) last = m.id;
            waiting.push(m);
          }
          if (waiting.length) schedule();
        }
        while (waiting.length && !gone.signal.aborted) {
          hand();
          await new Promise((r) => setTimeout(r));
        }
        if (!f.forever) {
          f.onLink?.("ended");
          return;
        }
      } catch (e) {
        if (gone.signal.aborted) return;
        if (isAuth(e) || (e instanceof Failure && (e.status === 404 || e.status === 403))) {
          f.onLink?.("refused", (e as Failure).message);
          return;
        }
        why = e instanceof Error ? e.message : String(e);
      }
      f.onLink?.("lost", why);
      const wait = Math.min(500 * 2 ** failures++, 15_000) * (0.5 + Math.random() / 2);
      await new Promise((r) => setTimeout(r, wait));
    }
  })();
  return () => gone.abort();
}

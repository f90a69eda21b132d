// The sources that a model names for its text: marks in the text, and a list below it.

import { createContext, useContext, useState } from "react";
import { Link, webAddress } from "./link";
import { Button, visible } from "./ui";

/** A source as it is in a part of a message; start and end are bytes of the text. */
export interface Citation {
  title?: string;
  url?: string;
  file?: string;
  quote?: string;
  start?: number;
  end?: number;
}

export interface Source {
  n: number;
  key: string;
  title: string;
  url: string;
  file: string;
  quotes: string[];
}

const mostCitations = 1000;
const mostQuotes = 5; // of a source

const keyOf = (c: Citation) => (c.url ? `url ${c.url}` : c.file ? `file ${c.file}` : c.title ? `title ${c.title}` : "");

/** The different sources in the order of their first citation, as tenon.Sources orders them. */
export function sourcesOf(list: Citation[]): Source[] {
  const out = new Map<string, Source>();
  for (const c of list.slice(0, mostCitations)) {
    const key = keyOf(c);
    if (!key) continue;
    let s = out.get(key);
    if (!s) out.set(key, (s = { n: out.size + 1, key, title: c.title ?? "", url: c.url ?? "", file: c.file ?? "", quotes: [] }));
    s.title ||= c.title ?? "";
    if (c.quote && s.quotes.length < mostQuotes && !s.quotes.includes(c.quote)) s.quotes.push(c.quote);
  }
  return [...out.values()];
}

// A mark is the number of a source between two signs of private use, which visible() escapes: no text can forge one.
const [open, close] = ["\ue000", "\ue001"];

/** A text as a person sees it, with marks where its sources support it. */
export function marked(text: string, citations: Citation[]): string {
  const numbers = new Map(sourcesOf(citations).map((s) => [s.key, s.n]));
  const bytes = new TextEncoder().encode(text);
  const ends = new Map<number, Set<number>>();
  for (const c of citations.slice(0, mostCitations)) {
    const n = numbers.get(keyOf(c));
    let end = c.end ?? 0;
    if (!n || !(end > 0) || end > bytes.length) continue;
    while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end++; // not within a character
    ends.set(end, (ends.get(end) ?? new Set()).add(n));
  }
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let out = "";
  let last = 0;
  for (const [end, found] of [...ends].toSorted(([a], [b]) => a - b)) {
    const piece = visible(decoder.decode(bytes.slice(last, end)));
    const kept = piece.trimEnd(); // a mark begins no line
    out += kept + [...found].toSorted((a, b) => a - b).map((n) => open + n + close).join("") + piece.slice(kept.length);
    last = end;
  }
  return out + visible(decoder.decode(bytes.slice(last)));
}

/** A text without its marks, for where they are no marks: code, formulas, addresses. */
export const unmarked = (text: string) => (text.includes(open) ? text.replace(/\ue000\d+\ue001/g, "") : text);

/** The sources of the text that is drawn. */
export const Sources = createContext<Source[]>([]);

const nameOf = (s: Source) => visible((s.title || s.url || s.file).replace(/\s+/g, " ").slice(0, 200));

/** The mark of a source within a text: a link to it, if it is on the web. */
export function Mark({ n }: { n: number }) {
  const s = useContext(Sources)[n - 1];
  if (!s) return null;
  const label = `Source ${n}: ${nameOf(s)}`;
  return <sup className="mx-0.5 text-xs">{webAddress(s.url) ? <Link href={s.url} text={`[${n}]`} label={label} /> : <span title={label} className="text-dim">[{n}]</span>}</sup>;
}

const few = 5;

/** The sources of a text, by number. */
export function SourceList({ sources }: { sources: Source[] }) {
  const [all, setAll] = useState(false);
  if (sources.length === 0) return null;
  const more = sources.length - few;
  return (
    <section aria-label="Sources" className="mx-1 flex min-w-0 flex-col gap-1 border-l-2 border-line pl-3 text-sm">
      <h3 className="text-xs font-medium text-dim">Sources</h3>
      <ol className="flex flex-col gap-0.5">{sources.slice(0, all ? sources.length : few).map((s) => <SourceRow key={s.key} s={s} />)}</ol>
      {!all && more > 0 && <Button tone="quiet" className="self-start px-1! py-0 text-xs" onClick={() => setAll(true)}>{more} more source{more > 1 && "s"}</Button>}
    </section>
  );
}

function SourceRow({ s }: { s: Source }) {
  const url = webAddress(s.url);
  const where = url?.host || (s.title ? s.url || s.file : "");
  return (
    <li className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-2">
      <span className="text-xs leading-5 text-dim">[{s.n}]</span>
      <div className="min-w-0">
        <p className="break-words [&_a]:text-accent [&_a]:underline"><Link href={s.url} text={nameOf(s)} />{where && <span className="ml-2 text-xs break-all text-dim">{visible(where.slice(0, 300))}</span>}</p>
        {s.quotes.length > 0 && (
          <details className="text-xs text-dim">
            <summary className="w-fit cursor-pointer rounded hover:text-ink">{s.quotes.length === 1 ? "The passage" : `${s.quotes.length} passages`}</summary>
            {s.quotes.map((q, i) => <blockquote key={i} className="mt-1 border-l-2 border-line pl-2 whitespace-pre-wrap break-words">{visible(q.slice(0, 2000))}</blockquote>)}
          </details>
        )}
      </div>
    </li>
  );
}

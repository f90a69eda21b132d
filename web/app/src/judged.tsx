// Texts and arguments that a person decides about. Nothing in them is hidden: what is not seen is
// escaped, long runs of one character are counted, and what is cut has its size and digest, and is
// shown whole on request.

import { useEffect, useState } from "react";
import { Button, Json, bytes, grouped, visible } from "./ui";

export const shownText = 2000; // characters of one text
export const shownKeys = 100;

/** A part of a text: written, or one character so often that it is counted. */
export type Piece = { text: string } | { run: string; count: number };

const run = /([\s\u2800])\1{23,}|([^])\2{63,}/gu;

/** Takes a text apart at runs that would push what follows out of sight. */
export function pieces(text: string): Piece[] {
  const out: Piece[] = [];
  let at = 0;
  for (const m of text.matchAll(run)) {
    if (m.index > at) out.push({ text: text.slice(at, m.index) });
    const one = m[1] ?? m[2]!;
    out.push({ run: one, count: m[0].length / one.length });
    at = m.index + m[0].length;
  }
  if (at < text.length) out.push({ text: text.slice(at) });
  return out;
}

/** The name of a character in a run. */
function spelled(c: string): string {
  const names: Record<string, string> = { " ": "spaces", "\n": "line breaks", "\t": "tabs", "\u00a0": "no-break spaces" };
  return names[c] ?? `times ${/\s|\u2800/.test(c) ? `\\u{${c.codePointAt(0)!.toString(16)}}` : visible(c)}`;
}

/** The SHA-256 digest of a text; undefined until it is known, and where a page without TLS has none. */
export function useDigest(text: string | undefined): string | undefined {
  const [digest, setDigest] = useState<string>();
  useEffect(() => {
    let gone = false;
    setDigest(undefined);
    if (text !== undefined)
      void globalThis.crypto?.subtle?.digest("SHA-256", new TextEncoder().encode(text)).then((d) => {
        if (!gone) setDigest([...new Uint8Array(d)].map((b) => b.toString(16).padStart(2, "0")).join(""));
      });
    return () => {
      gone = true;
    };
  }, [text]);
  return digest;
}

/** The pieces of a text as far as so many characters of it are written. */
function head(text: string, limit: number): { parts: Piece[]; cut: boolean } {
  const parts: Piece[] = [];
  let left = limit;
  const all = pieces(limit === Infinity ? text : text.slice(0, 1_000_000));
  for (const p of all) {
    if (left <= 0) return { parts, cut: true };
    if ("text" in p && p.text.length > left) return { parts: [...parts, { text: p.text.slice(0, left) }], cut: true };
    parts.push(p);
    left -= "text" in p ? p.text.length : 20;
  }
  return { parts, cut: limit !== Infinity && text.length > 1_000_000 };
}

/** A text as a person has to judge it. */
export function Judged({ text }: { text: string }) {
  const [all, setAll] = useState(false);
  const { parts, cut } = head(text, all ? Infinity : shownText);
  const digest = useDigest(cut ? text : undefined);
  return (
    <span className="block min-w-0">
      <span className="block whitespace-pre-wrap break-words">
        {parts.map((p, i) =>
          "text" in p ? <span key={i}>{visible(p.text)}</span> : <span key={i} className="mx-1 rounded bg-warn-ground px-1 text-xs text-warn">{grouped(p.count)} {spelled(p.run)}</span>)}
      </span>
      {cut && (
        <span className="mt-0.5 flex flex-wrap items-baseline gap-2 text-xs text-warn">
          <span className="break-all">… {bytes(new TextEncoder().encode(text).length)} in all{digest && `, sha256:${digest}`}</span>
          <Button tone="quiet" onClick={() => setAll(true)}>Show all of it</Button>
        </span>
      )}
    </span>
  );
}

/** Arguments by name, the way people read them: every key is there, or counted and shown on request. */
export function Arguments({ value }: { value: unknown }) {
  const [limit, setLimit] = useState(shownKeys);
  if (!value || typeof value !== "object" || Array.isArray(value)) return value === undefined ? null : <Json value={value} whole />;
  const entries = Object.entries(value);
  if (entries.length === 0) return <p className="text-xs text-dim">no arguments</p>;
  const rest = entries.slice(limit);
  return (
    <>
      <dl className="grid grid-cols-[fit-content(40%)_minmax(0,1fr)] gap-x-3 gap-y-0.5 text-sm">
        {entries.slice(0, limit).map(([k, v]) => (
          <div key={k} className="contents">
            <dt className="font-mono text-xs break-all text-dim"><Judged text={k} /></dt>
            <dd className="min-w-0 break-words">{typeof v === "string" ? <Judged text={v} /> : <Json value={v} whole />}</dd>
          </div>
        ))}
      </dl>
      {rest.length > 0 && (
        <p className="flex flex-wrap items-baseline gap-2 text-xs text-warn">
          … {grouped(rest.length)} more arguments, {bytes(JSON.stringify(rest).length)}
          <Button tone="quiet" onClick={() => setLimit(entries.length)}>Show all of them</Button>
        </p>
      )}
    </>
  );
}

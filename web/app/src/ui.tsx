// The few pieces that every page is made of.

import { type ButtonHTMLAttributes, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { Failure } from "./api";
import { Exact } from "./exact";
import { go } from "./router";

export const cx = (...c: (string | false | null | undefined)[]) => c.filter(Boolean).join(" ");

type Tone = "plain" | "primary" | "danger" | "quiet";

export function Button({ tone = "plain", className, ...rest }: ButtonHTMLAttributes<HTMLButtonElement> & { tone?: Tone }) {
  const tones: Record<Tone, string> = {
    plain: "border border-line bg-panel hover:bg-sunk",
    primary: "border border-transparent bg-accent text-on-accent hover:opacity-90",
    danger: "border border-bad/40 bg-bad-ground text-bad hover:border-bad",
    quiet: "border border-transparent hover:bg-sunk text-dim hover:text-ink",
  };
  return (
    <button type="button" {...rest}
      className={cx("inline-flex items-center justify-center gap-1.5 rounded-md px-2.5 py-1 text-sm font-medium whitespace-nowrap disabled:opacity-50", tones[tone], className)} />
  );
}

export type BadgeTone = "dim" | "ok" | "warn" | "bad" | "accent" | "violet";

const badgeTones: Record<BadgeTone, string> = {
  dim: "bg-sunk text-dim", ok: "bg-ok-ground text-ok", warn: "bg-warn-ground text-warn",
  bad: "bg-bad-ground text-bad", accent: "bg-accent-ground text-accent", violet: "bg-violet-ground text-violet",
};

export function Badge({ tone = "dim", children, title }: { tone?: BadgeTone; children: ReactNode; title?: string }) {
  return <span title={title} className={cx("inline-flex items-center rounded px-1.5 py-px text-xs font-medium whitespace-nowrap", badgeTones[tone])}>{children}</span>;
}

/** The name of a state with a colour and a mark, so that nobody needs the colour. */
export function State({ state }: { state: string }) {
  const known: Record<string, [BadgeTone, string]> = {
    working: ["accent", "●"], running: ["accent", "●"], starting: ["accent", "●"], completed: ["ok", "✓"], ok: ["ok", "✓"], ready: ["ok", "✓"],
    input_required: ["warn", "◆"], asking: ["warn", "◆"], question: ["warn", "◆"], auth_required: ["warn", "◆"], "auth required": ["warn", "◆"], degraded: ["warn", "▲"], backoff: ["warn", "▲"],
    interrupted: ["bad", "▲"], unknown: ["violet", "?"], failed: ["bad", "✕"], error: ["bad", "✕"], denied: ["bad", "⊘"], invalid: ["bad", "✕"],
    cancelled: ["dim", "■"], stopped: ["dim", "■"], cold: ["dim", "○"], disabled: ["dim", "⊘"], proposed: ["dim", "○"],
  };
  const [tone, mark] = known[state] ?? ["dim", "·"];
  const words: Record<string, string> = { input_required: "waits for you", asking: "asks", question: "asks you", cold: "not connected" };
  return <Badge tone={tone}><span aria-hidden className="mr-1">{mark}</span>{words[state] ?? state.replaceAll("_", " ")}</Badge>;
}

export function Panel({ title, actions, children, className }: { title?: ReactNode; actions?: ReactNode; children: ReactNode; className?: string }) {
  return (
    <section className={cx("rounded-lg border border-line bg-panel", className)}>
      {(title || actions) && (
        <header className="flex flex-wrap items-center gap-2 border-b border-line px-3 py-2">
          {title && <h2 className="font-semibold">{title}</h2>}
          {actions && <div className="ml-auto flex flex-wrap items-center gap-1.5">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <div className="px-4 py-10 text-center text-dim">{children}</div>;
}

export function ErrorBox({ error, retry }: { error: unknown; retry?: () => void }) {
  const e = error instanceof Error ? error : new Error(String(error));
  return (
    <div role="alert" className="m-3 rounded-md border border-bad/40 bg-bad-ground px-3 py-2 text-bad">
      <span className="whitespace-pre-wrap break-words">{e.message}</span>
      {e instanceof Failure && e.code && <span className="ml-2 font-mono text-xs opacity-80">{e.code}</span>}
      {retry && <Button className="ml-3" onClick={retry}>Try again</Button>}
    </div>
  );
}

/** A link within the workbench. */
export function To({ to, className, children, ...rest }: { to: string; className?: string; children: ReactNode; title?: string; "aria-current"?: "page" }) {
  return (
    <a href={to} {...rest} className={className ?? "text-accent underline underline-offset-2"}
      onClick={(e) => {
        if (e.metaKey || e.ctrlKey || e.shiftKey || e.button !== 0) return;
        e.preventDefault();
        go(to);
      }}>
      {children}
    </a>
  );
}

export const path = (...parts: string[]) => "/" + parts.map((p) => p.split("/").map(encodeURIComponent).join("/")).join("/");

export function millis(ms: number | undefined): string {
  if (ms === undefined || Number.isNaN(ms)) return "";
  if (ms < 1) return "<1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const m = Math.floor(ms / 60_000);
  return m < 60 ? `${m} min ${Math.round((ms % 60_000) / 1000)} s` : `${Math.floor(m / 60)} h ${m % 60} min`;
}

export function count(n: number | undefined): string {
  if (n === undefined) return "";
  return n < 10_000 ? String(n) : n < 1_000_000 ? `${(n / 1000).toFixed(n < 100_000 ? 1 : 0)}k` : `${(n / 1e6).toFixed(1)}M`;
}

/** A number with its noun, which gets an s for all numbers but 1. */
export const plural = (n: number, noun: string) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

export const bytes = (n: number) => (n < 1024 ? `${n} B` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`);

/** 1234567 as 1,234,567. */
export const grouped = (n: number) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

export const dollars = (n: number | undefined) => (n === undefined ? "" : `$${n < 0.01 ? n.toFixed(4) : n.toFixed(2)}`);

/** A time as people say it. The exact one is made when it is looked at: the first use of a locale takes 100 ms. */
export function Ago({ time }: { time?: string | number }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const t = setInterval(() => tick((n) => n + 1), 20_000);
    return () => clearInterval(t);
  }, []);
  if (!time) return null;
  const d = new Date(time);
  const s = (Date.now() - d.getTime()) / 1000;
  const text = s < 5 ? "now" : s < 60 ? `${Math.floor(s)} s ago` : s < 3600 ? `${Math.floor(s / 60)} min ago` : s < 86_400 ? `${Math.floor(s / 3600)} h ago` : d.toISOString().slice(0, 10);
  return <time dateTime={d.toISOString()} onMouseEnter={(e) => (e.currentTarget.title = d.toLocaleString())} className="whitespace-nowrap">{text}</time>;
}

// What tenon.IsHidden calls hidden: control characters but tab and line feed, what is of
// no width, direction marks, fillers, tags, variation selectors but that of emoji,
// private use. Joiners stay where they belong, and are seen by what they do: between the parts
// of an emoji, and between letters of scripts that are written with them.
const hidden =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2028\u2029\u2065\u3164\uffa0\ufe00-\ufe0e\ufff0-\ufff8\p{Cf}\p{Co}\p{Noncharacter_Code_Point}]|[\u{e0000}-\u{e0fff}]/gu;

const joining = "[\\p{sc=Arab}\\p{sc=Syrc}\\p{sc=Nkoo}\\p{sc=Deva}\\p{sc=Beng}\\p{sc=Guru}\\p{sc=Gujr}\\p{sc=Orya}\\p{sc=Taml}\\p{sc=Telu}\\p{sc=Knda}\\p{sc=Mlym}\\p{sc=Sinh}\\p{sc=Khmr}\\p{sc=Mong}]";
const joiner = new RegExp(`(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d(?=\\p{Extended_Pictographic})|(?<=${joining})[\\u200c\\u200d](?=${joining})`, "u");
const hiddenOrJoiner = new RegExp(`(${joiner.source})|${hidden.source}`, "gu");

/** Escapes what would not be seen, or would change how the rest is read. */
export function visible(text: string): string {
  return text.replace(hiddenOrJoiner, (c, joins?: string) => joins ?? `\\u{${c.codePointAt(0)!.toString(16)}}`);
}

/** The same within JSON, which stays the same JSON. */
export function visibleJson(json: string): string {
  return json.replace(hidden, (c) => c.split("").map((u) => `\\u${u.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""));
}

const shown = 20_000;

/** Text of any size: what is too long is cut, and shown on request. */
export function LongText({ text, mono = true }: { text: string; mono?: boolean }) {
  const [all, setAll] = useState(false);
  const cut = !all && text.length > shown;
  return (
    <>
      <pre tabIndex={0} className={cx("max-h-96 overflow-auto whitespace-pre-wrap break-words text-xs", mono ? "font-mono" : "font-sans text-sm")}>{visible(cut ? text.slice(0, shown) : text)}</pre>
      {cut && <Button tone="quiet" onClick={() => setAll(true)}>show all {count(text.length)} characters</Button>}
    </>
  );
}

/** JSON as a tree that opens where one looks. Whole is for what a person decides about: it is open, and its texts are cut only with a button to see them. */
export function Json({ value, depth = 0, whole = false }: { value: unknown; depth?: number; whole?: boolean }) {
  const entries = Array.isArray(value) ? value.map((v, i) => [String(i), v] as const) : value && typeof value === "object" && !(value instanceof Exact) ? Object.entries(value) : null;
  const [open, setOpen] = useState(whole ? depth < 8 : depth < 2 && (entries?.length ?? 0) <= 40);
  const [all, setAll] = useState(false);
  const [limit, setLimit] = useState(100);
  if (!entries) {
    const cut = typeof value === "string" && !all && value.length > 5000;
    const text = typeof value === "string" ? JSON.stringify(visible(cut ? value.slice(0, 5000) : value)) : value instanceof Exact ? value.source : String(value);
    return (
      <span className={cx("font-mono text-xs break-all", typeof value === "string" ? "text-ok" : "text-accent")}>
        {whole && typeof value === "string" ? counted(text) : text}
        {cut && <Button tone="quiet" onClick={() => setAll(true)}>… show all {count((value as string).length)} characters</Button>}
      </span>
    );
  }
  const [l, r] = Array.isArray(value) ? "[]" : "{}";
  if (entries.length === 0) return <span className="font-mono text-xs">{l}{r}</span>;
  return (
    <span className="font-mono text-xs">
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)} className="rounded text-dim hover:text-ink">
        {open ? "▾" : "▸"} {l}{!open && <> {entries.length} {r}</>}
      </button>
      {open && (
        <span className="block border-l border-line pl-3">
          {entries.slice(0, limit).map(([k, v]) => (
            <span key={k} className="block"><span className="text-dim">{visible(k)}: </span><Json value={v} depth={depth + 1} whole={whole} /></span>
          ))}
          {entries.length > limit && <Button tone="quiet" onClick={() => setLimit(limit + 500)}>{entries.length - limit} more</Button>}
          {r}
        </span>
      )}
    </span>
  );
}

/** A text in which long runs of blanks, which would push what follows out of sight, are counted. */
const counted = (text: string) => text.replace(/([\s\u2800])\1{23,}/gu, (m, c: string) => `" + ${m.length}×"${c}" + "`);

export function Copy({ text, label = "Copy", name }: { text: string; label?: string; name?: string }) {
  const [done, setDone] = useState(false);
  return (
    <Button tone="quiet" aria-live="polite" aria-label={done ? undefined : name} onClick={() => void navigator.clipboard?.writeText(text).then(() => { setDone(true); setTimeout(() => setDone(false), 1500); })}>
      {done ? "Copied" : label}
    </Button>
  );
}

/** Turns while something is awaited. */
export function Spinner() {
  return <span aria-hidden className="inline-block size-3.5 shrink-0 animate-spin rounded-full border-2 border-line border-t-accent" />;
}

/** A dialog over the page; Escape and the ground close it, the focus goes back. */
export function Dialog({ title, onClose, children, wide }: { title: string; onClose: () => void; children: ReactNode; wide?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const d = ref.current!;
    if (!d.open) d.showModal();
    d.querySelector<HTMLElement>("input, textarea, select")?.focus(); // rather than the button that closes it
    return () => d.close();
  }, []);
  return (
    <dialog ref={ref} aria-labelledby={id} onCancel={(e) => { e.preventDefault(); onClose(); }} onMouseDown={(e) => e.target === ref.current && onClose()}
      className={cx("m-auto w-[calc(100%-1.5rem)] rounded-xl border border-line bg-panel p-0 text-ink shadow-xl backdrop:bg-black/50", wide ? "max-w-3xl" : "max-w-lg")}>
      <div className="flex max-h-[85vh] flex-col">
        <header className="flex items-center border-b border-line px-4 py-2.5">
          <h2 id={id} className="font-semibold">{title}</h2>
          <Button tone="quiet" className="ml-auto" aria-label="Close" onClick={onClose}>✕</Button>
        </header>
        <div className="overflow-auto p-4">{children}</div>
      </div>
    </dialog>
  );
}

export const field = "w-full rounded-md border border-line bg-panel px-2 py-1 text-sm text-ink placeholder:text-dim disabled:opacity-60";

export function Labelled({ label, hint, error, children }: { label: ReactNode; hint?: ReactNode; error?: string; children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <div>
      <label htmlFor={id} className="mb-0.5 block text-sm font-medium">{label}</label>
      {children(id)}
      {hint && <p className="mt-0.5 text-xs break-words text-dim">{hint}</p>}
      {error && <p role="alert" className="mt-0.5 text-xs text-bad">{error}</p>}
    </div>
  );
}

/** Parts of a time, as a bar and in words. */
export function Phases({ phases }: { phases: { name: string; duration_ms: number }[] }) {
  const all = Math.max(1, phases.reduce((n, p) => n + p.duration_ms, 0));
  const tones = ["bg-accent", "bg-violet", "bg-ok", "bg-warn"];
  return (
    <div title={phases.map((p) => `${p.name} ${millis(p.duration_ms)}`).join(", ")}>
      <div className="flex h-1.5 overflow-hidden rounded bg-sunk">{phases.map((p, i) => <span key={p.name} className={tones[i % tones.length]} style={{ width: `${(100 * p.duration_ms) / all}%` }} />)}</div>
      <p className="text-xs text-dim">{phases.map((p) => `${p.name} ${millis(p.duration_ms)}`).join(" · ")}</p>
    </div>
  );
}

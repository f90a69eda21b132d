// The difference between two versions of a file, as lines.

import type { Edited } from "./types";
import { cx, visible } from "./ui";

interface Line {
  mark: " " | "+" | "-" | "@";
  text: string;
}

const context = 3;

/** A unified difference with three lines around each change (longest common subsequence; files are small). */
export function diff(before: string, after: string): Line[] {
  if (before === after) return [];
  const a = split(before);
  const b = split(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const out: Line[] = a.slice(0, head).map((text) => ({ mark: " ", text }));
  out.push(...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)));
  out.push(...a.slice(a.length - tail).map((text): Line => ({ mark: " ", text })));
  const near = (i: number) => out.slice(Math.max(0, i - context), i + context + 1).some((l) => l.mark !== " ");
  const shown: Line[] = [];
  out.forEach((l, i) => {
    if (near(i)) {
      if (i > 0 && !near(i - 1)) shown.push({ mark: "@", text: "…" });
      shown.push(l);
    }
  });
  return shown;
}

const split = (t: string) => (t === "" ? [] : t.replace(/\n$/, "").split("\n"));

function middle(a: string[], b: string[]): Line[] {
  if (a.length * b.length > 4_000_000) return [...a.map((text): Line => ({ mark: "-", text })), ...b.map((text): Line => ({ mark: "+", text }))];
  const common = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) common[i]![j] = a[i] === b[j] ? common[i + 1]![j + 1]! + 1 : Math.max(common[i + 1]![j]!, common[i]![j + 1]!);
  const out: Line[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) out.push({ mark: " ", text: a[i++]! }), j++;
    else if (i < a.length && (j === b.length || common[i + 1]![j]! >= common[i]![j + 1]!)) out.push({ mark: "-", text: a[i++]! });
    else out.push({ mark: "+", text: b[j++]! });
  }
  return out;
}

export function DiffView({ edited }: { edited: Edited }) {
  const lines = diff(edited.before, edited.after);
  if (lines.length === 0) return <p className="text-sm">Nothing would change.</p>;
  return (
    <>
      <p className="mb-1 text-sm">This is what changes in <span className="font-mono">{visible(edited.file)}</span>:</p>
      <pre tabIndex={0} aria-label="Difference" className="max-h-72 overflow-auto rounded-md border border-line p-2 font-mono text-xs">
        {lines.map((l, i) => <span key={i} className={cx("block", l.mark === "+" ? "bg-ok-ground text-ok" : l.mark === "-" ? "bg-bad-ground text-bad" : l.mark === "@" && "text-dim")}>{l.mark === "@" ? l.text : `${l.mark} ${visible(l.text)}`}</span>)}
      </pre>
    </>
  );
}

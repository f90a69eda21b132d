// What waits for a person, oldest first. Keys: j and k move, a allows once or goes to the first field of a form, d denies
// or declines, c cancels a form.

import { useEffect, useRef, useState } from "react";
import { ApprovalCard } from "../approval";
import { useApprovals } from "../data";
import { Empty, ErrorBox, To, path, visible } from "../ui";

export function Approvals() {
  const list = useApprovals();
  const items = list.data?.items ?? [];
  const [at, setAt] = useState(0);
  const box = useRef<HTMLOListElement>(null);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      const target = e.target as HTMLElement;
      if (e.ctrlKey || e.metaKey || e.altKey || target.closest("input, textarea, select, dialog")) return;
      const cards = box.current?.querySelectorAll<HTMLElement>("[data-approval]");
      if (!cards?.length) return;
      if (e.key === "j" || e.key === "k") {
        const next = Math.max(0, Math.min(cards.length - 1, at + (e.key === "j" ? 1 : -1)));
        setAt(next);
        cards[next]?.scrollIntoView({ block: "nearest" });
      } else if (e.key === "a" || e.key === "c" || e.key === "d") {
        e.preventDefault();
        const card = cards[Math.min(at, cards.length - 1)];
        const button = card?.querySelector<HTMLButtonElement>(`[data-key=${e.key}]`);
        if (button) button.click();
        else if (e.key === "a") card?.querySelector<HTMLElement>("form input, form select, form textarea")?.focus();
      }
    };
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, [at]);
  return (
    <div className="mx-auto flex max-w-3xl flex-col gap-3 p-3 md:p-5">
      <header className="flex flex-wrap items-baseline gap-3">
        <h1 className="text-lg font-semibold">Approvals</h1>
        <p className="text-xs text-dim"><kbd>j</kbd> <kbd>k</kbd> move, <kbd>a</kbd> allow once, or fill in, <kbd>d</kbd> deny, <kbd>c</kbd> cancel a form</p>
      </header>
      {list.isError && <ErrorBox error={list.error} retry={() => void list.refetch()} />}
      {list.data && items.length === 0 && <Empty>Nothing waits for you. Calls that need a decision appear here.</Empty>}
      <ol ref={box} className="flex flex-col gap-3">
        {items.map((a, i) => (
          <li key={a.id} className={i === Math.min(at, items.length - 1) ? "rounded-lg ring-2 ring-accent" : ""} onFocus={() => setAt(i)}>
            <ApprovalCard approval={a} />
            <p className="px-1 pt-0.5 text-xs text-dim">of <To to={`${path("runs", a.run)}?step=${encodeURIComponent(a.step)}`}>{visible(a.title || a.run)}</To></p>
          </li>
        ))}
      </ol>
    </div>
  );
}

// The keys of the workbench, which ? shows.

import { useEffect, useState } from "react";
import { Dialog } from "./ui";

const keys: [string, string][] = [
  ["?", "these keys"],
  ["Ctrl K", "go to a page, server, tool or session"],
  ["/", "in the chat: the prompts of the servers"],
  ["Enter", "send the question"],
  ["Shift+Enter", "a new line in the question"],
  ["j, k", "the next and previous approval"],
  ["a, d", "allow and deny the approval; fill in and decline a form"],
  ["c", "cancel a form of a server"],
  ["Escape", "close a dialog"],
];

export function Keys() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      const at = e.target as HTMLElement;
      if (e.key !== "?" || e.ctrlKey || e.metaKey || e.altKey || at.closest("input, textarea, select, dialog, [contenteditable]")) return;
      e.preventDefault();
      setOpen(true);
    };
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, []);
  if (!open) return null;
  return (
    <Dialog title="Keys" onClose={() => setOpen(false)}>
      <dl className="grid grid-cols-[max-content_1fr] gap-x-4 gap-y-1.5">
        {keys.map(([k, what]) => <div key={k} className="contents"><dt><kbd className="rounded border border-line bg-sunk px-1.5 font-sans text-xs">{k}</kbd></dt><dd>{what}</dd></div>)}
      </dl>
    </Dialog>
  );
}

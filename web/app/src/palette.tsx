// Ctrl K: every page, server, tool and session by name.

import { useEffect, useMemo, useRef, useState } from "react";
import { useServers, useSessions, useTools, useWorkflows } from "./data";
import { go } from "./router";
import { pages } from "./shell";
import { Dialog, cx, field, path, visible } from "./ui";

interface Entry {
  label: string;
  kind: string;
  run: () => void;
}

export function Palette() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
        e.preventDefault();
        setOpen((o) => !o);
      }
    };
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, []);
  return open ? <Open onClose={() => setOpen(false)} /> : null;
}

const most = 12;

function Open({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const servers = useServers().data;
  const tools = useTools().data;
  const sessions = useSessions().data;
  const workflows = useWorkflows().data;
  const list = useRef<HTMLUListElement>(null);
  const entries = useMemo<Entry[]>(() => [
    ...pages.map((p) => ({ label: p.title, kind: "page", run: () => go(`/${p.page}`) })),
    { label: "New chat", kind: "do", run: () => go("/") },
    { label: "Dark or light", kind: "do", run: toggleTheme },
    ...(servers?.items ?? []).map((s) => ({ label: s.name, kind: "server", run: () => go(path("servers", s.name)) })),
    ...(tools?.items ?? []).map((t) => ({ label: t.name, kind: `tool of ${t.server}`, run: () => go(path("tools", t.name)) })),
    ...(workflows?.items ?? []).map((w) => ({ label: w.tool ?? w.name, kind: "workflow", run: () => go(path("workflows", w.tool ?? w.name)) })),
    ...(sessions?.items ?? []).map((s) => ({ label: s.title || s.id, kind: s.interrupted ? "session, interrupted" : "session", run: () => go(path("sessions", s.id)) })),
  ], [servers, tools, sessions, workflows]);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = entries.filter((e) => words.every((w) => `${e.label} ${e.kind}`.toLowerCase().includes(w))).slice(0, most);
  const pick = (e?: Entry) => {
    if (!e) return;
    onClose();
    e.run();
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input autoFocus role="combobox" aria-expanded aria-controls="palette-list" aria-activedescendant={found[at] ? `palette-${at}` : undefined} aria-label="What to go to"
        className={field} placeholder="page, server, tool, session" value={text} onChange={(e) => { setText(e.target.value); setAt(0); }}
        onKeyDown={(e) => {
          if (e.key === "ArrowDown" || e.key === "ArrowUp") {
            e.preventDefault();
            setAt((n) => (found.length ? (n + (e.key === "ArrowDown" ? 1 : -1) + found.length) % found.length : 0));
          } else if (e.key === "Enter") {
            e.preventDefault();
            pick(found[at]);
          }
        }} />
      <ul id="palette-list" ref={list} role="listbox" aria-label="Found" className="mt-2">
        {found.map((e, i) => (
          <li key={i} id={`palette-${i}`} role="option" aria-selected={i === at} onMouseEnter={() => setAt(i)} onClick={() => pick(e)}
            className={cx("flex cursor-pointer items-center gap-2 rounded-md px-2 py-1", i === at && "bg-accent-ground text-accent")}>
            <span className="truncate">{visible(e.label)}</span><span className="ml-auto text-xs whitespace-nowrap text-dim">{visible(e.kind)}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className="p-2 text-dim">Nothing is called that.</p>}
    </Dialog>
  );
}

const themeKey = "tenon.theme";

export function applyTheme(): void {
  const chosen = localStorage.getItem(themeKey);
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

export function toggleTheme(): void {
  localStorage.setItem(themeKey, document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  applyTheme();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
applyTheme();

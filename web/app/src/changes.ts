// The one stream that tells a page what has changed.

import { useSyncExternalStore } from "react";
import { cache, invalidate } from "./data";
import { wakeAll } from "./run";
import { type Link, follow } from "./stream";

interface State {
  link: Link;
  why?: string;
  since: number;
}

let state: State = { link: "connecting", since: Date.now() };
const listeners = new Set<() => void>();
let stop: (() => void) | undefined;

function set(s: State): void {
  state = s;
  for (const l of listeners) l();
}

export function watch(): void {
  stop?.();
  let lost = false;
  stop = follow({
    path: "/api/v1/changes",
    forever: true,
    onMessages: (messages) => {
      const topics = new Set<string>();
      for (const m of messages) for (const t of (JSON.parse(m.data) as { topics: string[] }).topics) topics.add(t);
      invalidate([...topics]);
      if (topics.has("runs")) wakeAll();
    },
    onLink: (link, why) => {
      if (link === "open" && lost) {
        void cache.invalidateQueries(); // whatever happened meanwhile
        wakeAll();
        lost = false;
      }
      lost ||= link === "lost";
      if (link === "connecting" && state.link === "lost") return; // still lost, since then
      set({ link, why, since: link === state.link ? state.since : Date.now() });
    },
  });
}

export function unwatch(): void {
  stop?.();
  stop = undefined;
}

export const useLink = () => useSyncExternalStore((l) => (listeners.add(l), () => listeners.delete(l)), () => state);

// A run that a page follows: its journal so far, then each event as it comes.

import { parse } from "./exact";
import { useCallback, useEffect, useState, useSyncExternalStore } from "react";
import { type View, applyAll, emptyView, withoutLive } from "./fold";
import { type Link, follow } from "./stream";
import type { RunEvent } from "./types";

interface Followed {
  view: View;
  events: RunEvent[]; // of the journal
  link: Link;
  why?: string;
  since: number; // when the link last changed
  caughtUp: boolean;
}

class Follower {
  state: Followed;
  private listeners = new Set<() => void>();
  private stop?: () => void;
  private users = 0;
  private told = 0;

  constructor(private id: string) {
    this.state = { view: { ...emptyView(), id }, events: [], link: "connecting", since: Date.now(), caughtUp: false };
  }

  use(): () => void {
    this.users++;
    this.stop ??= follow({
      path: `/api/v1/runs/${encodeURIComponent(this.id)}/events`,
      after: this.state.view.seq ? String(this.state.view.seq) : "",
      onMessages: (messages, more) => {
        const events: RunEvent[] = [];
        let problem = "";
        for (const m of messages) {
          if (m.type === "problem") problem = (JSON.parse(m.data) as { detail?: string }).detail ?? m.data;
          else events.push(parse(m.data) as RunEvent);
        }
        const view = applyAll(this.state.view, events);
        const kept = events.filter((e) => e.seq > this.state.view.seq);
        this.set({ ...this.state, view, events: kept.length ? [...this.state.events, ...kept] : this.state.events, caughtUp: !more, why: problem || this.state.why }, more);
      },
      onLink: (link, why) => {
        this.set({ ...this.state, link, why, since: Date.now(), caughtUp: this.state.caughtUp || link === "ended" });
        // What was said live before the connection broke may be told again.
        if (link === "open") this.set({ ...this.state, view: withoutLive(this.state.view) });
      },
    });
    return () => {
      if (--this.users > 0) return;
      setTimeout(() => {
        if (this.users > 0) return;
        this.stop?.();
        this.stop = undefined;
        if (!this.state.view.ended) followers.delete(this.id);
      }, 1000);
    };
  }

  /** Reads on after somebody took the run up again. */
  again(): void {
    this.stop?.();
    this.stop = undefined;
    if (this.users > 0) {
      this.users--;
      this.use();
    }
  }

  wake(): void {
    if (this.users > 0 && this.state.link === "ended" && this.state.view.ended === undefined) this.again();
  }

  subscribe = (l: () => void) => {
    this.listeners.add(l);
    return () => this.listeners.delete(l);
  };

  private set(s: Followed, more = false): void {
    this.state = s;
    if (more && Date.now() - this.told < 250) return; // the rest follows at once
    this.told = Date.now();
    for (const l of this.listeners) l();
  }
}

/** What runs that are on a page have used together. */
export function useTotals(ids: string[]): { input: number; output: number; cost?: number } {
  const key = ids.join(" ");
  const text = useSyncExternalStore(
    useCallback((l: () => void) => {
      const ends = key.split(" ").filter(Boolean).map((id) => follower(id).subscribe(l));
      return () => ends.forEach((end) => end());
    }, [key]),
    () => {
      let [input, output, cost] = [0, 0, -1];
      for (const id of key.split(" ").filter(Boolean)) {
        const v = follower(id).state.view;
        input += v.usage.input_tokens;
        output += v.usage.output_tokens;
        if (v.cost !== undefined) cost = Math.max(cost, 0) + v.cost;
      }
      return `${input} ${output} ${cost}`;
    },
  );
  const [input = 0, output = 0, cost = -1] = text.split(" ").map(Number);
  return { input, output, cost: cost < 0 ? undefined : cost };
}

/** Follows again the runs that had come to rest, and are on a page: one may have gone on. */
export function wakeAll(): void {
  for (const f of followers.values()) f.wake();
}

const followers = new Map<string, Follower>();
const maxKept = 30;

export function follower(id: string): Follower {
  let f = followers.get(id);
  if (!f) {
    if (followers.size >= maxKept) followers.delete(followers.keys().next().value!);
    followers.set(id, (f = new Follower(id)));
  }
  return f;
}

/** Follows a run for as long as the component is on the page. */
export function useRun(id: string): Followed {
  const [f, setF] = useState(() => follower(id));
  useEffect(() => {
    const mine = follower(id);
    setF(mine);
    return mine.use();
  }, [id]);
  return useSyncExternalStore(f.subscribe, () => f.state);
}

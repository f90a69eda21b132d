// Pages by path, so that everything has a link that can be sent to somebody.

import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();

function changed(): void {
  for (const l of listeners) l();
}

globalThis.addEventListener?.("popstate", changed); // tests have no window

export function go(path: string, replace = false): void {
  if (path === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", path);
  changed();
}

export interface Place {
  page: string; // the first part of the path
  id: string; // the rest, decoded; a run's id may hold slashes
  query: URLSearchParams;
}

let snapshot = "";
let place: Place = parse("");

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // somebody typed a lone %
  }
}

function parse(at: string): Place {
  const [path = "", query = ""] = at.split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decode);
  return { page: parts[0] ?? "", id: parts.slice(1).join("/"), query: new URLSearchParams(query) };
}

export function usePlace(): Place {
  const at = useSyncExternalStore((l) => (listeners.add(l), () => listeners.delete(l)), () => location.pathname + location.search);
  if (at !== snapshot) {
    snapshot = at;
    place = parse(at);
  }
  return place;
}

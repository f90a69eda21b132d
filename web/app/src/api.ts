// The one way to the server: every request carries the token, every failure is a
// Failure that says what the server said.

import { parse } from "./exact";
import type { Problem } from "./types";

const KEY = "tenon.token";

/** Takes the token that `tenon serve` put behind the # of its address; it never reaches a server or a history entry. */
export function takeToken(): void {
  const m = /(?:^#|&)token=([^&]+)/.exec(location.hash);
  if (!m) return;
  sessionStorage.setItem(KEY, decodeURIComponent(m[1]!));
  history.replaceState(null, "", location.pathname + location.search);
}

export const token = () => sessionStorage.getItem(KEY) ?? "";

export function setToken(t: string): void {
  if (t) sessionStorage.setItem(KEY, t);
  else sessionStorage.removeItem(KEY);
}

export class Failure extends Error {
  constructor(readonly status: number, readonly code: string, detail: string) {
    super(detail);
  }
}

/** The server refused the token, or there is none. */
export const isAuth = (e: unknown) => e instanceof Failure && e.status === 401;

export function headers(more: Record<string, string> = {}): Record<string, string> {
  const t = token();
  return t ? { Authorization: `Bearer ${t}`, ...more } : more;
}

export async function readFailure(res: Response): Promise<Failure> {
  const p = (await res.json().catch(() => null)) as Problem | null;
  return new Failure(res.status, p?.code ?? "", p?.detail ?? `the server answered with status ${res.status}`);
}

export async function request<T>(method: string, path: string, body?: unknown, more: Record<string, string> = {}): Promise<T> {
  let res: Response;
  try {
    res = await fetch(path, {
      method,
      headers: headers(body === undefined ? more : { "Content-Type": "application/json", ...more }),
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
    });
  } catch {
    throw new Failure(0, "unreachable", "tenon serve cannot be reached. Is it running?");
  }
  if (!res.ok) throw await readFailure(res);
  if (res.status === 204) return undefined as T;
  return parse(await res.text()) as T;
}

export const get = <T>(path: string) => request<T>("GET", path);
export const post = <T>(path: string, body: unknown = {}, more?: Record<string, string>) => request<T>("POST", path, body, more);

/** A page of a list. */
export interface Page<T> {
  items: T[];
  next_cursor?: string;
}

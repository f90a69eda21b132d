// What pages read, through one cache. The server tells what has changed over one
// stream (changes.ts), and what a page shows of it is read again: nothing polls.

import { QueryClient, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Failure, type Page, get, isAuth, token } from "./api";
import type { Agent, Approval, Me, Model, RunRow, ServerProblem, ServerStatus, Session, SessionRow, Tool, Workflow } from "./types";

export const cache = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: Number.POSITIVE_INFINITY,
      refetchOnWindowFocus: false,
      retry: (n, e) => n < 2 && !isAuth(e) && e instanceof Failure && (e.status === 0 || e.status >= 500),
    },
  },
});

export interface Problems {
  problems?: ServerProblem[];
}

/** A list of what servers offer. Some of it may be as old as listed; no list is known of the servers in unlisted. */
export type Offers<T> = Page<T> & Problems & { listed?: string; unlisted?: string[] };

export interface OffersQuery<T> {
  data?: Offers<T>;
  error?: unknown;
  asked: string[]; // servers whose first list is waited for
  busy: boolean; // all servers are being asked
  ask: () => void;
}

const api = "/api/v1";
const q = (o: Record<string, string | number | undefined>) => {
  const s = new URLSearchParams();
  for (const [k, v] of Object.entries(o)) if (v !== undefined && v !== "") s.set(k, String(v));
  const text = s.toString();
  return text ? `?${text}` : "";
};

const me = { queryKey: ["me"], queryFn: () => get<Me>(`${api}/me`) };
const agents = { queryKey: ["agents"], queryFn: () => get<Page<Agent>>(`${api}/agents`) };
const models = { queryKey: ["models"], queryFn: () => get<Page<Model>>(`${api}/models`) };
const approvals = { queryKey: ["approvals"], queryFn: () => get<Page<Approval>>(`${api}/approvals`) };

/** Asks for what every first page shows before anything is drawn, so that one answer is not waited for after another. */
export function readEarly(): void {
  if (!token()) return; // most answers would be refusals
  void cache.prefetchQuery(me);
  void cache.prefetchQuery(approvals);
  void cache.prefetchQuery(agents);
  void cache.prefetchQuery(models);
}

export const useMe = () => useQuery(me);
export const useAgents = () => useQuery(agents);
export const useModels = () => useQuery(models);
export const useRuns = (f: { state?: string; session?: string; cursor?: string; limit?: number }) =>
  useQuery({ queryKey: ["runs", f], queryFn: () => get<Page<RunRow>>(`${api}/runs${q(f)}`), placeholderData: (old) => old });
/** Whether the process of a run has died. Nobody tells that, so it is asked for while the run seems to be at work. */
export const useInterrupted = (run: string, working: boolean) =>
  useQuery({ queryKey: ["runs", "alive", run], queryFn: () => get<Page<RunRow>>(`${api}/runs${q({ prefix: run, limit: 50 })}`), enabled: working, refetchInterval: 10_000 })
    .data?.items.find((r) => r.id === run)?.interrupted === true && working;

export const useSessions = (limit = 50) =>
  useQuery({ queryKey: ["sessions", limit], queryFn: () => get<Page<SessionRow>>(`${api}/sessions${q({ limit })}`), placeholderData: (old) => old });
export const useSession = (id: string) =>
  useQuery({ queryKey: ["sessions", "one", id], queryFn: () => get<Session & { run_list: RunRow[] }>(`${api}/sessions/${encodeURIComponent(id)}`), enabled: !!id });
export const useServers = () => useQuery({ queryKey: ["servers"], queryFn: () => get<Page<ServerStatus>>(`${api}/servers`) });
export const useTools = (search = "") =>
  useQuery({ queryKey: ["tools", search], queryFn: () => get<Page<Tool> & Problems>(`${api}/tools${q({ search })}`), placeholderData: (old) => old });
/** What servers offer beside tools: at once what they listed last, then with the lists of servers that are connected or were never listed. A server that hangs delays only its own entries. */
export function useOffers<T>(what: "prompts" | "resources", enabled = true): OffersQuery<T> {
  const read = (from: string) => get<Offers<T>>(`${api}/${what}?from=${from}`);
  const key = ["prompts", what, "known"]; // the topic of both is prompts
  const stored = useQuery({ queryKey: ["prompts", what, "stored"], queryFn: () => read("stored"), enabled });
  const known = useQuery({ queryKey: key, queryFn: () => read("known"), enabled });
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const ask = () => {
    setBusy(true);
    setError(undefined);
    read("servers").then((all) => cache.setQueryData(key, all), setError).finally(() => setBusy(false));
  };
  return { data: known.data ?? stored.data, error: error ?? known.error ?? (known.data ? undefined : stored.error) ?? undefined, asked: known.isPending ? stored.data?.unlisted ?? [] : [], busy, ask };
}

export const useApprovals = () => useQuery(approvals);

export const useWorkflows = () => useQuery({ queryKey: ["workflows"], queryFn: () => get<Page<Workflow>>(`${api}/workflows`) });

/** Reads again what the server says has changed. The promise is kept when what the page shows of it has been read. */
export async function invalidate(topics: string[]): Promise<void> {
  await Promise.all(topics.map((t) => cache.invalidateQueries({ queryKey: [t] })));
}

// The tokens that the definitions of tools take of each request, by server.

import type { Tool } from "./types";

/** From here on, requests become expensive and models choose worse. */
export const heavy = 50_000;

export interface Share {
  server: string;
  tools: number;
  tokens: number;
}

/** The servers with the tokens of their tools, the largest first; those after the fifth are one share. */
export function shares(tools: Pick<Tool, "server" | "tokens">[], most = 5): Share[] {
  const by = new Map<string, Share>();
  for (const t of tools) {
    const s = by.get(t.server) ?? { server: t.server, tools: 0, tokens: 0 };
    by.set(t.server, { ...s, tools: s.tools + 1, tokens: s.tokens + (t.tokens ?? 0) });
  }
  const list = [...by.values()].toSorted((a, b) => b.tokens - a.tokens || a.server.localeCompare(b.server));
  if (list.length <= most + 1) return list;
  const rest = list.slice(most);
  return [...list.slice(0, most), { server: rest.length === 1 ? "1 more server" : `${rest.length} more servers`, tools: rest.reduce((n, s) => n + s.tools, 0), tokens: rest.reduce((n, s) => n + s.tokens, 0) }];
}

/** The end of a scale that has room for a total, and its marks: 1, 2 or 5 times a power of ten. */
export function scale(total: number): { end: number; marks: number[] } {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, total)));
  const end = [1, 2, 5, 10].map((f) => f * power).find((v) => v >= total)!;
  return { end, marks: [0, end / 2, end] };
}

// Numbers as they were written: JSON.parse reads 9007199254740993 as …992, and what a
// person is asked about, or edits, has to be what is sent.

interface RawJSON {
  rawJSON?: (text: string) => unknown;
}

/** A number that JavaScript has none for. It is written as it was read. */
export class Exact {
  constructor(readonly source: string) {}
  toJSON(): unknown {
    return (JSON as RawJSON).rawJSON!(this.source);
  }
}

const able = typeof (JSON as RawJSON).rawJSON === "function"; // all browsers of 2025
const long = /\d{16}|\d\.\d{15}/;

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

const keep: Reviver = (_, value, context) => (typeof value === "number" && context?.source !== undefined ? number(context.source) : value);

/** Reads JSON, with the digits of every number kept. */
export function parse(text: string): unknown {
  return able && long.test(text) ? JSON.parse(text, keep as Parameters<typeof JSON.parse>[1]) : JSON.parse(text);
}

/** The number that a text stands for; NaN where it stands for none. */
export function number(text: string): number | Exact {
  const n = Number(text);
  if (!able || Number.isSafeInteger(n) || !/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return n;
  return /^-?\d+$/.test(text) || significant(text).length > 16 ? new Exact(text) : n;
}

const significant = (text: string) => text.replace(/[eE].*$/, "").replace(/[-.]/g, "").replace(/^0+|0+$/g, "");

// An input for an argument of a prompt, or a variable of a template, with the values that its server offers.

import { useEffect, useState } from "react";
import { post } from "./api";
import type { Completion, CompletionRequest } from "./types";
import { field, visible } from "./ui";

const pause = 250; // ms without a key before the server is asked
const maxOffered = 100;

/** What has arguments: a prompt, or a template of resources. */
export type Completed = Pick<CompletionRequest, "server" | "prompt" | "template">;

/** The request for the values of an argument, given what is written so far. */
export function completionOf(of: Completed, argument: string, values: Record<string, string>): CompletionRequest {
  const { [argument]: value = "", ...rest } = values;
  const others = Object.fromEntries(Object.entries(rest).filter(([, v]) => v !== ""));
  return { ...of, argument, value, ...(Object.keys(others).length ? { arguments: others } : {}) };
}

/** The input. A server that offers no values, or cannot be asked, is no error. */
export function CompletedInput({ id, of, name, required, values, onChange }: { id: string; of: Completed; name: string; required?: boolean; values: Record<string, string>; onChange: (v: string) => void }) {
  const [focused, setFocused] = useState(false);
  const [offered, setOffered] = useState<string[]>([]);
  const wanted = JSON.stringify(completionOf(of, name, values));
  useEffect(() => {
    if (!focused) return;
    let stale = false;
    const t = setTimeout(() => {
      post<Completion>("/api/v1/prompts/complete", JSON.parse(wanted)).then((c) => !stale && setOffered(c.values.slice(0, maxOffered)), () => !stale && setOffered([]));
    }, pause);
    return () => {
      stale = true;
      clearTimeout(t);
    };
  }, [focused, wanted]);
  return (
    <>
      <input id={id} list={offered.length ? `${id}-offered` : undefined} autoComplete="off" required={required} className={field} value={values[name] ?? ""} onFocus={() => setFocused(true)} onBlur={() => setFocused(false)} onChange={(e) => onChange(e.target.value)} />
      <datalist id={`${id}-offered`}>{offered.filter((v) => visible(v) === v).map((v) => <option key={v} value={v} />)}</datalist>
    </>
  );
}

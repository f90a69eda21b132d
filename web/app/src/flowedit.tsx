// Makes and changes a workflow: a form and the text of its file, which are two views of the same YAML. The page holds
// only the text. What is changed in the form is sent to the server, which changes these bytes and no others.

import { useMutation, useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { Failure, get, post, request } from "./api";
import { invalidate } from "./data";
import { DiffView } from "./diff";
import { FlowForm } from "./flowform";
import { FlowGraph } from "./flowgraph";
import { OnCommandLine, useDecided, write } from "./proposals";
import { go } from "./router";
import type { DraftChange, DraftMistake, DraftResponse, Edited, Proposal, WorkflowText } from "./types";
import { Button, Empty, ErrorBox, Labelled, Panel, cx, field, path, visible } from "./ui";

const first = (name: string) => `kind: workflow
version: 1
name: ${name}
description: Greets somebody.

parameters:
  name: {type: string, description: Who is greeted}

steps:
  - id: greeting
    template: "Hello, {{ params.name }}!"

message: greeting # the text that a caller gets
`;

const quiet = 400; // ms without typing, after which a text is checked
const place = (name: string) => `/api/v1/config/workflows/${encodeURIComponent(name)}`;

/** The editor of a workflow of the project, loaded first. */
export default function FlowEdit({ name }: { name: string }) {
  const file = useQuery({ queryKey: ["config", "workflow", name], queryFn: () => get<WorkflowText>(place(name)), staleTime: 0, gcTime: 0, retry: false, refetchOnMount: "always" });
  if (file.isError) return <ErrorBox error={file.error} retry={() => void file.refetch()} />;
  if (!file.data) return <Empty>Loading…</Empty>;
  return <Editor name={name} file={file.data} load={async () => (await file.refetch()).data} />;
}

/** The editor of a workflow that is not there yet. */
export function NewFlow() {
  return <Editor />;
}

function Editor({ name: of, file, load }: { name?: string; file?: WorkflowText; load?: () => Promise<WorkflowText | undefined> }) {
  const [own, setOwn] = useState("my_workflow");
  const name = of ?? own;
  const [seen, setSeen] = useState(file); // what the text began with, whatever is fetched meanwhile
  const [plan, setPlan] = useState<Edited>();
  const [waits, setWaits] = useState<Proposal>();
  const [step, setStep] = useState<number>();
  const draft = useDraft(of ?? "", file?.text ?? first("my_workflow"), () => setPlan(undefined));
  const area = useRef<HTMLTextAreaElement>(null);
  const { mistakes, graph, value } = draft.checked ?? { mistakes: [], graph: undefined, value: undefined };
  const done = useCallback(() => {
    invalidate(["workflows", "tools", "config"]);
    go(path("workflows", name));
  }, [name]);
  useDecided(waits, done);
  const body = (dry_run: boolean) => ({ text: draft.text, dry_run, ...(of ? { digest: seen?.digest } : { add: true }) });
  const show = useMutation({ mutationFn: () => request<Edited>("PUT", place(name), body(true)), onSuccess: setPlan });
  const save = useMutation({ mutationFn: (p: Edited) => write("PUT", place(name), body(false), p), onSuccess: (p) => (p ? setWaits(p) : done()) });
  const again = async () => {
    const now = await load?.();
    if (!now) return;
    show.reset();
    save.reset();
    setSeen(now);
    draft.write(now.text);
  };
  const rename = (n: string) => {
    setOwn(n);
    setPlan(undefined);
    if (n) draft.change([{ path: ["name"], value: n }]);
  };
  const mark = (m: DraftMistake) => {
    const at = /^steps\[(\d+)\]/.exec(m.path ?? "");
    if (at) setStep(Number(at[1]));
    const lines = draft.text.split("\n");
    const from = lines.slice(0, m.line - 1).reduce((n, l) => n + l.length + 1, 0) + m.column - 1;
    area.current?.focus();
    area.current?.setSelectionRange(from, Math.max(from, lines.slice(0, m.line).join("\n").length));
  };
  const choose = (id: string) => {
    const steps = (value as { steps?: { id?: string }[] } | null)?.steps ?? [];
    const i = steps.findIndex((s) => s?.id === id);
    if (i >= 0) setStep(i);
  };
  const same = of !== undefined && draft.text === seen?.text;
  const conflict = [show, save].some((m) => m.error instanceof Failure && m.error.status === 409);
  return (
    <div className="flex flex-col gap-3">
      {!of && <Labelled label="Name" hint={`Its file is ${visible(own || "NAME")}.yaml beside tenon.yaml, and tools of tenon.yaml names it.`}>{(id) => <input id={id} className={`${field} max-w-sm font-mono text-xs`} autoComplete="off" value={own} onChange={(e) => rename(e.target.value.trim())} />}</Labelled>}
      {graph && graph.nodes.length > 0 && <Panel title="Graph"><FlowGraph graph={graph} chosen={stepId(value, step)} onChoose={choose} /></Panel>}
      <div className="grid grid-cols-1 items-start gap-3 xl:grid-cols-2">
        <Panel title="Form" className={cx(!value && "opacity-60")}>
          {value ? <FlowForm value={value as Record<string, unknown>} change={draft.change} step={step} onStep={setStep} mistakes={mistakes} /> : <p className="p-3 text-sm text-dim">{draft.checked ? "The form comes back when the text is readable." : "Reading…"}</p>}
        </Panel>
        <div className="flex flex-col gap-3 xl:sticky xl:top-3">
          <Panel title={<>Text <span className="font-mono text-xs font-normal text-dim">{visible(seen?.file ?? `${own || "NAME"}.yaml`)}</span></>}>
            <textarea ref={area} aria-label="Text of the workflow" spellCheck={false} rows={Math.min(28, Math.max(12, draft.text.split("\n").length + 1))} wrap="off" className="block w-full resize-y rounded-b-lg bg-panel p-3 font-mono text-xs leading-5 text-ink" value={draft.text} onChange={(e) => draft.write(e.target.value)} />
          </Panel>
          <Mistakes list={mistakes} checked={!draft.busy && !!draft.checked} onChoose={mark} />
        </div>
      </div>
      {draft.error !== undefined && <ErrorBox error={draft.error} />}
      {[show, save].map((m, i) => m.isError && <ErrorBox key={i} error={m.error} />)}
      {conflict && of && <Button className="self-start" onClick={() => void again()}>Load the file again (your changes here are lost)</Button>}
      {plan && (plan.files ?? [plan]).map((f) => <DiffView key={f.file} edited={{ ...f, written: false }} />)}
      {waits && <OnCommandLine p={waits} />}
      <div className="flex flex-wrap justify-end gap-2">
        <Button onClick={() => go(of ? path("workflows", of) : "/workflows")}>Close</Button>
        <Button tone="primary" disabled={draft.busy || mistakes.length > 0 || same || !name || show.isPending || save.isPending || !!waits} title={mistakes.length > 0 ? "repair the mistakes first" : undefined} onClick={() => (plan ? save.mutate(plan) : show.mutate())}>{plan ? "Save it" : "Show what changes"}</Button>
      </div>
    </div>
  );
}

const stepId = (value: unknown, i?: number) => (i === undefined ? undefined : (value as { steps?: { id?: string }[] } | null)?.steps?.[i]?.id);

function Mistakes({ list, checked, onChoose }: { list: DraftMistake[]; checked: boolean; onChoose: (m: DraftMistake) => void }) {
  return (
    <div role="status" aria-label="Check" className="text-sm">
      {list.length === 0 ? <p className="text-dim">{checked ? <span className="text-ok">✓ No mistakes.</span> : "Checking…"}</p> : (
        <ul aria-label="Mistakes" className="flex flex-col gap-1.5">
          {list.map((m, i) => (
            <li key={i}>
              <button type="button" onClick={() => onChoose(m)} className="block w-full rounded-md border border-bad/40 bg-bad-ground px-2 py-1 text-left text-bad">
                <span className="font-mono text-xs">{visible(m.file)}:{m.line}:{m.column}</span> <span className="break-words">{m.path && `${visible(m.path)}: `}{visible(m.message)}</span>
                {m.hint && <span className="block text-xs break-words">{visible(m.hint)}</span>}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** A text, and what the server last said about it. Requests follow one another, so that each begins with the text of the last. */
function useDraft(name: string, begin: string, onChange: () => void) {
  const [text, setText] = useState(begin);
  const [checked, setChecked] = useState<DraftResponse>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(true);
  const now = useRef({ text: begin, changes: [] as DraftChange[], sending: false, dirty: true, timer: 0, gone: false });
  const send = useCallback(async () => {
    const s = now.current;
    if (s.sending || s.gone) return;
    s.sending = true;
    while ((s.dirty || s.changes.length > 0) && !s.gone) {
      const [base, changes] = [s.text, s.changes];
      s.changes = [];
      s.dirty = false;
      try {
        const r = await post<DraftResponse>("/api/v1/workflows/draft", { ...(name && { name }), text: base, changes });
        if (s.gone) break;
        if (s.text === base) {
          s.text = r.text;
          setText(r.text);
          setChecked(r);
          setError(undefined);
        } else { // it was typed meanwhile: the changes are made in that text
          s.changes = [...changes, ...s.changes];
          s.dirty = true;
        }
      } catch (e) {
        setError(e);
        break;
      }
    }
    s.sending = false;
    if (!s.gone) setBusy(s.dirty || s.changes.length > 0);
  }, [name]);
  const later = useCallback((ms: number) => {
    clearTimeout(now.current.timer);
    setBusy(true);
    now.current.timer = window.setTimeout(() => void send(), ms);
  }, [send]);
  useEffect(() => {
    const s = now.current;
    s.gone = false;
    later(0);
    return () => {
      s.gone = true;
      clearTimeout(s.timer);
    };
  }, [later]);
  const write = (t: string) => {
    now.current.text = t;
    now.current.dirty = true;
    setText(t);
    onChange();
    later(quiet);
  };
  const change = (list: DraftChange[]) => {
    const at = (c: DraftChange) => JSON.stringify(c.path);
    now.current.changes = [...now.current.changes.filter((c) => !list.some((n) => at(n) === at(c))), ...list];
    onChange();
    later(quiet / 2);
  };
  return { text, checked, error, busy, write, change };
}

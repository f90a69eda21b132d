// What goes with a question: files of the person, resources of servers.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { get, type Page } from "./api";
import { isDrawn } from "./callcard";
import type { Attachment } from "./fold";
import { CompletedInput } from "./completed";
import { useOffers } from "./data";
import type { Resource, TableFile } from "./types";
import { expand, variables } from "./uritemplate";
import { Button, Dialog, Empty, ErrorBox, Labelled, bytes, count, field, visible } from "./ui";

export interface Attached {
  files: File[];
  resources: { server: string; uri: string; name: string }[];
  table?: { id: string; name: string }; // offers only the tools that its rows name
}

export const nothing: Attached = { files: [], resources: [] };
const maxBytes = 11 << 20; // of all files, as base64 within the largest body

/** What the API takes of it. Fails where it is more than a request may hold. */
export async function toRequest(a: Attached): Promise<object> {
  const all = a.files.reduce((n, f) => n + f.size, 0);
  if (all > maxBytes) throw new Error(`the files have ${count(all)} bytes in all; a request takes ${count(maxBytes)}`);
  const files = await Promise.all(a.files.map(async (f) => ({ name: f.name, data: await base64(f) })));
  return { ...(files.length ? { files } : {}), ...(a.table ? { tool_table_file: a.table.id } : {}), ...(a.resources.length ? { resources: a.resources.map(({ server, uri }) => ({ server, uri })) } : {}) };
}

export const base64 = (f: File) =>
  new Promise<string>((resolve, reject) => {
    const r = new FileReader();
    r.onload = () => resolve(String(r.result).replace(/^[^,]*,/, ""));
    r.onerror = () => reject(new Error(`${f.name} cannot be read`));
    r.readAsDataURL(f);
  });

/** Takes files that are dropped anywhere on the page. */
export function DropZone({ onFiles }: { onFiles: (files: File[]) => void }) {
  const [over, setOver] = useState(false);
  const take = useRef(onFiles);
  useEffect(() => {
    take.current = onFiles;
  });
  useEffect(() => {
    const gone = new AbortController();
    const on = <K extends "dragover" | "dragleave" | "drop">(kind: K, f: (e: DragEvent) => void) =>
      document.addEventListener(kind, (e) => { if (e.dataTransfer?.types.includes("Files")) f(e); }, { signal: gone.signal });
    on("dragover", (e) => { e.preventDefault(); setOver(true); });
    on("dragleave", (e) => { if (!e.relatedTarget) setOver(false); });
    on("drop", (e) => { e.preventDefault(); setOver(false); take.current([...e.dataTransfer!.files]); });
    return () => gone.abort();
  }, []);
  return over ? <div role="status" className="pointer-events-none fixed inset-2 z-30 grid place-items-center rounded-xl border-2 border-dashed border-accent bg-accent-ground/80 text-lg text-accent">Drop files to attach them</div> : null;
}

export function Attachments({ value, onChange }: { value: Attached; onChange: (a: Attached) => void }) {
  if (value.files.length + value.resources.length === 0 && !value.table) return null;
  return (
    <ul aria-label="Attached" className="mb-1.5 flex flex-wrap gap-1.5">
      {value.files.map((f, i) => <Chip key={`f${i}`} text={`${f.name}, ${count(f.size)} bytes`} onRemove={() => onChange({ ...value, files: value.files.filter((_, n) => n !== i) })} />)}
      {value.resources.map((r, i) => <Chip key={`r${i}`} text={`${r.server}: ${r.name}`} onRemove={() => onChange({ ...value, resources: value.resources.filter((_, n) => n !== i) })} />)}
      {value.table && <Chip text={`tools of ${value.table.name}`} onRemove={() => onChange({ ...value, table: undefined })} />}
    </ul>
  );
}

/** What went with a question, below its text: pictures small, files by name and size. */
export function Sent({ files }: { files: Attachment[] }) {
  if (files.length === 0) return null;
  return (
    <ul aria-label="Attached to the question" className="mt-1.5 flex flex-wrap gap-1.5">
      {files.map((f, i) => {
        const c = { type: "image", mimeType: f.mime, data: f.data };
        const text = `${f.name}${f.bytes === undefined ? "" : `, ${bytes(f.bytes)}`}`;
        return (
          <li key={i} className="flex max-w-full min-w-0 flex-col gap-0.5 rounded-md bg-panel/60 px-2 py-0.5 text-xs">
            {f.mime?.startsWith("image/") && isDrawn(c) && <img alt={visible(f.name)} className="max-h-32 max-w-48 self-start rounded border border-line" src={`data:${f.mime};base64,${f.data}`} />}
            <span className="truncate">{visible(text)}</span>
          </li>
        );
      })}
    </ul>
  );
}

function Chip({ text, onRemove }: { text: string; onRemove: () => void }) {
  return (
    <li className="flex max-w-full items-center gap-1 rounded-md bg-sunk py-0.5 pr-0.5 pl-2 text-xs">
      <span className="truncate">{visible(text)}</span>
      <Button tone="quiet" className="px-1 py-0 text-xs" aria-label={`Remove ${visible(text)}`} onClick={onRemove}>✕</Button>
    </li>
  );
}

export function AttachButtons({ value, onChange }: { value: Attached; onChange: (a: Attached) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [open, setOpen] = useState(false);
  const [tables, setTables] = useState(false);
  return (
    <>
      <input ref={input} type="file" multiple hidden aria-label="Files to attach" onChange={(e) => { onChange({ ...value, files: [...value.files, ...(e.target.files ?? [])] }); e.target.value = ""; }} />
      <Button tone="quiet" className="py-0.5 text-xs" onClick={() => input.current?.click()}>Attach files</Button>
      <Button tone="quiet" className="py-0.5 text-xs" onClick={() => setOpen(true)}>Attach a resource</Button>
      <Button tone="quiet" className="py-0.5 text-xs" onClick={() => setTables(true)}>Tools of a table</Button>
      {tables && <Tables onClose={() => setTables(false)} onPick={(table) => { onChange({ ...value, table }); setTables(false); }} />}
      {open && <Resources onClose={() => setOpen(false)} onPick={(r) => { onChange({ ...value, resources: [...value.resources, r] }); setOpen(false); }} />}
    </>
  );
}

const most = 50;

function Tables({ onClose, onPick }: { onClose: () => void; onPick: (t: NonNullable<Attached["table"]>) => void }) {
  const list = useQuery({ queryKey: ["tables"], queryFn: () => get<Page<TableFile>>("/api/v1/tables") });
  const all = list.data?.items ?? [];
  return (
    <Dialog title="Offer only the tools of a table" onClose={onClose}>
      <p className="text-xs text-dim">The model gets those tools of this configuration that the rows of the table name.</p>
      {list.isError && <ErrorBox error={list.error} />}
      <ul aria-label="Tables" className="mt-2">
        {all.map((t) => (
          <li key={t.id}>
            <button type="button" className="flex w-full gap-2 rounded-md px-2 py-1 text-left hover:bg-sunk focus:bg-sunk" onClick={() => onPick({ id: t.id, name: t.name })}>
              <span className="truncate text-sm">{visible(t.name)}</span><span className="ml-auto shrink-0 text-xs text-dim">{visible(t.source)}</span>
            </button>
          </li>
        ))}
      </ul>
      {list.data && all.length === 0 && <Empty>There is no table in the project's folder, and none was uploaded.</Empty>}
    </Dialog>
  );
}

type Pick = (r: Attached["resources"][number]) => void;

function Resources({ onClose, onPick }: { onClose: () => void; onPick: Pick }) {
  const list = useOffers<Resource>("resources");
  const [words, setWords] = useState("");
  const [template, setTemplate] = useState<Resource>();
  const all = list.data?.items ?? [];
  const found = all.filter((r) => words.toLowerCase().split(/\s+/).every((w) => `${r.server} ${r.name} ${r.uri ?? r.uriTemplate} ${r.description ?? ""}`.toLowerCase().includes(w)));
  if (template) return <Blanks of={template} onClose={onClose} onBack={() => setTemplate(undefined)} onPick={onPick} />;
  return (
    <Dialog title="Attach a resource" onClose={onClose}>
      <input autoFocus type="search" aria-label="Filter resources" placeholder="filter" className={field} value={words} onChange={(e) => setWords(e.target.value)} />
      {list.error !== undefined && <ErrorBox error={list.error} />}
      {(list.data?.problems ?? []).map((p, i) => <p key={i} className="mt-1 line-clamp-2 text-xs break-words text-warn">{visible(p.message)}</p>)}
      <ul aria-label="Resources" className="mt-2">
        {found.slice(0, most).map((r) => (
          <li key={`${r.server} ${r.uri ?? r.uriTemplate}`}>
            <button type="button" className="w-full rounded-md px-2 py-1 text-left hover:bg-sunk focus:bg-sunk" onClick={() => (r.uri ? onPick({ server: r.server, uri: r.uri, name: r.name }) : setTemplate(r))}>
              <span className="flex gap-2"><span className="truncate text-sm">{visible(r.name)}{!r.uri && " (template)"}</span><span className="ml-auto shrink-0 text-xs text-dim">{visible(r.server)}</span></span>
              <span className="block truncate font-mono text-xs text-dim">{visible(r.uri ?? r.uriTemplate ?? "")}</span>
            </button>
          </li>
        ))}
      </ul>
      {found.length > most && <p className="px-2 text-xs text-dim">{found.length - most} more; filter them.</p>}
      {list.data && found.length === 0 && list.asked.length === 0 && <Empty>{all.length === 0 ? "No server has a resource." : "Nothing was found."}</Empty>}
      {(!list.data || list.asked.length > 0) && list.error === undefined && <p role="status" className="p-2 text-center text-xs text-dim">Asking {list.asked.length > 0 ? visible(list.asked.join(", ")) : "the servers"}…</p>}
    </Dialog>
  );
}

/** The variables of a template, with the values that its server completes. */
function Blanks({ of, onClose, onBack, onPick }: { of: Resource; onClose: () => void; onBack: () => void; onPick: Pick }) {
  const [values, setValues] = useState<Record<string, string>>({});
  const template = of.uriTemplate ?? "";
  const uri = expand(template, values);
  return (
    <Dialog title={`Attach ${visible(of.name)}`} onClose={onClose}>
      <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); onPick({ server: of.server, uri, name: of.name }); }}>
        {variables(template).map((n) => (
          <Labelled key={n} label={visible(n)}>
            {(id) => <CompletedInput id={id} of={{ server: of.server, template }} name={n} values={values} onChange={(v) => setValues({ ...values, [n]: v })} />}
          </Labelled>
        ))}
        <p className="text-xs text-dim">The URI: <output className="font-mono break-all text-ink">{visible(uri)}</output></p>
        <div className="flex gap-1.5"><Button type="submit" tone="primary">Attach</Button><Button onClick={onBack}>Back</Button></div>
      </form>
    </Dialog>
  );
}

// Changes of the configuration that wait for the owner: proposed by a request, or made in
// the files on disk. A change that starts a program or opens tenon needs the command line.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { get, post, request, type Page } from "./api";
import { invalidate, useMe } from "./data";
import { DiffView } from "./diff";
import type { Difference, Edited, Proposal } from "./types";
import { Badge, Button, ErrorBox, Panel, visible } from "./ui";

const url = "/api/v1/config/proposals";

/** The changes that wait; none for whoever is not the owner. */
export function useProposals(): Proposal[] {
  const owner = useMe().data?.owner;
  const list = useQuery({ queryKey: ["config", "proposals"], queryFn: () => get<Page<Proposal>>(url), enabled: !!owner });
  return list.data?.items ?? [];
}

export const isProposal = (v: Edited | Proposal): v is Proposal => "digest" in v;

/** Calls done once when a change that waits for the command line is no longer open: it was accepted or rejected there. */
export function useDecided(waits: Proposal | undefined, done: () => void): void {
  const open = useProposals();
  const [seen, setSeen] = useState("");
  const told = useRef("");
  const isOpen = !!waits && open.some((o) => o.id === waits.id);
  useEffect(() => {
    if (!waits || told.current === waits.id) return;
    if (isOpen) setSeen(waits.id);
    else if (seen === waits.id) {
      told.current = waits.id;
      done();
    }
  }, [waits, isOpen, seen, done]);
}

/** Agrees to a change as it was shown. */
export async function accept(p: Proposal): Promise<void> {
  await post(`${url}/${encodeURIComponent(p.id)}/accept`, { digest: p.digest });
  void invalidate(["config", "servers", "tools"]);
}

/**
 * Sends a change that the person saw as a plan and wants written. It is agreed to at once
 * where it is exactly the plan and the workbench may do that; else it waits and is returned.
 */
export async function write(method: string, path: string, body: unknown, plan: Edited): Promise<Proposal | undefined> {
  const done = await request<Edited | Proposal>(method, path, body);
  void invalidate(["config"]);
  if (!isProposal(done)) return undefined;
  const file = done.files[0];
  if (done.command_line || file?.before !== plan.before || file.after !== plan.after) return done;
  await accept(done);
  return undefined;
}

function Differences({ list }: { list: Difference[] }) {
  return (
    <ul aria-label="Changes" className="flex flex-col gap-1.5">
      {list.map((d, i) => (
        <li key={i} className="rounded-md border border-line p-2">
          <p className="flex flex-wrap items-center gap-2">
            <span className="font-mono text-xs break-all">{visible(d.path)}</span>
            {d.layer === "user" && <Badge>your own file</Badge>}
            {d.starts ? <Badge tone="bad">starts, sends or opens something</Badge> : d.effect === "loosens" ? <Badge tone="warn">loosens a rule</Badge> : <Badge tone="ok">{d.effect}</Badge>}
          </p>
          {d.before && <p className="font-mono text-xs break-all whitespace-pre-wrap text-bad">- {visible(d.before)}</p>}
          {d.after && <p className="font-mono text-xs break-all whitespace-pre-wrap text-ok">+ {visible(d.after)}</p>}
        </li>
      ))}
    </ul>
  );
}

/** The command that agrees to a change which this page may not agree to. */
export function OnCommandLine({ p }: { p: Proposal }) {
  return (
    <div role="status" className="rounded-md border border-warn/40 bg-warn-ground p-2 text-sm text-warn">
      <p>This change starts a program, sends data or opens tenon to others, so it waits for you on the command line. Run this where tenon serve runs:</p>
      <pre tabIndex={0} aria-label="Command" className="mt-1 overflow-x-auto font-mono text-xs">{visible(p.command)}</pre>
    </div>
  );
}

export function ProposalView({ p }: { p: Proposal }) {
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const act = (f: () => Promise<unknown>) => {
    setBusy(true);
    setError(undefined);
    f().then(() => invalidate(["config", "servers", "tools"]), setError).finally(() => setBusy(false));
  };
  return (
    <article aria-label={`Change ${p.id}`} className="flex flex-col gap-2 p-3 text-sm">
      <p>{p.kind === "reload" ? "Files were changed on disk. These changes do not hold until you agree." : `A request of '${visible(p.by ?? "")}' wants to change ${visible(p.file)}.`}</p>
      <Differences list={p.differences} />
      {p.files.filter((f) => !f.binary).map((f) => <details key={f.file}><summary className="cursor-pointer text-xs text-dim">{visible(f.file)}</summary><DiffView edited={{ ...f, written: false }} /></details>)}
      {p.note && <p className="text-xs text-dim">{visible(p.note)}</p>}
      {error !== undefined && <ErrorBox error={error} />}
      {p.command_line && <OnCommandLine p={p} />}
      <div className="flex justify-end gap-2">
        {p.kind === "edit" && <Button disabled={busy} onClick={() => act(() => post(`${url}/${encodeURIComponent(p.id)}/reject`))}>Drop it</Button>}
        {!p.command_line && p.digest !== "" && <Button tone="primary" disabled={busy} onClick={() => act(() => accept(p))}>Agree</Button>}
      </div>
    </article>
  );
}

/** All changes that wait; nothing where there are none. */
export function Proposals() {
  const list = useProposals();
  if (list.length === 0) return null;
  return (
    <Panel title="Changes that wait for you">
      <div className="divide-y divide-line">{list.map((p) => <ProposalView key={p.id + p.digest} p={p} />)}</div>
    </Panel>
  );
}

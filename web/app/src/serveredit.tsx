// A server added to the project's file, by a form or from the JSON that its
// documentation shows; or removed from it.

import { useEffect, useState } from "react";
import { post, request } from "./api";
import { invalidate } from "./data";
import { DiffView } from "./diff";
import { OnCommandLine, isProposal, useProposals, write } from "./proposals";
import { go } from "./router";
import type { Edited, Proposal } from "./types";
import { FromRegistry, type Choice, blanks } from "./registry";
import { Button, Dialog, ErrorBox, Labelled, cx, field, visible } from "./ui";

type Entry = Record<string, unknown>;

/** The entries of what people paste: Claude's, Cursor's and VS Code's files, a part of one, or one entry. */
export function entriesOf(text: string, name: string): Record<string, Entry> {
  const v = JSON.parse(text.trim().replace(/^"[\w.-]+"\s*:\s*\{[\s\S]*$/, (t) => `{${t.replace(/,\s*$/, "")}}`)) as unknown;
  if (!isEntry(v)) throw new Error("an object is needed");
  const all = v.mcpServers ?? (isEntry(v.mcp) ? v.mcp.servers : undefined) ?? (isEntry(v.servers) ? v.servers : undefined);
  if (isEntry(all)) return all as Record<string, Entry>;
  if ("command" in v || "url" in v) {
    if (!name) throw new Error("give the server a name");
    return { [name]: v };
  }
  if (Object.values(v).length > 0 && Object.values(v).every((e) => isEntry(e) && ("command" in e || "url" in e))) return v as Record<string, Entry>;
  throw new Error("neither mcpServers nor an entry with command or url");
}

const isEntry = (v: unknown): v is Entry => typeof v === "object" && v !== null && !Array.isArray(v);

/** Splits a command line as a shell would: quotes and backslashes, nothing else. */
export function words(line: string): string[] {
  const out: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let i = 0; i < line.length; i++) {
    const c = line[i]!;
    if (quote) {
      if (c === quote) quote = "";
      else if (c === "\\" && quote === '"' && i + 1 < line.length && '"\\$`'.includes(line[i + 1]!)) word = (word ?? "") + line[++i]!;
      else word = (word ?? "") + c;
    } else if (c === "'" || c === '"') {
      quote = c;
      word ??= "";
    } else if (c === "\\" && i + 1 < line.length) word = (word ?? "") + line[++i]!;
    else if (/\s/.test(c)) {
      if (word !== undefined) out.push(word);
      word = undefined;
    } else word = (word ?? "") + c;
  }
  if (quote) throw new Error(`the quote ${quote} is not closed`);
  if (word !== undefined) out.push(word);
  return out;
}

/** A word as words() reads it back. */
export const quoted = (word: string) => (/^[\w@%+=:,./<>${}-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);

function pairs(text: string, sep: string): Record<string, string> | undefined {
  const lines = text.split("\n").map((l) => l.trim()).filter(Boolean);
  if (lines.length === 0) return undefined;
  return Object.fromEntries(lines.map((l) => {
    const i = l.indexOf(sep);
    if (i < 1) throw new Error(`'${l}' is not NAME${sep}VALUE`);
    return [l.slice(0, i).trim(), l.slice(i + sep.length).trim()];
  }));
}

/** Starts a server that was written. Its card shows how it goes, and why it does not. */
async function start(name: string): Promise<void> {
  await post(`/api/v1/servers/${encodeURIComponent(name)}/restart`).catch(() => undefined);
  invalidate(["servers", "tools"]);
}

export function AddServer({ onClose }: { onClose: () => void }) {
  const [by, setBy] = useState<"command" | "url" | "json" | "registry">("command");
  const [name, setName] = useState("");
  const [line, setLine] = useState("");
  const [more, setMore] = useState("");
  const [json, setJson] = useState("");
  const [from, setFrom] = useState<Choice>(); // of the registry
  const [plan, setPlan] = useState<Edited[]>();
  const [waits, setWaits] = useState<{ name: string; p: Proposal }[]>([]);
  const open = useProposals();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const changed = <T,>(set: (v: T) => void) => (v: T) => { setPlan(undefined); set(v); };
  const entries = (): Record<string, Entry> => {
    if (by === "json") return entriesOf(json, name.trim());
    if (!name.trim()) throw new Error("give the server a name");
    if (by === "url") {
      const headers = pairs(more, ":");
      return { [name.trim()]: { type: from?.setup.transport === "sse" ? "sse" : "http", url: line.trim(), ...(headers ? { headers } : {}) } };
    }
    const [command, ...args] = words(line);
    if (!command) throw new Error("which command starts it?");
    const env = pairs(more, "=");
    return { [name.trim()]: { command, ...(args.length ? { args } : {}), ...(env ? { env } : {}) } };
  };
  const choose = (c: Choice) => {
    const { setup } = c;
    setFrom(c);
    setName(setup.name);
    setBy(setup.transport === "stdio" ? "command" : "url");
    setLine(setup.command ? setup.command.map(quoted).join(" ") : (setup.url ?? ""));
    setMore((setup.values ?? []).map((v) => `${v.name}${setup.command ? "=" : ": "}${v.value}`).join("\n"));
  };
  const badName = name.trim() && !/^[\w.-]{1,64}$/.test(name.trim()) ? "at most 64 letters, digits, dots, _ and -" : "";
  const unfilled = from ? blanks(`${line}\n${more}`) : [];
  // What was agreed to on the command line is started here, and the dialog has done its work.
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (waits.length === 0) return;
    const still = waits.filter((w) => open.some((o) => o.id === w.p.id));
    if (still.length > 0) setSeen(true);
    if (!seen || still.length > 0) return;
    for (const w of waits) void start(w.name);
    onClose();
  }, [waits, open, seen, onClose]);
  const send = async (dry_run: boolean) => {
    setBusy(true);
    setError(undefined);
    try {
      const plans: Edited[] = [];
      const proposed: { name: string; p: Proposal }[] = [];
      const added = Object.entries(entries());
      for (const [name, entry] of added) {
        const got = await request<Edited | Proposal>("PUT", `/api/v1/config/servers/${encodeURIComponent(name)}`, { entry, dry_run, ...(from ? { registry_name: from.name } : {}) });
        if (isProposal(got)) proposed.push({ name, p: got });
        else plans.push(got);
      }
      if (dry_run) setPlan(plans);
      else {
        invalidate(["servers", "tools", "config"]);
        if (proposed.length > 0) {
          setWaits(proposed);
          return;
        }
        for (const [n] of added) void start(n);
        onClose();
      }
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog wide title="Add a server" onClose={onClose}>
      <form className="flex flex-col gap-3" noValidate onSubmit={(e) => { e.preventDefault(); void send(!plan); }}>
        <div role="tablist" aria-label="How" className="flex flex-wrap gap-1">
          {(["command", "url", "json", "registry"] as const).map((b) => (
            <Button key={b} role="tab" aria-selected={b === by} tone="quiet" className={cx(b === by && "bg-sunk text-ink")} onClick={() => { setPlan(undefined); setFrom(undefined); setBy(b); }}>{b === "command" ? "A command" : b === "url" ? "A URL" : b === "json" ? "Paste JSON" : "Registry"}</Button>
          ))}
        </div>
        {by === "registry" && <FromRegistry onChoose={choose} />}
        {from && <p className="rounded-md bg-warn-ground px-3 py-2 text-sm break-words text-warn">{visible(from.name)} {visible(from.version)} from {visible(from.registry)}. Its author wrote what is filled in: check it before you add it.</p>}
        {by !== "registry" && <Labelled label="Name" hint={by === "json" ? "only for an entry that comes without one" : undefined} error={badName}>{(id) => <input id={id} aria-invalid={badName !== ""} className={field} value={name} onChange={(e) => changed(setName)(e.target.value)} />}</Labelled>}
        {by === "command" && (
          <>
            <Labelled label="Command line" hint="It runs as you, on the machine of tenon serve.">{(id) => <input id={id} className={`${field} font-mono text-xs`} placeholder="npx -y @modelcontextprotocol/server-everything" value={line} onChange={(e) => changed(setLine)(e.target.value)} />}</Labelled>
            <Labelled label="Environment" hint="NAME=VALUE, one a line; write a secret as ${NAME} and set that in the environment of tenon serve.">{(id) => <textarea id={id} rows={2} className={`${field} font-mono text-xs`} value={more} onChange={(e) => changed(setMore)(e.target.value)} />}</Labelled>
          </>
        )}
        {by === "url" && (
          <>
            <Labelled label="URL">{(id) => <input id={id} type="url" className={field} placeholder="https://mcp.example.com/mcp" value={line} onChange={(e) => changed(setLine)(e.target.value)} />}</Labelled>
            <Labelled label="Headers" hint="NAME: VALUE, one a line; write a secret as ${NAME}.">{(id) => <textarea id={id} rows={2} className={`${field} font-mono text-xs`} value={more} onChange={(e) => changed(setMore)(e.target.value)} />}</Labelled>
          </>
        )}
        {by === "json" && <Labelled label="JSON" hint="as it stands in .mcp.json, in the settings of Claude, Cursor or VS Code, or in the server's documentation">{(id) => <textarea id={id} rows={9} spellCheck={false} className={`${field} font-mono text-xs`} value={json} onChange={(e) => changed(setJson)(e.target.value)} />}</Labelled>}
        {unfilled.length > 0 && <p role="status" className="text-sm break-words text-warn">Still to be filled in: <span className="font-mono text-xs">{visible(unfilled.join(" "))}</span></p>}
        {error !== undefined && <ErrorBox error={error} />}
        {plan?.map((p, i) => <div key={i}><DiffView edited={p} /></div>)}
        {waits.map((w) => <OnCommandLine key={w.p.id} p={w.p} />)}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Close</Button>
          {by !== "registry" && <Button type="submit" tone="primary" disabled={busy || waits.length > 0 || unfilled.length > 0 || badName !== ""}>{plan ? "Propose it" : "Show what changes"}</Button>}
        </div>
      </form>
    </Dialog>
  );
}

export function RemoveServer({ name, onClose }: { name: string; onClose: () => void }) {
  const [error, setError] = useState<unknown>();
  const [plan, setPlan] = useState<Edited>();
  const [waits, setWaits] = useState<Proposal>();
  const path = `/api/v1/config/servers/${encodeURIComponent(name)}`;
  useEffect(() => {
    request<Edited>("DELETE", `${path}?dry_run=true`).then(setPlan, setError);
  }, [path]);
  const remove = async (seen: Edited) => {
    try {
      const p = await write("DELETE", path, undefined, seen);
      invalidate(["servers", "tools", "config"]);
      if (p) {
        setWaits(p);
        return;
      }
      onClose();
      go("/servers");
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title={`Remove ${name}?`} onClose={onClose}>
      <p>Its entry is taken out of the project's file, and its connection ends. Runs that used it stay as they are.</p>
      {plan && <DiffView edited={plan} />}
      {error !== undefined && <ErrorBox error={error} />}
      {waits && <OnCommandLine p={waits} />}
      <div className="mt-3 flex justify-end gap-2"><Button onClick={onClose}>Keep</Button><Button tone="danger" disabled={!plan || !!waits} onClick={() => plan && void remove(plan)}>Remove</Button></div>
    </Dialog>
  );
}

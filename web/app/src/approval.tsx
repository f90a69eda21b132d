// What waits for a person: a call that may or may not run, a form to fill in, a limit
// to go past.

import { type ReactNode, useState } from "react";
import { post } from "./api";
import { invalidate, useTools } from "./data";
import { JsonInput, SchemaForm } from "./form";
import { initial, problems as problemsOf } from "./schema";
import type { Approval, Asking, Schema, Tool } from "./types";
import { Arguments, Judged } from "./judged";
import { Ago, Badge, Button, ErrorBox, Json, field, visible } from "./ui";
import { Link as WebLink } from "./link";

/** What a decision says besides its verdict. Cancel goes with deny: a form of a server is neither accepted nor declined. */
interface Ruling {
  remember?: string;
  if?: string;
  arguments?: unknown;
  reason?: string;
  cancel?: boolean;
}

interface Decided {
  mine: boolean;
  won: { verdict?: string; by?: string; reason?: string };
}

export function Risk({ tool }: { tool?: Tool }) {
  if (!tool) return null;
  const a = tool.annotations;
  return (
    <>
      {a.read_only ? <Badge tone="ok">read-only</Badge> : a.destructive !== false ? <Badge tone="bad" title="it may change or delete things">destructive</Badge> : <Badge tone="warn">changes things</Badge>}
      {a.open_world !== false && <Badge tone="warn" title="it reaches beyond its own data">open world</Badge>}
      {a.idempotent && <Badge>repeatable</Badge>}
    </>
  );
}

export function ApprovalCard({ approval: a, onDone }: { approval: Approval; onDone?: () => void }) {
  const tool = useTools().data?.items.find((t) => t.server === a.server && t.remote_name === a.remote_name);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [lost, setLost] = useState<Decided>();
  const [reason, setReason] = useState("");
  const [denying, setDenying] = useState(false);
  const [edited, setEdited] = useState<unknown>();
  const [editing, setEditing] = useState(false);
  const decide = async (verdict: "allow" | "deny", more: Ruling = {}) => {
    setBusy(true);
    setError(undefined);
    try {
      const d = await post<Decided>(`/api/v1/approvals/${encodeURIComponent(a.id)}/decide`, { verdict, ...more });
      if (!d.mine) setLost(d);
      else onDone?.();
      invalidate(["approvals", "runs"]);
    } catch (e) {
      setError(e);
      invalidate(["approvals"]);
    } finally {
      setBusy(false);
    }
  };
  if (lost)
    return (
      <div role="status" className="rounded-lg border border-line bg-sunk px-3 py-2 text-sm">
        Already decided{lost.won.by ? <> by <strong>{visible(lost.won.by)}</strong></> : ""}: {lost.won.verdict ?? "answered"}{lost.won.reason && `, ${visible(lost.won.reason)}`}.
      </div>
    );
  const args = editing && edited !== undefined ? { arguments: edited } : {};
  return (
    <article aria-label={`Decision about ${visible(a.name || a.kind)}`} data-approval={a.id} className="rounded-lg border border-warn/50 bg-panel">
      <header className="flex flex-wrap items-center gap-1.5 border-b border-line bg-warn-ground px-3 py-1.5">
        <span className="font-medium text-warn">{title(a)}</span>
        {a.kind === "approval" && <Risk tool={tool} />}
        <span className="ml-auto flex gap-2 text-xs text-warn">
          {a.expires && !a.expires.startsWith("0001") && <span>expires {new Date(a.expires).toLocaleString()}</span>}
          {a.since && <Ago time={a.since} />}
        </span>
      </header>
      <div className="flex flex-col gap-2 p-3">
        {a.reason && a.kind !== "input" && <p className="text-sm break-words text-dim">{visible(a.reason)}</p>}
        {a.foreign ? (
          <p className="text-sm text-dim">Somebody else wrote this run into the store, so it cannot be decided. See <code>tenon store show</code>.</p>
        ) : a.kind === "input" || a.kind === "sampling" ? (
          <Questions asking={a} busy={busy} decide={decide} />
        ) : (
          <>
            {a.kind === "client" && <Arguments value={a.arguments} />}
            {a.kind === "approval" && (editing ? <JsonInput rows={6} value={a.arguments ?? {}} onChange={setEdited} /> : <Arguments value={a.arguments} />)}
            {denying ? (
              <form className="flex flex-wrap gap-1.5" onSubmit={(e) => { e.preventDefault(); void decide("deny", reason ? { reason } : {}); }}>
                <input autoFocus aria-label="Reason, which the model is told" placeholder="why not? (the model is told)" className={`${field} min-w-40 flex-1`} value={reason} onChange={(e) => setReason(e.target.value)} />
                <Button type="submit" tone="danger" disabled={busy}>Deny</Button>
                <Button tone="quiet" onClick={() => setDenying(false)}>Back</Button>
              </form>
            ) : (
              <div className="flex flex-wrap gap-1.5">
                {a.kind !== "client" && <Button tone="primary" data-key="a" disabled={busy || (editing && edited === undefined)} onClick={() => void decide("allow", args)}>{a.kind === "limit" ? "Go on" : editing ? "Allow as edited" : "Allow once"}</Button>}
                {a.kind === "approval" && !editing && (
                  <>
                    <Button disabled={busy} title="this tool, whatever its arguments are, for the rest of the session" onClick={() => void decide("allow", { remember: "session" })}>Allow for the session</Button>
                    <Button disabled={busy} title="this tool, whatever its arguments are, until the grant is revoked" onClick={() => void decide("allow", { remember: "always" })}>Always allow</Button>
                    {a.narrower && (
                      <Button disabled={busy} title="this tool, for arguments that fulfil the condition below, until the grant is revoked" onClick={() => void decide("allow", { remember: "always", if: a.narrower!.if })}>Allow if…</Button>
                    )}
                  </>
                )}
                {a.kind === "approval" && <Button tone="quiet" onClick={() => { setEditing(!editing); setEdited(undefined); }}>{editing ? "Do not edit" : "Edit arguments"}</Button>}
                <Button tone="danger" data-key="d" className="ml-auto" disabled={busy} onClick={() => setDenying(true)}>{a.kind === "limit" ? "Stop here" : "Deny…"}</Button>
              </div>
            )}
            {a.kind === "approval" && a.narrower && !editing && !denying && (
              <p className="text-xs break-words text-dim">
                if <code className="break-all whitespace-pre-wrap">{visible(a.narrower.if)}</code>
                {a.narrower.any && a.narrower.any.length > 0 && <>, with any {visible(a.narrower.any.join(", "))}</>}
              </p>
            )}
          </>
        )}
        {error !== undefined && <ErrorBox error={error} />}
      </div>
    </article>
  );
}

function title(a: Asking): string {
  const what = a.server ? `${a.server}.${a.remote_name || a.name}` : a.name;
  switch (a.kind) {
    case "approval": return `May ${visible(what)} run?`;
    case "limit": return "A limit is reached. Go on?";
    case "sampling": return `May ${visible(a.server)} have an answer of the model?`;
    case "client": return `The client executes ${visible(a.remote_name || a.name)}; the run waits for its result`;
    case "input": return `${visible(a.server)} asks`;
  }
  return visible(what);
}

/** Words of a server, which are never ours: framed, and with its name. */
function Said({ server, children }: { server: string; children: ReactNode }) {
  return (
    <figure className="border-l-4 border-warn/60 pl-2">
      <figcaption className="text-xs text-dim">server <strong>{visible(server)}</strong> says</figcaption>
      <blockquote className="min-w-0 break-words">{children}</blockquote>
    </figure>
  );
}

/** Says who gets a secret. */
function Secret({ server, fields }: { server: string; fields: string[] }) {
  return (
    <p role="alert" className="rounded-md border border-bad/40 bg-bad-ground px-3 py-1.5 text-sm text-bad">
      Server <strong>{visible(server)}</strong> asks for a secret ({fields.map(visible).join(", ")}): it gets what you type. A server should not ask for one here; it is shown, and kept in the run&apos;s journal.
    </p>
  );
}

/** The forms that a server wants filled in, one or several. */
export function Questions({ asking, busy, decide }: { asking: Asking; busy: boolean; decide: (v: "allow" | "deny", more?: Ruling) => void }) {
  const requests = Object.entries(asking.requests ?? {});
  const forms = requests.filter(([, r]) => r.method === "elicitation/create" && r.params?.mode !== "url");
  const [values, setValues] = useState<Record<string, unknown>>(() => Object.fromEntries(forms.map(([k, r]) => [k, initial((r.params?.requestedSchema ?? {}) as Schema) ?? {}])));
  const [errors, setErrors] = useState<Record<string, Record<string, string>>>({});
  const send = () => {
    const found = Object.fromEntries(forms.map(([k, r]) => [k, problemsOf((r.params?.requestedSchema ?? {}) as Schema, values[k])]));
    setErrors(found);
    if (Object.values(found).some((f) => Object.keys(f).length > 0)) return;
    decide("allow", forms.length === 0 ? {} : { arguments: forms.length === 1 ? values[forms[0]![0]] : values });
  };
  return (
    <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); send(); }} noValidate>
      {requests.map(([k, r]) => (
        <div key={k} className="flex flex-col gap-2">
          {typeof r.params?.message === "string" && r.params.message !== "" && <Said server={asking.server}>{<Judged text={r.params.message} />}</Said>}
          {(asking.secrets?.[k]?.length ?? 0) > 0 && <Secret server={asking.server} fields={asking.secrets![k]!} />}
          {r.params?.mode === "url" && typeof r.params.url === "string" && (
            <p>Go to <WebLink href={r.params.url} text={visible(r.params.url)} />, and say here when it is done.</p>
          )}
          {r.method === "sampling/createMessage" && <Said server={asking.server}><Json value={r.params} whole /></Said>}
          {forms.some(([f]) => f === k) && (
            <SchemaForm secrets={asking.secrets?.[k]} server={asking.server} schema={{ type: "object", ...((r.params?.requestedSchema ?? {}) as Schema) }} value={values[k]} errors={errors[k]} onChange={(v) => setValues({ ...values, [k]: v })} />
          )}
        </div>
      ))}
      <div className="flex flex-wrap gap-1.5">
        <Button type="submit" tone="primary" data-key={forms.length ? undefined : "a"} disabled={busy}>{forms.length ? "Send" : asking.kind === "sampling" ? "Allow" : "Done"}</Button>
        <span className="ml-auto flex gap-1.5">
          {asking.kind === "input" && (
            <Button data-key="c" disabled={busy} title="the server is told that you closed the question and decided nothing" onClick={() => decide("deny", { cancel: true })}>Cancel</Button>
          )}
          <Button tone="danger" data-key="d" disabled={busy} title={asking.kind === "input" ? "the server is told that you said no" : undefined} onClick={() => decide("deny")}>Decline</Button>
        </span>
      </div>
    </form>
  );
}

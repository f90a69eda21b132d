// The servers as they are: state, why, since when; and what can be done about it.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, post, type Page } from "../api";
import { Checks } from "../checks";
import { Frames } from "../frames";
import { AddServer, RemoveServer } from "../serveredit";
import { invalidate, useMe, useServers } from "../data";
import type { Check, LogLine, ServerStatus, Stat, Unoffered } from "../types";
import { Ago, Badge, Button, Dialog, Empty, ErrorBox, Json, Phases, State, To, count, cx, millis, path, plural, visible } from "../ui";

export default function Servers({ name }: { name: string }) {
  const list = useServers();
  const items = list.data?.items ?? [];
  const owner = useMe().data?.owner;
  const [adding, setAdding] = useState(false);
  const stats = useQuery({ queryKey: ["runs", "stats", "servers", "1d"], queryFn: () => get<Page<Stat>>("/api/v1/stats/servers?since=1d"), staleTime: 30_000 });
  const shown = name ? items.filter((s) => s.name === name) : items;
  return (
    <div className="mx-auto flex max-w-5xl flex-col gap-3 p-3 md:p-5">
      <header className="flex items-center gap-3">
        <h1 className="text-lg font-semibold">Servers</h1>
        {name && <To to="/servers">all servers</To>}
        {owner && !name && <Button className="ml-auto" onClick={() => setAdding(true)}>Add a server</Button>}
      </header>
      {list.isError && <ErrorBox error={list.error} retry={() => void list.refetch()} />}
      {list.data && shown.length === 0 && <Empty>{name ? `There is no server ${name}.` : owner ? <>No server is connected yet. <button type="button" className="text-accent underline" onClick={() => setAdding(true)}>Add a server</button>, or in a shell: <code className="font-mono">tenon servers add NAME -- COMMAND</code></> : "No server is connected yet."}</Empty>}
      <ul className="grid grid-cols-1 gap-3 md:grid-cols-2">
        {shown.map((s) => <li key={s.name} className={cx("min-w-0", name && "md:col-span-2")}><Card server={s} whole={!!name} stat={stats.data?.items.find((x) => x.name === s.name)} /></li>)}
      </ul>
      {adding && <AddServer onClose={() => setAdding(false)} />}
    </div>
  );
}

function Card({ server: s, whole, stat }: { server: ServerStatus; whole: boolean; stat?: Stat }) {
  const owner = useMe().data?.owner;
  const [busy, setBusy] = useState("");
  const [error, setError] = useState<unknown>();
  const [logs, setLogs] = useState(false);
  const [removing, setRemoving] = useState(false);
  const [signIn, setSignIn] = useState("");
  const [checks, setChecks] = useState<Check[]>();
  const test = async () => {
    setBusy("test");
    setError(undefined);
    setChecks(undefined);
    try {
      setChecks((await post<Page<Check>>("/api/v1/doctor", { servers: [s.name] })).items.filter((c) => c.area !== "store"));
      invalidate(["servers", "tools"]);
    } catch (e) {
      setError(e);
    } finally {
      setBusy("");
    }
  };
  const act = async (what: string) => {
    setBusy(what);
    setError(undefined);
    try {
      const r = await post<{ url?: string }>(`/api/v1/servers/${encodeURIComponent(s.name)}/${what}`);
      if (what === "login" && r.url && /^https?:/.test(r.url)) {
        setSignIn(r.url); // browsers may keep the page from opening another
        window.open(r.url, "_blank", "noopener,noreferrer");
      }
      invalidate(["servers", "tools"]);
    } catch (e) {
      setError(e);
      invalidate(["servers"]);
    } finally {
      setBusy("");
    }
  };
  return (
    <article aria-label={`Server ${s.name}`} data-server={s.name} className="flex h-full flex-col rounded-lg border border-line bg-panel">
      <header className="flex flex-wrap items-center gap-2 px-3 pt-2.5">
        <h2 className="font-semibold"><To to={path("servers", s.name)} className="text-ink hover:underline">{visible(s.title || s.name)}</To></h2>
        <State state={s.state} />
        <Badge>{s.found || s.transport}</Badge>
        {s.protocol && <Badge title="the revision of the protocol that was agreed on">{s.protocol}</Badge>}
        {s.since && !s.since.startsWith("0001") && <span className="ml-auto text-xs text-dim" title="since then it is in this state">changed <Ago time={s.since} /></span>}
      </header>
      <div className="flex flex-1 flex-col gap-1.5 px-3 py-2 text-sm">
        <p className="truncate font-mono text-xs text-dim" title={visible(s.target)}>{visible(s.target)}</p>
        <p className="text-xs text-dim">
          {s.tools >= 0 ? <To to={`/tools?server=${encodeURIComponent(s.name)}`}>{plural(s.tools, "tool")}</To> : "tools not asked for yet"}
          {s.server && ` · ${visible(s.server)}`}
          {s.starts > 0 && ` · ${s.state === "ready" ? "connected" : "tried"} ${s.starts} ${s.starts === 1 ? "time" : "times"}`}{s.restarts > 0 && `, ${s.restarts} after a loss`}
        </p>
        {stat && stat.calls > 0 && (
          <dl aria-label="Calls of the last day" className="flex flex-wrap gap-x-4 gap-y-0.5 text-xs">
            <Figure name="calls in 24 h" value={count(stat.calls)} />
            <Figure name="errors" value={count(stat.errors)} bad={stat.errors > 0} />
            <Figure name="p50" value={millis(stat.p50_ms)} />
            <Figure name="p95" value={millis(stat.p95_ms)} />
            {stat.unknown > 0 && <Figure name="unknown" value={count(stat.unknown)} bad />}
          </dl>
        )}
        {s.capabilities && s.capabilities.length > 0 && <p className="flex flex-wrap gap-1" aria-label="Capabilities">{s.capabilities.slice(0, 20).map((c) => <Badge key={c}>{visible(c.slice(0, 60))}</Badge>)}</p>}
        {whole && s.not_offered && s.not_offered.length > 0 && <NotOffered name={s.name} list={s.not_offered} />}
        {s.error && (
          <p role="alert" className="rounded bg-bad-ground px-2 py-1 text-sm break-words text-bad">{visible(s.error.message)}
            {s.retry_at && !s.retry_at.startsWith("0001") && <span className="block text-xs">next try at {new Date(s.retry_at).toLocaleTimeString()}</span>}
          </p>
        )}
        {s.phases && s.phases.length > 0 && <Phases phases={s.phases} />}
        {signIn && s.state.startsWith("auth") && <p role="status" className="text-sm">Go on in the page that has opened, or <a className="text-accent underline" href={signIn} target="_blank" rel="noopener noreferrer">sign in here</a>, with a browser on the machine of tenon serve.</p>}
        {error !== undefined && <ErrorBox error={error} />}
        {checks && <div className="rounded-md border border-line"><Checks checks={checks} /></div>}
      </div>
      {owner && (
        <footer className="flex flex-wrap gap-1.5 border-t border-line px-3 py-1.5">
          <Button disabled={!!busy || s.state === "disabled"} onClick={() => void act("restart")}>{busy === "restart" ? "Connecting…" : s.starts ? "Restart" : "Connect"}</Button>
          <Button disabled={!!busy || s.state === "disabled"} title="go the way to it, and say what takes how long" onClick={() => void test()}>{busy === "test" ? "Testing…" : "Test"}</Button>
          {s.state === "disabled" ? <Button disabled={!!busy} onClick={() => void act("enable")}>Enable</Button> : <Button disabled={!!busy} onClick={() => void act("disable")}>Disable</Button>}
          {s.state.startsWith("auth") && <Button tone="primary" disabled={!!busy} onClick={() => void act("login")}>Log in</Button>}
          {whole ? <Button tone="danger" className="ml-auto" onClick={() => setRemoving(true)}>Remove</Button> : <Button tone="quiet" className="ml-auto" onClick={() => setLogs(true)}>Log</Button>}
        </footer>
      )}
      {whole && owner && <LogOrFrames name={s.name} />}
      {whole && <details className="border-t border-line px-3 py-2 text-sm"><summary>Status as JSON</summary><Json value={s} /></details>}
      {removing && <RemoveServer name={s.name} onClose={() => setRemoving(false)} />}
      {logs && <Dialog wide title={`Log of ${s.name}`} onClose={() => setLogs(false)}><Logs name={s.name} /></Dialog>}
    </article>
  );
}

const uses: Record<string, string> = { elicitation: "questions to a person", roots: "the folders it may work in", sampling: "requests to a model" };

/** What the server cannot count on here: it may leave out the tools that need it. */
function NotOffered({ name, list }: { name: string; list: Unoffered[] }) {
  return (
    <section aria-label="Not offered" className="rounded-md border border-line px-2 py-1.5 text-xs">
      <p className="text-dim">tenon does not offer this to the server, which may leave out tools that need it. To offer it, add the line to tenon.yaml and restart the server.</p>
      <ul className="mt-1 flex flex-col gap-0.5">
        {list.map((u) => (
          <li key={u.capability} className="break-words"><strong>{u.capability}</strong>{uses[u.capability] && ` (${uses[u.capability]})`}: <code className="font-mono break-all">{visible(`servers.${name}.${u.key}: ${u.value}`)}</code></li>
        ))}
      </ul>
    </section>
  );
}

function Figure({ name, value, bad }: { name: string; value: string; bad?: boolean }) {
  return <div className="flex gap-1"><dt className="text-dim">{name}</dt><dd className={cx("font-medium", bad && "text-bad")}>{value}</dd></div>;
}

function LogOrFrames({ name }: { name: string }) {
  const [tab, setTab] = useState<"log" | "frames">("log");
  return (
    <div className="border-t border-line">
      <div role="tablist" aria-label="Said" className="flex gap-1 px-2 pt-1.5">
        {(["log", "frames"] as const).map((t) => <Button key={t} role="tab" aria-selected={t === tab} tone="quiet" className={cx("text-xs", t === tab && "bg-sunk text-ink")} onClick={() => setTab(t)}>{t === "log" ? "Log" : "Protocol"}</Button>)}
      </div>
      <div role="tabpanel" aria-label={tab === "log" ? "Log" : "Protocol"}>{tab === "log" ? <Logs name={name} /> : <Frames server={name} />}</div>
    </div>
  );
}

function Logs({ name }: { name: string }) {
  const list = useQuery({ queryKey: ["servers", "logs", name], queryFn: () => get<Page<LogLine>>(`/api/v1/servers/${encodeURIComponent(name)}/logs?lines=500`), staleTime: 0 });
  if (list.isError) return <ErrorBox error={list.error} />;
  const lines = list.data?.items ?? [];
  if (list.data && lines.length === 0) return <Empty>It has said nothing.</Empty>;
  return (
    <ol tabIndex={0} aria-label="Log" className="max-h-80 overflow-auto p-2 font-mono text-xs">
      {lines.map((l, i) => (
        <li key={i} className="flex gap-2"><span className="shrink-0 text-dim">{new Date(l.time).toLocaleTimeString()}</span><span className={l.kind === "error" ? "text-bad" : l.kind === "state" ? "text-accent" : ""}>{visible(l.text)}</span></li>
      ))}
    </ol>
  );
}

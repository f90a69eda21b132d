// The clients of the gateway: where it can be reached, who uses it, and what the rules said to their calls.

import { useQuery } from "@tanstack/react-query";
import { get } from "../api";
import { useMe } from "../data";
import type { GatewayClient, GatewayClients, GatewayEndpoint } from "../types";
import { Ago, Badge, Button, Copy, Empty, ErrorBox, Panel, To, visible } from "../ui";

export default function Clients() {
  const owner = useMe().data?.owner;
  const list = useQuery({ queryKey: ["runs", "clients"], queryFn: () => get<GatewayClients>("/api/v1/gateway/clients"), enabled: !!owner, refetchInterval: 10_000 });
  if (!owner) return <Empty>Only the owner of this tenon may see the clients of the gateway.</Empty>;
  const clients = list.data?.items ?? [];
  return (
    <div className="mx-auto flex max-w-5xl flex-col gap-3 p-3 md:p-5">
      <header className="flex flex-wrap items-center gap-2">
        <h1 className="text-lg font-semibold">Clients of the gateway</h1>
        <Button className="ml-auto" disabled={list.isFetching} onClick={() => void list.refetch()}>Look again</Button>
      </header>
      {list.isError && <ErrorBox error={list.error} />}
      {list.data && (
        <>
          <Panel title="Endpoints"><Endpoints list={list.data.endpoints} /></Panel>
          <Panel title="Clients">
            {clients.length === 0 ? <Connect /> : <ul aria-label="Clients" className="divide-y divide-line">{clients.map((c, i) => <Client key={i} client={c} />)}</ul>}
          </Panel>
          {clients.length > 0 && <p className="text-xs text-dim">A client names itself, which proves nothing; the principal is what tenon checked. Each call is a run: <To to="/runs">the runs</To>. The list is forgotten when tenon ends.</p>}
        </>
      )}
    </div>
  );
}

function Endpoints({ list }: { list: GatewayEndpoint[] }) {
  if (list.length === 0) return <Empty>This tenon serves no MCP clients.</Empty>;
  return (
    <ul aria-label="Endpoints" className="divide-y divide-line">
      {list.map((e) => {
        const at = location.origin + e.path;
        return (
          <li key={e.path} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2 text-sm">
            <span className="font-mono text-xs break-all">{visible(at)}</span> <Copy text={at} />
            {e.mode && <Badge tone="accent">{e.mode}</Badge>}
            <span className="w-full text-xs break-words text-dim">{visible(has(e))}{e.description && <>: {visible(e.description)}</>}</span>
          </li>
        );
      })}
    </ul>
  );
}

/** The tools of an endpoint, in words. */
function has(e: GatewayEndpoint): string {
  const parts = (["servers", "groups", "tools"] as const).filter((k) => e[k]?.length).map((k) => `${k} ${e[k]!.join(", ")}`);
  return (parts.join("; ") || "all tools") + (e.exclude?.length ? ` without ${e.exclude.join(", ")}` : "");
}

function Client({ client: c }: { client: GatewayClient }) {
  const waits = c.calls - c.allowed - c.denied - c.asked;
  return (
    <li aria-label={`Client ${c.name || "without a name"}`} className="flex flex-col gap-1.5 px-3 py-2.5">
      <div className="flex flex-wrap items-center gap-2">
        <h3 className="font-medium break-all">{visible(c.name) || "without a name"}</h3>
        {c.version && <span className="text-xs break-all text-dim">{visible(c.version)}</span>}
        <Badge tone={c.era === "modern" ? "accent" : "dim"} title={`MCP ${c.protocol}`}>{c.era} {visible(c.protocol)}</Badge>
        {c.sessions > 0 && <Badge tone="ok">{c.sessions} connected</Badge>}
        <span className="ml-auto text-xs text-dim">seen <Ago time={c.seen} /></span>
      </div>
      <p className="text-xs break-words text-dim">principal <span className="font-mono text-ink">{visible(c.principal)}</span>, endpoint <span className="font-mono text-ink">{c.endpoint ? `/mcp/${visible(c.endpoint)}` : "/mcp"}</span>, since <Ago time={c.since} /></p>
      <div className="flex flex-wrap items-center gap-1.5 text-xs">
        <span>{c.calls === 1 ? "1 call" : `${c.calls} calls`}{c.last_call && <>, the last <Ago time={c.last_call} /></>}</span>
        {c.allowed > 0 && <Badge tone="ok">{c.allowed} allowed</Badge>}
        {c.asked > 0 && <Badge tone="warn">{c.asked} asked a person</Badge>}
        {c.denied > 0 && <Badge tone="bad">{c.denied} denied</Badge>}
        {waits > 0 && <Badge title="ended before the rules decided, such as a call of a tool that does not exist">{waits} undecided</Badge>}
      </div>
    </li>
  );
}

const commands = ["tenon gateway connect claude", "tenon gateway connect cursor", "tenon gateway connect vscode"];

function Connect() {
  return (
    <div className="flex flex-col gap-2 px-3 py-4 text-sm">
      <p>No client has used the gateway since tenon began. A program of this machine is connected with one command in a shell:</p>
      <ul aria-label="Commands" className="flex flex-col gap-1.5">
        {commands.map((c) => <li key={c} className="flex flex-wrap items-center gap-2"><code className="rounded bg-sunk px-2 py-1 font-mono text-xs">{c}</code><Copy text={c} /></li>)}
      </ul>
      <p className="text-dim"><code className="font-mono">tenon gateway connect --help</code> names the others. A client that speaks HTTP takes the address of an endpoint above, and the token of this <code className="font-mono">tenon serve</code>.</p>
    </div>
  );
}

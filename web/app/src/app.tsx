// The frame of all pages: who may see them, where one is, whether what is shown is
// up to date.

import { Component, type ReactNode, Suspense, lazy, useEffect, useState } from "react";
import { isAuth, setToken, token } from "./api";
import { unwatch, useLink, watch } from "./changes";
import { cache, useApprovals, useMe } from "./data";
import { Chat } from "./pages/chat";
import { Approvals } from "./pages/approvals";
import { Keys } from "./keys";
import { Palette } from "./palette";
import { useProposals } from "./proposals";
import { usePlace } from "./router";
import { Shell, pages } from "./shell";
import { Ago, Button, Empty, ErrorBox, Labelled, To, field } from "./ui";

const parts = {
  runs: () => import("./pages/runs"),
  run: () => import("./pages/run"),
  servers: () => import("./pages/servers"),
  tools: () => import("./pages/tools"),
  stats: () => import("./pages/stats"),
  prompts: () => import("./pages/prompts"),
  resources: () => import("./pages/resources"),
  workflows: () => import("./pages/workflows"),
  tables: () => import("./pages/tables"),
  clients: () => import("./pages/clients"),
  doctor: () => import("./pages/doctor"),
  settings: () => import("./pages/settings"),
};

/** Begins to load the page that the address names, before anything is drawn. */
export function loadPage(): void {
  const [page = "", id] = location.pathname.split("/").filter(Boolean);
  const part = page === "runs" && id ? "run" : page;
  if (part in parts) parts[part as keyof typeof parts]().catch(() => undefined); // its page says that
}

const Runs = lazy(parts.runs);
const RunPage = lazy(parts.run);
const Servers = lazy(parts.servers);
const Tools = lazy(parts.tools);
const Stats = lazy(parts.stats);
const Prompts = lazy(parts.prompts);
const Resources = lazy(parts.resources);
const Workflows = lazy(parts.workflows);
const Tables = lazy(parts.tables);
const Clients = lazy(parts.clients);
const Doctor = lazy(parts.doctor);
const Settings = lazy(parts.settings);

export function App() {
  const me = useMe();
  const refused = isAuth(me.error);
  useEffect(() => {
    if (!me.data) return;
    watch();
    return unwatch;
  }, [me.data]);
  if (refused || (!token() && me.isError)) return <Login error={token() ? me.error : undefined} />;
  if (me.isPending) return token() ? <Connecting /> : <Empty>Connecting…</Empty>;
  if (me.isError) return <ErrorBox error={me.error} retry={() => void me.refetch()} />;
  return <Frame />;
}

const currentOf = (page: string) => (page === "sessions" ? "" : page);

function Connecting() {
  const place = usePlace();
  return <Shell current={currentOf(place.page)}><main id="main"><Empty>Connecting…</Empty></main></Shell>;
}

function Frame() {
  const place = usePlace();
  const me = useMe();
  const waiting = useApprovals().data?.items.length ?? 0;
  const changes = useProposals().length;
  const current = currentOf(place.page);
  const title = pages.find((p) => p.page === current)?.title ?? "tenon";
  useEffect(() => {
    document.title = `${waiting ? `(${waiting}) ` : ""}${title} · ${me.data?.project || "tenon"}`;
  }, [title, waiting, me.data]);
  return (
    <>
      <Shell current={current} project={me.data?.project || "tenon"} who={`${me.data?.principal} · ${me.data?.version}`}
        waits={{ settings: [changes, "changes wait for you"], approvals: [waiting, "wait for you"] }}>
        <LinkBar />
        <main id="main" tabIndex={-1} className="min-h-0 flex-1 overflow-auto outline-none">
          <Guard key={place.page + place.id}>
            <Suspense fallback={<Empty>Loading…</Empty>}><Current page={place.page} id={place.id} /></Suspense>
          </Guard>
        </main>
      </Shell>
      <Palette />
      <Keys />
    </>
  );
}

function Current({ page, id }: { page: string; id: string }) {
  switch (page) {
    case "":
      return <Chat session="" />;
    case "sessions":
      return <Chat session={id} />;
    case "runs":
      return id ? <RunPage id={id} /> : <Runs />;
    case "approvals":
      return <Approvals />;
    case "servers":
      return <Servers name={id} />;
    case "tools":
      return <Tools name={id} />;
    case "prompts":
      return <Prompts id={id} />;
    case "resources":
      return <Resources id={id} />;
    case "workflows":
      return <Workflows name={id} />;
    case "tables":
      return <Tables />;
    case "clients":
      return <Clients />;
    case "doctor":
      return <Doctor />;
    case "stats":
      return <Stats />;
    case "settings":
      return <Settings />;
  }
  return <Empty>There is no page here. <To to="/">Go to the chat.</To></Empty>;
}

/** Says when what is shown may be out of date, and since when. */
function LinkBar() {
  const link = useLink();
  if (link.link !== "lost" && link.link !== "refused") return null;
  return (
    <div role="status" className="flex flex-wrap items-center gap-2 border-b border-warn/40 bg-warn-ground px-3 py-1.5 text-sm text-warn">
      <span>
        {link.link === "lost" ? "No connection to tenon serve: what is shown is as of " : "The token is not valid any more: what is shown is as of "}
        <Ago time={link.since} />. {link.link === "lost" && "It is tried again."}
      </span>
      {link.link === "refused" && <Button onClick={() => { setToken(""); location.reload(); }}>Sign in</Button>}
    </div>
  );
}

function Login({ error }: { error: unknown }) {
  const [text, setText] = useState("");
  return (
    <main className="mx-auto flex h-full max-w-md flex-col justify-center gap-4 p-6">
      <h1 className="flex items-center gap-2 text-xl font-semibold"><img src="/icon.svg" alt="" className="size-7" /> tenon</h1>
      <p className="text-dim">The workbench asks for the token of this <code className="font-mono">tenon serve</code>. It prints an address with the token in it when it starts; open that one, or paste the token here.</p>
      <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); setToken(text.trim()); void cache.resetQueries(); }}>
        <Labelled label="Token" error={error ? (error as Error).message : undefined}>
          {(id) => <input id={id} type="password" autoComplete="off" autoFocus className={field} value={text} onChange={(e) => setText(e.target.value)} />}
        </Labelled>
        <Button type="submit" tone="primary" disabled={!text.trim()}>Sign in</Button>
      </form>
    </main>
  );
}

/** Keeps a page that fails from taking the others with it. */
class Guard extends Component<{ children: ReactNode }, { error?: unknown }> {
  state: { error?: unknown } = {};
  static getDerivedStateFromError(error: unknown) {
    return { error };
  }
  render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    // A part that was not loaded is never asked for again by itself; another version of tenon has others.
    if (error instanceof TypeError && /import|module/i.test(error.message)) return <ErrorBox error={new Error("This page could not be loaded: tenon serve cannot be reached, or is another version by now.")} retry={() => location.reload()} />;
    return <ErrorBox error={error} retry={() => this.setState({ error: undefined })} />;
  }
}

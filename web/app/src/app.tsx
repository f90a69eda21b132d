// The frame of all pages: who may see them, where one is, whether what is shown is
// up to date.

import { Component, type ReactNode, Suspense, lazy, useEffect, useRef, useState } from "react";
import { isAuth, setToken, token } from "./api";
import { unwatch, useLink, watch } from "./changes";
import { cache, useApprovals, useMe } from "./data";
import { Chat } from "./pages/chat";
import { Approvals } from "./pages/approvals";
import { Icon, type IconName } from "./icons";
import { Keys } from "./keys";
import { Palette } from "./palette";
import { useProposals } from "./proposals";
import { usePlace } from "./router";
import { Ago, Button, Empty, ErrorBox, Labelled, To, cx, field } from "./ui";

const Runs = lazy(() => import("./pages/runs"));
const RunPage = lazy(() => import("./pages/run"));
const Servers = lazy(() => import("./pages/servers"));
const Tools = lazy(() => import("./pages/tools"));
const Stats = lazy(() => import("./pages/stats"));
const Prompts = lazy(() => import("./pages/prompts"));
const Resources = lazy(() => import("./pages/resources"));
const Workflows = lazy(() => import("./pages/workflows"));
const Tables = lazy(() => import("./pages/tables"));
const Clients = lazy(() => import("./pages/clients"));
const Doctor = lazy(() => import("./pages/doctor"));
const Settings = lazy(() => import("./pages/settings"));

export const pages: { page: string; title: string; icon: IconName }[] = [
  { page: "", title: "Chat", icon: "chat" },
  { page: "runs", title: "Runs", icon: "runs" },
  { page: "approvals", title: "Approvals", icon: "approvals" },
  { page: "servers", title: "Servers", icon: "servers" },
  { page: "tools", title: "Tools", icon: "tools" },
  { page: "prompts", title: "Prompts", icon: "prompts" },
  { page: "resources", title: "Resources", icon: "resources" },
  { page: "workflows", title: "Workflows", icon: "workflows" },
  { page: "tables", title: "Tables", icon: "tables" },
  { page: "clients", title: "Clients", icon: "clients" },
  { page: "stats", title: "Analytics", icon: "stats" },
  { page: "doctor", title: "Doctor", icon: "doctor" },
  { page: "settings", title: "Settings", icon: "settings" },
];

export function App() {
  const me = useMe();
  const refused = isAuth(me.error);
  useEffect(() => {
    if (!me.data) return;
    watch();
    return unwatch;
  }, [me.data]);
  if (refused || (!token() && me.isError)) return <Login error={token() ? me.error : undefined} />;
  if (me.isPending) return <Empty>Connecting…</Empty>;
  if (me.isError) return <ErrorBox error={me.error} retry={() => void me.refetch()} />;
  return <Frame />;
}

function Frame() {
  const place = usePlace();
  const me = useMe();
  const waiting = useApprovals().data?.items.length ?? 0;
  const changes = useProposals().length;
  const current = place.page === "sessions" ? "" : place.page;
  const title = pages.find((p) => p.page === current)?.title ?? "tenon";
  useEffect(() => {
    document.title = `${waiting ? `(${waiting}) ` : ""}${title} · ${me.data?.project || "tenon"}`;
  }, [title, waiting, me.data]);
  // On a narrow screen the pages are a line that scrolls: the current one is in sight.
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    void nav.current?.querySelector("[aria-current=page]")?.scrollIntoView({ block: "nearest", inline: "nearest" }); // in newer browsers a promise, which is no clean-up
  }, [current]);
  return (
    <div className="flex h-full flex-col md:flex-row">
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-panel focus:p-2">Skip to the content</a>
      <nav ref={nav} aria-label="Pages" className="flex shrink-0 items-center gap-0.5 overflow-x-auto border-b border-line bg-panel px-2 py-1 md:w-44 md:flex-col md:items-stretch md:overflow-x-visible md:border-r md:border-b-0 md:px-2 md:py-3">
        <To to="/" className="hidden items-center gap-2 px-2 pb-3 font-semibold text-ink md:flex">
          <img src="/icon.svg" alt="" className="size-6" />
          <span className="truncate">{me.data?.project || "tenon"}</span>
        </To>
        {pages.map((p) => (
          <To key={p.page} to={`/${p.page}`} aria-current={p.page === current ? "page" : undefined}
            className={cx("relative flex items-center gap-2 rounded-md px-2 py-1 whitespace-nowrap max-[520px]:flex-col max-[520px]:gap-0 max-[520px]:px-1.5 max-[520px]:text-[11px]", p.page === current ? "bg-accent-ground font-medium text-accent" : "text-dim hover:bg-sunk hover:text-ink")}>
            <Icon name={p.icon} />
            <span>{p.title}</span>
            {p.page === "settings" && changes > 0 && <span className="ml-auto rounded-full bg-warn-ground px-1.5 text-xs font-semibold text-warn max-[520px]:absolute max-[520px]:top-0 max-[520px]:right-0">{changes}<span className="sr-only"> changes wait for you</span></span>}
            {p.page === "approvals" && waiting > 0 && <span className="ml-auto rounded-full bg-warn-ground px-1.5 text-xs font-semibold text-warn max-[520px]:absolute max-[520px]:top-0 max-[520px]:right-0">{waiting}<span className="sr-only"> wait for you</span></span>}
          </To>
        ))}
        <div className="mt-auto hidden flex-col gap-1 px-2 pt-3 text-xs text-dim md:flex">
          <span>{me.data?.principal} · {me.data?.version}</span>
          <span><kbd className="font-sans">Ctrl K</kbd>: go anywhere</span>
          <span><kbd className="font-sans">?</kbd>: keys</span>
        </div>
      </nav>
      <div className="flex min-h-0 min-w-0 flex-1 flex-col">
        <LinkBar />
        <main id="main" tabIndex={-1} className="min-h-0 flex-1 overflow-auto outline-none">
          <Guard key={place.page + place.id}>
            <Suspense fallback={<Empty>Loading…</Empty>}><Current page={place.page} id={place.id} /></Suspense>
          </Guard>
        </main>
      </div>
      <Palette />
      <Keys />
    </div>
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

// The frame around every page: what is where. It is also in index.html as it is built (vite.config.ts), so that a
// browser paints it before it has read a script.

import { type ReactNode, useEffect, useRef } from "react";
import { Icon, type IconName } from "./icons";
import { To, cx } from "./ui";

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

interface Props {
  current?: string; // the page, or nothing where it is not known yet
  project?: string;
  who?: string; // the principal and the version
  waits?: Record<string, [number, string]>; // by page: how many of what
  inert?: boolean; // no script is there to follow a click
  children?: ReactNode;
}

export function Shell({ current, project = "tenon", who, waits = {}, inert, children }: Props) {
  // On a narrow screen the pages are a line that scrolls: the current one is in sight.
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    void nav.current?.querySelector("[aria-current=page]")?.scrollIntoView({ block: "nearest", inline: "nearest" }); // in newer browsers a promise, which is no clean-up
  }, [current]);
  return (
    <div inert={inert} className="flex h-full flex-col md:flex-row">
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-panel focus:p-2">Skip to the content</a>
      <nav ref={nav} aria-label="Pages" className="flex shrink-0 items-center gap-0.5 overflow-x-auto border-b border-line bg-panel px-2 py-1 md:w-44 md:flex-col md:items-stretch md:overflow-x-visible md:border-r md:border-b-0 md:px-2 md:py-3">
        <To to="/" className="hidden items-center gap-2 px-2 pb-3 font-semibold text-ink md:flex">
          <img src="/icon.svg" alt="" className="size-6" />
          <span className="truncate">{project}</span>
        </To>
        {pages.map((p) => (
          <To key={p.page} to={`/${p.page}`} aria-current={p.page === current ? "page" : undefined}
            className={cx("relative flex items-center gap-2 rounded-md px-2 py-1 whitespace-nowrap max-[520px]:flex-col max-[520px]:gap-0 max-[520px]:px-1.5 max-[520px]:text-[11px]", p.page === current ? "bg-accent-ground font-medium text-accent" : "text-dim hover:bg-sunk hover:text-ink")}>
            <Icon name={p.icon} />
            <span>{p.title}</span>
            {(waits[p.page]?.[0] ?? 0) > 0 && <span className="ml-auto rounded-full bg-warn-ground px-1.5 text-xs font-semibold text-warn max-[520px]:absolute max-[520px]:top-0 max-[520px]:right-0">{waits[p.page]![0]}<span className="sr-only"> {waits[p.page]![1]}</span></span>}
          </To>
        ))}
        <div className="mt-auto hidden flex-col gap-1 px-2 pt-3 text-xs text-dim md:flex">
          {who && <span>{who}</span>}
          <span><kbd className="font-sans">Ctrl K</kbd>: go anywhere</span>
          <span><kbd className="font-sans">?</kbd>: keys</span>
        </div>
      </nav>
      <div className="flex min-h-0 min-w-0 flex-1 flex-col">{children}</div>
    </div>
  );
}

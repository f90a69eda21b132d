// What is worth knowing of a tool before a model does, for each provider's rules.

import { useQuery } from "@tanstack/react-query";
import { get, type Page } from "./api";
import type { Finding, ToolDetail } from "./types";
import { Badge, type BadgeTone, ErrorBox, Panel, visible } from "./ui";

const tones: Record<Finding["level"], BadgeTone> = { error: "bad", warn: "warn", info: "dim" };

export function Lint({ tool }: { tool: ToolDetail }) {
  const list = useQuery({ queryKey: ["tools", "lint", tool.server, tool.remote_name], queryFn: () => get<Page<Finding>>(`/api/v1/lint?tool=${encodeURIComponent(tool.offered ? tool.name : `${tool.server}.${tool.remote_name}`)}`) });
  const by = new Map<string, Finding[]>();
  for (const f of list.data?.items ?? []) by.set(f.provider ?? "", [...(by.get(f.provider ?? "") ?? []), f]);
  return (
    <Panel title="As models take it">
      {list.isError && <ErrorBox error={list.error} />}
      {list.data && by.size === 0 && <p className="p-3 text-sm text-dim">Every provider takes it as it is.</p>}
      <ul aria-label="Findings" className="divide-y divide-line">
        {[...by].map(([provider, found]) => (
          <li key={provider} className="flex flex-col gap-1 px-3 py-2 text-sm">
            <span className="font-medium">{provider ? visible(provider) : "every model"}</span>
            {found.slice(0, 50).map((f, i) => (
              <span key={i} className="flex flex-wrap items-baseline gap-2"><Badge tone={tones[f.level]}>{f.level}</Badge>{f.pointer && <span className="font-mono text-xs break-all text-dim">{visible(f.pointer)}</span>}<span className="min-w-0 break-words">{visible(f.message)}</span></span>
            ))}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

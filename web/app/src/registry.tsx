// Servers of the configured registry: searched, and chosen to be added in the form.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get } from "./api";
import type { RegistryEntry, RegistryResults, RegistrySetup } from "./types";
import { Link } from "./link";
import { Badge, Button, ErrorBox, Labelled, Spinner, field, visible } from "./ui";

/** A way to run a server of the registry. */
export interface Choice {
  registry: string;
  name: string;
  version: string;
  setup: RegistrySetup;
}

/** The values of a text that are left to be filled in, such as <folder>. */
export const blanks = (text: string) => [...new Set(text.match(/<[^<>\n]{1,200}>/g) ?? [])];

export function FromRegistry({ onChoose }: { onChoose: (c: Choice) => void }) {
  const [typed, setTyped] = useState("");
  const [words, setWords] = useState("");
  const found = useQuery({ queryKey: ["config", "registry", words], queryFn: () => get<RegistryResults>(`/api/v1/config/registry?search=${encodeURIComponent(words)}`), retry: false, staleTime: 60_000 });
  const search = () => (typed.trim() === words ? void found.refetch() : setWords(typed.trim()));
  if (found.data && !found.data.registry) return (
    <div className="text-sm text-dim">
      <p>No registry is configured. Write the address of one into the project's file, and agree to the change:</p>
      <pre tabIndex={0} className="mt-1 overflow-x-auto font-mono text-xs text-ink">{"registry:\n  url: https://registry.modelcontextprotocol.io"}</pre>
    </div>
  );
  return (
    <div className="flex flex-col gap-2">
      <Labelled label="Search" hint={found.data?.registry && `in ${visible(found.data.registry)}`}>
        {(id) => (
          <div className="flex gap-2">
            <input id={id} type="search" maxLength={100} className={field} placeholder="a word of the server's name" value={typed} onChange={(e) => setTyped(e.target.value)} onKeyDown={(e) => { if (e.key === "Enter") { e.preventDefault(); search(); } }} />
            <Button onClick={search} disabled={found.isFetching}>Search</Button>
          </div>
        )}
      </Labelled>
      {found.isFetching && <p role="status" className="flex items-center gap-2 text-sm text-dim"><Spinner /> Asking the registry…</p>}
      {found.isError && <ErrorBox error={found.error} />}
      {found.data?.items.length === 0 && <p className="text-sm text-dim">Nothing was found.</p>}
      <ul aria-label="Servers of the registry" className="flex flex-col divide-y divide-line">
        {found.data?.items.map((e, i) => <Row key={i} e={e} onChoose={(setup) => onChoose({ registry: found.data!.registry!, name: e.name, version: e.version ?? "", setup })} />)}
      </ul>
      {found.data?.more && <p className="text-xs text-dim">There are more; more words find fewer.</p>}
    </div>
  );
}

function Row({ e, onChoose }: { e: RegistryEntry; onChoose: (s: RegistrySetup) => void }) {
  const how = (s: RegistrySetup) => (s.transport === "stdio" ? (s.command?.[0] ?? "") : s.transport);
  return (
    <li className="flex flex-col gap-1 py-2 text-sm">
      <p className="flex flex-wrap items-baseline gap-x-2">
        <strong className="font-medium break-all">{visible((e.title || e.name).slice(0, 200))}</strong>
        {e.title && <span className="font-mono text-xs break-all text-dim">{visible(e.name.slice(0, 200))}</span>}
        {e.version && <span className="text-xs text-dim">{visible(e.version.slice(0, 40))}</span>}
        {e.status && e.status !== "active" && <Badge tone="warn">{visible(e.status.slice(0, 40))}</Badge>}
        {e.configured && <Badge tone="ok">configured as {visible(e.configured.join(", "))}</Badge>}
      </p>
      {e.description && <p className="text-xs break-words text-dim">{visible(e.description.slice(0, 500))}</p>}
      <div className="flex flex-wrap items-center gap-2">
        {e.setups.slice(0, 6).map((s, i) => <Button key={i} aria-label={`Use ${visible(e.name.slice(0, 200))} with ${visible(how(s))}`} onClick={() => onChoose(s)}>Use with {visible(how(s))}</Button>)}
        {e.setups.length === 0 && <span className="text-xs text-dim">It cannot be run from here.</span>}
        {e.repository && <span className="text-xs [&_a]:text-accent [&_a]:underline"><Link href={e.repository} text="Source" /></span>}
      </div>
    </li>
  );
}

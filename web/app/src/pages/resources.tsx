// The resources of servers, and the templates that make more of them: read, previewed, attached to a question.

import { useEffect, useRef, useState } from "react";
import { post, type Page } from "../api";
import { nothing } from "../attach";
import { Block, isDrawn } from "../callcard";
import { CompletedInput } from "../completed";
import { useOffers } from "../data";
import { keepDraft } from "../drafts";
import { save, sizeOf } from "../files";
import { Choice, Choices, Listed } from "../listed";
import { go } from "../router";
import type { Content, Resource } from "../types";
import { expand, variables } from "../uritemplate";
import { Badge, Button, Copy, Empty, ErrorBox, Labelled, Panel, Spinner, To, bytes, path, visible } from "../ui";

const keyOf = (r: Resource) => `${r.server}/${r.uri ?? r.uriTemplate}`;
const most = 500; // entries that are listed at a time

export default function Resources({ id }: { id: string }) {
  const list = useOffers<Resource>("resources");
  const [words, setWords] = useState("");
  const all = list.data?.items ?? [];
  const wanted = words.toLowerCase().split(/\s+/);
  const found = all.filter((r) => wanted.every((w) => `${r.server} ${r.name} ${r.uri ?? r.uriTemplate} ${r.description ?? ""}`.toLowerCase().includes(w)));
  const chosen = all.find((r) => keyOf(r) === id);
  return (
    <Listed chosen={id !== ""} all="/resources" name="resources"
      list={
        <Choices title="Resources" words={words} onWords={setWords} query={list} count={found.length} none={all.length === 0 ? "No server has a resource." : "Nothing was found."}>
          {found.slice(0, most).map((r) => <Choice key={keyOf(r)} to={`/resources/${encodeURIComponent(keyOf(r))}`} current={r === chosen} name={r.uriTemplate ? `${r.name} (template)` : r.name} server={r.server} below={r.uri ?? r.uriTemplate ?? ""} />)}
          {found.length > most && <li className="p-3 text-xs text-dim">{found.length - most} more: filter them.</li>}
        </Choices>
      }>
      {chosen ? <Detail key={id} resource={chosen} /> : <Empty>{id && list.data && list.asked.length === 0 ? "No server has this resource." : "Choose a resource."}</Empty>}
    </Listed>
  );
}

interface Read {
  uri: string;
  contents: Content[];
}

function Detail({ resource: r }: { resource: Resource }) {
  const names = variables(r.uriTemplate ?? "");
  const [values, setValues] = useState<Record<string, string>>({});
  const [read, setRead] = useState<Read>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const uri = r.uri ?? expand(r.uriTemplate ?? "", values);
  const fetchIt = async () => {
    setBusy(true);
    setError(undefined);
    setRead(undefined);
    try {
      const { items } = await post<Page<Content>>("/api/v1/resources/read", { server: r.server, uri });
      setRead({ uri, contents: items });
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  // A resource without blanks is read when it is chosen: that is what one chooses it for.
  const begin = useRef(fetchIt);
  useEffect(() => { if (r.uri) void begin.current(); }, [r.uri]);
  const attach = () => {
    keepDraft("", { text: "", attached: { ...nothing, resources: [{ server: r.server, uri, name: r.name }] } });
    go("/");
  };
  return (
    <>
      <header className="flex flex-wrap items-center gap-2">
        <h2 className="text-lg font-semibold break-words">{visible(r.name)}</h2>
        {r.uriTemplate && <Badge tone="accent">template</Badge>}
        {r.mimeType && <Badge>{visible(r.mimeType)}</Badge>}
      </header>
      <p className="text-xs text-dim"><span className="font-mono break-all">{visible(r.uri ?? r.uriTemplate ?? "")}</span> of server <To to={path("servers", r.server)}>{visible(r.server)}</To></p>
      {r.description && <p className="text-sm whitespace-pre-wrap break-words">{visible(r.description)}</p>}
      <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); void fetchIt(); }}>
        {names.map((n) => (
          <Labelled key={n} label={visible(n)}>
            {(id) => <CompletedInput id={id} of={{ server: r.server, template: r.uriTemplate }} name={n} values={values} onChange={(v) => setValues({ ...values, [n]: v })} />}
          </Labelled>
        ))}
        {r.uriTemplate && <p className="text-xs text-dim">The URI: <output className="font-mono break-all text-ink">{visible(uri)}</output></p>}
        <div className="flex flex-wrap gap-1.5">
          <Button type="submit" tone="primary" disabled={busy}>{busy && <Spinner />} Read</Button>
          <Button onClick={attach}>Attach to a new chat</Button>
          <Copy label="Copy as CLI" text={`tenon resources read ${quoted(r.server)} ${quoted(uri)}`} />
        </div>
      </form>
      {error !== undefined && <ErrorBox error={error} />}
      {read && <Contents read={read} />}
    </>
  );
}

function Contents({ read }: { read: Read }) {
  return (
    <Panel title="Contents" actions={<span className="font-mono text-xs break-all text-dim">{visible(read.uri)}</span>}>
      {read.contents.length === 0 && <Empty>The server returned nothing.</Empty>}
      <ol aria-label="Contents" className="divide-y divide-line">
        {read.contents.map((c, i) => {
          const text = c.resource?.text ?? c.text;
          const blob = c.resource?.blob ?? c.data;
          return (
            <li key={i} className="flex min-w-0 flex-col gap-1.5 p-3">
              <span className="flex items-center gap-2 text-xs text-dim">
                {(c.resource?.mimeType ?? c.mimeType) && <Badge>{visible((c.resource?.mimeType ?? c.mimeType)!)}</Badge>}
                {blob !== undefined && <span>{bytes(sizeOf(blob))}</span>}
                {text !== undefined && <Copy text={text} />}
                {blob !== undefined && isDrawn(c) && <Button tone="quiet" onClick={() => save(blob, c.resource?.uri ?? c.uri ?? "resource")}>Download</Button>}
              </span>
              <Block c={c} />
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}

/** A word of a shell. */
const quoted = (word: string) => (/^[\w./:@-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

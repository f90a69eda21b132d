// The prompts of servers: what they ask for, and what a server makes of them.

import { useState } from "react";
import { Block } from "../callcard";
import { CompletedInput } from "../completed";
import { useOffers } from "../data";
import { keepDraft } from "../drafts";
import { Choice, Choices, Listed } from "../listed";
import { type PromptMessages, blocksOf, fillPrompt, textOf } from "../prompt";
import { go } from "../router";
import type { Prompt } from "../types";
import { Badge, Button, Copy, Empty, ErrorBox, Labelled, Panel, Spinner, To, path, visible } from "../ui";

const pathOf = (p: Prompt) => path("prompts", p.server, p.name);

export default function Prompts({ id }: { id: string }) {
  const list = useOffers<Prompt>("prompts");
  const [words, setWords] = useState("");
  const all = list.data?.items ?? [];
  const wanted = words.toLowerCase().split(/\s+/);
  const found = all.filter((p) => wanted.every((w) => `${p.server} ${p.name} ${p.title ?? ""} ${p.description ?? ""}`.toLowerCase().includes(w)));
  const chosen = all.find((p) => `${p.server}/${p.name}` === id);
  return (
    <Listed chosen={id !== ""} all="/prompts" name="prompts"
      list={
        <Choices title="Prompts" words={words} onWords={setWords} query={list} count={found.length} none={all.length === 0 ? "No server offers a prompt." : "Nothing was found."}>
          {found.map((p) => <Choice key={`${p.server} ${p.name}`} to={pathOf(p)} current={p === chosen} name={p.title || p.name} server={p.server} below={p.description ?? ""} />)}
        </Choices>
      }>
      {chosen ? <Detail key={id} prompt={chosen} /> : <Empty>{id && list.data && list.asked.length === 0 ? "No server has this prompt." : "Choose a prompt. In the chat, / lists them, too."}</Empty>}
    </Listed>
  );
}

function Detail({ prompt }: { prompt: Prompt }) {
  const [values, setValues] = useState<Record<string, string>>({});
  const [made, setMade] = useState<PromptMessages>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const fill = async () => {
    setBusy(true);
    setError(undefined);
    setMade(undefined);
    try {
      setMade(await fillPrompt(prompt, values));
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  const ask = () => {
    keepDraft("", { text: textOf(made!) });
    go("/");
  };
  return (
    <>
      <header>
        <h2 className="text-lg font-semibold break-words">{visible(prompt.title || prompt.name)}</h2>
        <p className="text-xs text-dim">prompt <span className="font-mono">{visible(prompt.name)}</span> of server <To to={path("servers", prompt.server)}>{visible(prompt.server)}</To></p>
      </header>
      {prompt.description && <p className="text-sm whitespace-pre-wrap break-words">{visible(prompt.description)}</p>}
      <Panel title="Arguments">
        <form className="flex flex-col gap-3 p-3" onSubmit={(e) => { e.preventDefault(); void fill(); }}>
          {(prompt.arguments ?? []).length === 0 && <p className="text-sm text-dim">It takes no arguments.</p>}
          {(prompt.arguments ?? []).map((a) => (
            <Labelled key={a.name} label={<>{visible(a.title || a.name)}{a.required && " *"}</>} hint={a.description && visible(a.description)}>
              {(id) => <CompletedInput id={id} of={{ server: prompt.server, prompt: prompt.name }} name={a.name} required={a.required} values={values} onChange={(v) => setValues({ ...values, [a.name]: v })} />}
            </Labelled>
          ))}
          <div className="flex gap-1.5"><Button type="submit" tone="primary" disabled={busy}>{busy && <Spinner />} Preview</Button></div>
        </form>
        {error !== undefined && <ErrorBox error={error} />}
      </Panel>
      {made && (
        <Panel title="Messages" actions={<><Copy text={textOf(made)} /><Button tone="primary" onClick={ask}>Use in a new chat</Button></>}>
          <ol aria-label="Messages" className="divide-y divide-line">
            {(made.messages ?? []).map((m, i) => (
              <li key={i} className="flex flex-col gap-1.5 p-3"><span><Badge>{visible(m.role)}</Badge></span>{blocksOf(m.content).map((c, n) => <Block key={n} c={c} />)}</li>
            ))}
          </ol>
          {(made.messages ?? []).length === 0 && <Empty>The server returned no message.</Empty>}
        </Panel>
      )}
    </>
  );
}

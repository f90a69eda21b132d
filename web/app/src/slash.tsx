// Prompts of servers as commands: "/" lists them, one with arguments asks for them.

import { useState } from "react";
import { CompletedInput } from "./completed";
import { useOffers } from "./data";
import type { Prompt } from "./types";
import { fillPrompt, textOf } from "./prompt";
import { Button, Dialog, ErrorBox, Labelled, visible } from "./ui";

export interface Commands {
  open: boolean;
  found: Prompt[];
  error?: unknown;
}

export function usePromptCommands(text: string): Commands {
  const open = text.startsWith("/") && !text.includes(" ") && !text.includes("\n");
  const list = useOffers<Prompt>("prompts", open);
  const words = text.slice(1).toLowerCase();
  const found = open ? (list.data?.items ?? []).filter((p) => `${p.server}:${p.name} ${p.title ?? ""}`.toLowerCase().includes(words)).slice(0, 12) : [];
  return { open: open && found.length > 0, found, error: open ? list.error : undefined };
}

export function SlashMenu({ prompts, onText }: { prompts: Commands; onText: (t: string) => void }) {
  const [asked, setAsked] = useState<Prompt>();
  const [error, setError] = useState<unknown>();
  const take = async (p: Prompt, args: Record<string, string>) => {
    setError(undefined);
    try {
      const r = await fillPrompt(p, args);
      setAsked(undefined);
      onText(textOf(r));
    } catch (e) {
      setError(e);
    }
  };
  return (
    <>
      {error !== undefined && !asked && <ErrorBox error={error} />}
      {prompts.open && (
        <ul aria-label="Prompts" className="absolute bottom-full z-10 mb-1 max-h-72 w-full overflow-auto rounded-lg border border-line bg-panel p-1 shadow-lg">
          {prompts.found.map((p) => (
            <li key={`${p.server}:${p.name}`}>
              <button type="button" className="w-full rounded-md px-2 py-1 text-left hover:bg-sunk focus:bg-sunk" onClick={() => (p.arguments?.length ? setAsked(p) : void take(p, {}))}>
                <span className="font-mono text-sm">/{visible(p.server)}:{visible(p.name)}</span>
                <span className="block truncate text-xs text-dim">{visible(p.description ?? p.title ?? "")}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      {asked && <AskArguments prompt={asked} error={error} onClose={() => setAsked(undefined)} onDone={(args) => void take(asked, args)} />}
    </>
  );
}

function AskArguments({ prompt, error, onClose, onDone }: { prompt: Prompt; error: unknown; onClose: () => void; onDone: (a: Record<string, string>) => void }) {
  const [values, setValues] = useState<Record<string, string>>({});
  return (
    <Dialog title={`/${visible(prompt.server)}:${visible(prompt.name)}`} onClose={onClose}>
      <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); onDone(values); }}>
        {prompt.arguments!.map((a) => (
          <Labelled key={a.name} label={<>{visible(a.name)}{a.required && " *"}</>} hint={a.description && visible(a.description)}>
            {(id) => <CompletedInput id={id} of={{ server: prompt.server, prompt: prompt.name }} name={a.name} required={a.required} values={values} onChange={(v) => setValues({ ...values, [a.name]: v })} />}
          </Labelled>
        ))}
        {error !== undefined && <ErrorBox error={error} />}
        <Button type="submit" tone="primary">Take the prompt</Button>
      </form>
    </Dialog>
  );
}

// The keys of model providers that tenon keeps for its owner, outside of every project.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { get, post, request, type Page } from "./api";
import { invalidate, useModels, useTools } from "./data";
import type { Model, ProviderInfo } from "./types";
import { Badge, Button, Copy, ErrorBox, Labelled, Panel, Spinner, To, field, millis, visible } from "./ui";

const url = "/api/v1/models/providers";
const titles: Record<string, string> = { anthropic: "Anthropic", openai: "OpenAI", gemini: "Google Gemini", openrouter: "OpenRouter", mistral: "Mistral", groq: "Groq", deepseek: "DeepSeek", xai: "xAI", vllm: "vLLM", bedrock: "Amazon Bedrock" };

const useProviders = () => useQuery({ queryKey: ["models", "providers"], queryFn: () => get<Page<ProviderInfo>>(url) });

const demoServer = "tenon servers add demo -- tenon testserver --stdio";
/** The questions that the built-in script answers; see model/script/demo.yaml. */
const demoQuestions = ["What is the weather in London?", "And in Paris?", "Count one up."];

interface Tested {
  ok?: boolean;
  error?: { message: string };
  duration_ms?: number;
}

/** Asks for a key, keeps it, and tries the provider's model with it. */
function KeyForm({ providers, onKept }: { providers: ProviderInfo[]; onKept?: () => void }) {
  const [name, setName] = useState("");
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState("");
  const [error, setError] = useState<unknown>();
  const [test, setTest] = useState<Tested>();
  const chosen = providers.find((p) => p.name === name) ?? providers[0];
  if (!chosen) return null;
  const save = async () => {
    setError(undefined);
    setTest(undefined);
    setBusy("saving the key…");
    try {
      await request("PUT", `${url}/${encodeURIComponent(chosen.name)}/key`, { key: key.trim() });
      setKey("");
      if (chosen.model) {
        setBusy(`asking ${chosen.model}…`);
        const t = await post<Tested>("/api/v1/models/test", { name: chosen.model });
        setTest(t);
        if (t.error) return;
      }
      onKept?.();
    } catch (e) {
      setError(e);
    } finally {
      setBusy("");
      invalidate(["models"]);
    }
  };
  return (
    <form className="flex flex-col gap-2" onSubmit={(e) => { e.preventDefault(); void save(); }}>
      <div className="flex flex-wrap gap-2">
        <Labelled label="Provider">{(id) => <select id={id} className={field} value={chosen.name} onChange={(e) => { setName(e.target.value); setTest(undefined); }}>{providers.map((p) => <option key={p.name} value={p.name}>{titles[p.name] ?? p.name}</option>)}</select>}</Labelled>
        <div className="min-w-52 flex-1"><Labelled label="API key">{(id) => <input id={id} type="password" autoComplete="off" spellCheck={false} className={`${field} font-mono`} value={key} onChange={(e) => setKey(e.target.value)} />}</Labelled></div>
      </div>
      <p className="text-xs text-dim">It is stored encrypted in your state folder, never in the project. {chosen.variable} in the environment has precedence.</p>
      {error !== undefined && <ErrorBox error={error} />}
      {test?.error && <p role="alert" className="rounded bg-bad-ground px-2 py-1 text-sm break-words text-bad">The key is saved, but {visible(chosen.model ?? "")} does not answer: {visible(test.error.message)}</p>}
      {test?.ok && <p role="status" className="text-sm text-ok">✓ {visible(chosen.model ?? "")} answers in {millis(test.duration_ms)}.</p>}
      <div className="flex items-center gap-2">
        <Button type="submit" tone="primary" disabled={!key.trim() || !!busy}>Save the key</Button>
        {busy && <span role="status" className="flex items-center gap-2 text-sm text-dim"><Spinner /> {busy}</span>}
      </div>
    </form>
  );
}

/** The keys on the page of settings. */
export function Keys() {
  const list = useProviders();
  const [error, setError] = useState<unknown>();
  const [adding, setAdding] = useState(false);
  const kept = list.data?.items.filter((p) => p.kept) ?? [];
  return (
    <Panel title="Provider keys" actions={<Button onClick={() => setAdding(!adding)}>{adding ? "Close" : "Add a key"}</Button>}>
      {list.isError && <ErrorBox error={list.error} />}
      {error !== undefined && <ErrorBox error={error} />}
      {adding && <div className="border-b border-line p-3"><KeyForm providers={list.data?.items ?? []} onKept={() => setAdding(false)} /></div>}
      {kept.length === 0 && <p className="p-3 text-sm text-dim">No key is saved. Variables such as OPENAI_API_KEY work, too.</p>}
      <ul className="divide-y divide-line">
        {kept.map((p) => (
          <li key={p.name} className="flex flex-wrap items-center gap-2 px-3 py-1.5 text-sm">
            {titles[p.name] ?? visible(p.name)}<span className="font-mono text-xs text-dim">in place of {p.variable}</span>
            <Button tone="danger" className="ml-auto" aria-label={`Remove the key of ${p.name}`} onClick={() => request("DELETE", `${url}/${encodeURIComponent(p.name)}/key`).then(() => invalidate(["models"]), setError)}>Remove</Button>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** Shown where there is no model yet: three ways to a first answer, none of which needs a file. */
export function FirstModel() {
  const models = useModels();
  const providers = useProviders();
  const tools = useTools();
  const local = useQuery({ queryKey: ["models", "probe"], queryFn: () => get<Page<Model>>("/api/v1/models?probe=true"), staleTime: 0 });
  if (!models.data || models.data.items.some((m) => m.from !== "built-in")) return null;
  const found = local.data?.items.filter((m) => m.from === "local") ?? [];
  const lacksDemo = tools.data !== undefined && !tools.data.items.some((t) => t.name === "get_weather");
  return (
    <section aria-label="A first model" className="mx-auto mt-6 flex max-w-xl flex-col gap-4 rounded-lg border border-line bg-panel p-4 text-left text-sm text-ink">
      <h2 className="text-base font-semibold">Connect a model</h2>
      <div><h3 className="mb-2 font-medium">With an API key</h3><KeyForm providers={providers.data?.items.filter((p) => p.model) ?? []} /></div>
      <div className="border-t border-line pt-3">
        <h3 className="mb-1 font-medium">On this machine</h3>
        {local.isLoading && <p className="flex items-center gap-2 text-dim"><Spinner /> Looking for Ollama, LM Studio, llama.cpp and vLLM…</p>}
        {local.data && found.length === 0 && <p className="text-dim">None was found. Start <a className="text-accent underline" href="https://ollama.com" target="_blank" rel="noopener noreferrer">Ollama</a> or LM Studio, and <button type="button" className="text-accent underline" onClick={() => void local.refetch()}>look again</button>.</p>}
        <ul className="flex flex-col gap-1">{found.map((m) => <li key={m.name} className="flex flex-wrap items-center gap-2"><Badge tone="ok">found</Badge><span className="font-mono text-xs">{visible(m.name)}</span><To className="text-accent underline" to={`/?model=${encodeURIComponent(m.name)}`}>Use it</To></li>)}</ul>
      </div>
      <div className="border-t border-line pt-3">
        <h3 className="mb-1 font-medium">Without a model</h3>
        <p className="text-dim">A built-in script answers three questions with tools of the demo server: {demoQuestions.map((q) => `“${q}”`).join(", ")}. {!lacksDemo && <To className="text-accent underline" to="/?model=demo">Try it</To>}</p>
        {lacksDemo && <p className="mt-2 text-dim">No server of this project has its tools. Add the demo server in a shell: <code className="font-mono text-xs text-ink">{demoServer}</code> <Copy text={demoServer} /> or <To className="text-accent underline" to="/servers">another server</To>, whose <To className="text-accent underline" to="/tools">tools</To> need no model to be tried.</p>}
      </div>
    </section>
  );
}

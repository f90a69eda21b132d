// What a model answered: its text with the sources, and the pictures and sounds that it made.

import { useMemo } from "react";
import { Block } from "./callcard";
import { type Citation, SourceList, Sources, marked, sourcesOf } from "./cited";
import { save } from "./files";
import { Markdown, maxText } from "./markdown";
import type { Content } from "./types";
import { Button, visible } from "./ui";

const none: Citation[] = [];

/** A text of a model, with marks for its sources and their list below. */
export function CitedText({ text, citations = none, children }: { text: string; citations?: Citation[]; children?: React.ReactNode }) {
  const sources = useMemo(() => sourcesOf(citations), [citations]);
  const shown = useMemo(() => (text.length > maxText ? text : citations.length ? marked(text, citations) : visible(text)), [text, citations]);
  return (
    <>
      {text && <div className="px-1"><Sources value={sources}><Markdown text={shown} /></Sources>{children}</div>}
      <SourceList sources={sources} />
    </>
  );
}

/** Pictures, sounds and files that a model made. */
export function Made({ media, step }: { media: Content[]; step: string }) {
  return (
    <div className="flex flex-wrap gap-3">
      {media.slice(0, 20).map((c, i) => (
        <figure key={i} className="flex max-w-full min-w-0 flex-col items-start gap-1">
          <Block c={c} />
          {c.type !== "file" && <Button tone="quiet" className="px-1! py-0 text-xs" onClick={() => save(c.data!, `${step}-${i + 1}.${/^\w+\/([\w-]+)/.exec(c.mimeType ?? "")?.[1] ?? "bin"}`)}>Download</Button>}
        </figure>
      ))}
      {media.length > 20 && <p className="text-xs text-dim">{media.length - 20} more are in the JSON of the run.</p>}
    </div>
  );
}

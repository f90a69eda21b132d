// Code in an answer: coloured by its language, and copied with a button.

import { type ReactNode, memo, useEffect, useState } from "react";
import { Copy } from "./ui";

const maxColoured = 30_000; // characters; colouring more would hold up the page

/** A block of code. One that is still being written is not coloured. */
export const Code = memo(function Code({ text, language, ended }: { text: string; language: string; ended: boolean }) {
  const [colours, setColours] = useState<{ text: string; nodes: ReactNode }>();
  useEffect(() => {
    if (!ended || !language || text.length > maxColoured) return;
    let gone = false;
    void import("./highlight").then((m) => !gone && setColours({ text, nodes: m.highlight(text, language) }), () => undefined); // without colours it can be read too
    return () => {
      gone = true;
    };
  }, [text, language, ended]);
  return (
    <div className="relative">
      <pre tabIndex={0}><code>{colours?.text === text ? colours.nodes : text}</code></pre>
      {ended && <span className="absolute top-1 right-1 rounded-md bg-panel [&_button]:px-1.5! [&_button]:py-0 [&_button]:text-xs"><Copy text={text} label="Copy" name="Copy the code" /></span>}
    </div>
  );
});

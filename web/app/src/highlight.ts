// The colours of code, loaded when the first block of code is shown.

import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import shell from "highlight.js/lib/languages/shell";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";
import { type ReactNode, createElement } from "react";

const known = createLowlight({ bash, c, cpp, csharp, css, diff, dockerfile, go, ini, java, javascript, json, makefile, markdown, php, python, ruby, rust, shell, sql, typescript, xml, yaml });

type Node = { type: string; value?: string; properties?: { className?: string[] }; children?: Node[] };

/** The code with spans that name what each part is, or as it is where the language is not known. */
export function highlight(code: string, language: string): ReactNode {
  const name = language.toLowerCase();
  if (!known.registered(name)) return code;
  return (known.highlight(name, code) as Node).children?.map(node);
}

function node(n: Node, key: number): ReactNode {
  if (n.type === "text") return n.value;
  return createElement("span", { key, className: n.properties?.className?.join(" ") }, ...(n.children ?? []).map(node));
}

// Markdown that a model wrote, as React elements and nothing else: there is no way
// from the text to HTML. Pictures are shown as links, because the page loads nothing
// from anywhere.

import { Fragment, type ReactNode, memo } from "react";
import { Mark, unmarked } from "./cited";
import { Code } from "./code";
import { Formula } from "./formula";
import { Link } from "./link";
import { LongText, visible } from "./ui";

/** Beyond so many characters a text is shown as it is, and its beginning first. */
export const maxText = 200_000;

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  if (text.length > maxText) return <LongText text={unmarked(text)} />;
  return <div className="prose break-words">{blocks(text.replace(/\r\n?/g, "\n").split("\n"))}</div>;
});

const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;

function blocks(lines: string[], depth = 0): ReactNode[] {
  const out: ReactNode[] = [];
  let i = 0;
  const push = (n: ReactNode) => out.push(<Fragment key={out.length}>{n}</Fragment>);
  while (i < lines.length) {
    const line = lines[i]!;
    const fence = /^\s{0,3}(`{3,}|~{3,})\s*([\w+-]*)/.exec(line);
    if (fence) {
      const body: string[] = [];
      for (i++; i < lines.length && !lines[i]!.trim().startsWith(fence[1]!); i++) body.push(lines[i]!);
      i++; // beyond the end of the text while the block is being written
      push(<Code text={unmarked(body.join("\n"))} language={fence[2]!} ended={i <= lines.length} />);
      continue;
    }
    const open = /^\s*(\$\$|\\\[)\s*$/.exec(line);
    if (open) {
      const close = open[1] === "$$" ? "$$" : "\\]";
      const end = lines.findIndex((l, n) => n > i && l.trim() === close);
      if (end > 0) {
        push(<Formula tex={unmarked(lines.slice(i + 1, end).join("\n"))} display />);
        i = end + 1;
        continue;
      }
    }
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (heading) {
      const H = `h${Math.min(heading[1]!.length + 1, 4)}` as "h2";
      push(<H>{inline(heading[2]!)}</H>);
      i++;
      continue;
    }
    if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      push(<hr />);
      i++;
      continue;
    }
    if (line.startsWith(">")) {
      const body: string[] = [];
      for (; i < lines.length && lines[i]!.startsWith(">"); i++) body.push(lines[i]!.replace(/^> ?/, ""));
      push(<blockquote>{depth < 8 ? blocks(body, depth + 1) : body.join("\n")}</blockquote>);
      continue;
    }
    const first = item.exec(line);
    if (first) {
      const ordered = /\d/.test(first[2]!);
      const indent = first[1]!.length;
      const entries: string[][] = [];
      for (; i < lines.length; i++) {
        const m = item.exec(lines[i]!);
        if (m && m[1]!.length <= indent && /\d/.test(m[2]!) !== ordered) break; // a list of the other kind
        if (m && m[1]!.length <= indent) entries.push([m[3]!]);
        else if (lines[i]!.trim() === "" && item.test(lines[i + 1] ?? "")) continue;
        else if (/^\s+\S/.test(lines[i]!)) entries.at(-1)!.push(lines[i]!.slice(Math.min(indent + 2, lines[i]!.search(/\S/))));
        else break;
      }
      const list = entries.map((e, n) => {
        const task = /^\[([ xX])\]\s+(.*)$/.exec(e[0]!);
        if (task) e = [task[2]!, ...e.slice(1)];
        const text = e.length > 1 && depth < 8 ? blocks(e, depth + 1) : inline(e.join(" "));
        if (!task) return <li key={n}>{text}</li>;
        return <li key={n} className="list-none"><span role="img" aria-label={task[1] === " " ? "to do" : "done"} className="float-left -ml-5">{task[1] === " " ? "☐" : "☑"}</span>{text}</li>;
      });
      push(ordered ? <ol start={Number.parseInt(first[2]!, 10)}>{list}</ol> : <ul>{list}</ul>);
      continue;
    }
    if (line.includes("|") && (lines[i + 1] ?? "").length < 1000 && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[i + 1] ?? "")) {
      const head = cells(line);
      const side = cells(lines[i + 1]!).map((c) => (!c.endsWith(":") ? undefined : c.startsWith(":") ? "text-center!" : "text-right!"));
      const rows: string[][] = [];
      for (i += 2; i < lines.length && lines[i]!.includes("|"); i++) rows.push(cells(lines[i]!));
      push(
        <table>
          <thead><tr>{head.map((c, n) => <th key={n} className={side[n]}>{inline(c)}</th>)}</tr></thead>
          <tbody>{rows.map((r, y) => <tr key={y}>{head.map((_, x) => <td key={x} className={side[x]}>{inline(r[x] ?? "")}</td>)}</tr>)}</tbody>
        </table>,
      );
      continue;
    }
    if (line.trim() === "") {
      i++;
      continue;
    }
    const body: string[] = [];
    for (; i < lines.length && lines[i]!.trim() !== "" && (body.length === 0 || !/^(\s{0,3}(`{3,}|~{3,})|#{1,6}\s|>|\s*(\$\$|\\\[)\s*$)/.test(lines[i]!) && !item.test(lines[i]!)); i++)
      body.push(lines[i]!);
    push(<p className="whitespace-pre-wrap">{inline(body.join("\n"))}</p>);
  }
  return out;
}

function cells(line: string): string[] {
  const escaped = /\\\|/g; // a bar within a cell, also within code
  return line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "").split(/(?<!\\)\|/).map((c) => c.trim().replace(escaped, "|"));
}

// What is special within a line. A formula is $$x$$, \[x\], \(x\), or $x$ where that is no amount of money.
const token = new RegExp([
  /(?<![\\$])\$\$(?<shown>[^$]{1,5000})\$\$/, /\\\[(?<shown2>[\s\S]{1,5000}?)\\\](?!\()/, /\\\((?<tex>[\s\S]{1,2000}?)\\\)/,
  /(?<![\\$\w])\$(?=[^\s$])(?<tex2>[^$\n]{0,500}?[^\s$\\])\$(?![\w$])/,
  /\\(?<sign>[!-\/:-@[-`{-~])/, /(?<ticks>`+)(?<code>[\s\S]*?[^`])\k<ticks>(?!`)/, /(?<two>\*\*|__)(?=\S)(?<strong>[\s\S]*?\S)(?<!\\)\k<two>/,
  /(?<![\w*])(?<one>[*_])(?=\S)(?<em>[\s\S]*?\S)(?<!\\)\k<one>(?!\w)/, /~~(?=\S)(?<gone>[\s\S]*?\S)~~/,
  /!?\[(?<label>[^\]\n]{0,500})\]\((?<href>[^\s()]{1,2000})(?:\s+"[^"]*")?\)/, /(?<url>https?:\/\/[^\s<>()"'`\ue000]{1,2000}[^\s<>()"'`.,;:!?\ue000])/,
  /&(?<entity>#\d{1,7}|#[xX][\da-fA-F]{1,6}|amp|lt|gt|quot|apos|nbsp|copy|reg|trade|hellip|mdash|ndash|times|deg|euro|rarr|larr);/,
  /\ue000(?<mark>\d+)\ue001/,
].map((r) => r.source).join("|"), "g");

function inline(text: string, depth = 0): ReactNode[] {
  const out: ReactNode[] = [];
  let last = 0;
  for (const m of text.matchAll(token)) {
    if (m.index > last) out.push(text.slice(last, m.index));
    last = m.index + m[0].length;
    const key = out.length;
    const g = m.groups!;
    const deeper = (t: string) => (depth < 8 ? inline(t, depth + 1) : t);
    const tex = g.shown ?? g.shown2 ?? g.tex ?? g.tex2;
    if (tex !== undefined) out.push(<Formula key={key} tex={unmarked(tex.trim())} display={(g.shown ?? g.shown2) !== undefined} />);
    else if (g.sign !== undefined) out.push(g.sign); // an escaped sign is the sign
    else if (g.entity !== undefined) out.push(entity(g.entity));
    else if (g.code !== undefined) out.push(<code key={key}>{unmarked(g.code)}</code>);
    else if (g.strong !== undefined) out.push(<strong key={key}>{deeper(g.strong)}</strong>);
    else if (g.em !== undefined) out.push(<em key={key}>{deeper(g.em)}</em>);
    else if (g.gone !== undefined) out.push(<s key={key}>{deeper(g.gone)}</s>);
    else if (g.href !== undefined) out.push(<Link key={key} href={unmarked(g.href)} text={unmarked(g.label || g.href)} />);
    else if (g.url !== undefined) out.push(<Link key={key} href={g.url} text={g.url} />);
    else if (g.mark !== undefined) out.push(<Mark key={key} n={Number(g.mark)} />);
  }
  if (last < text.length) out.push(text.slice(last));
  return out;
}

const entities: Record<string, string> = {
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " ", copy: "©", reg: "®", trade: "™", hellip: "…", mdash: "—",
  ndash: "–", times: "×", deg: "°", euro: "€", rarr: "→", larr: "←",
};

/** The sign that an entity of HTML stands for. What would not be seen stays escaped. */
function entity(name: string): string {
  if (!name.startsWith("#")) return entities[name]!;
  const code = /^#[xX]/.test(name) ? Number.parseInt(name.slice(2), 16) : Number.parseInt(name.slice(1), 10);
  const known = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
  return visible(known ? String.fromCodePoint(code) : "\ufffd");
}

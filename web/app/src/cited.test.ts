import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { CitedText } from "./answer";
import { type Citation, marked, sourcesOf } from "./cited";

const a: Citation = { title: "A", url: "https://a.example/", start: 0, end: 6, quote: "it is green" };
const html = (text: string, citations: Citation[]) => renderToStaticMarkup(createElement(CitedText, { text, citations }));

test("MD-4 sources are told apart by address, file or title, in the order of their first citation", () => {
  const list = sourcesOf([{ url: "https://a.example/" }, { file: "f.pdf", title: "F" }, a, { ...a, quote: "so it is" }, {}, { title: "F" }]);
  expect(list.map((s) => [s.n, s.title, s.url || s.file, s.quotes])).toEqual([
    [1, "A", "https://a.example/", ["it is green", "so it is"]], [2, "F", "f.pdf", []], [3, "F", "", []],
  ]);
});

test.each([
  ["bytes, not characters", "Grün. More", [a], "Grün.\ue0001\ue001 More"],
  ["several at one place", "Grün. More", [a, { title: "B", end: 6 }], "Grün.\ue0001\ue001\ue0002\ue001 More"],
  ["before blanks", "Grün.\n\nMore", [{ ...a, end: 8 }], "Grün.\ue0001\ue001\n\nMore"],
  ["within a character", "ü!", [{ ...a, end: 1 }], "ü\ue0001\ue001!"],
  ["beyond the text, or without a place", "Grün.", [{ ...a, end: 99 }, { ...a, end: 0 }, { ...a, end: -3 }], "Grün."],
  ["a forged mark", "\ue0001\ue001Grün.", [{ ...a, end: 13 }], "\\u{e000}1\\u{e001}Grün.\ue0001\ue001"],
])("MD-4 marks: %s", (_, text, citations, want) => expect(marked(text, citations)).toBe(want));

test("MD-4 a mark is a link in text, and nothing in code, formulas and addresses", () => {
  const link = '<a href="https://a.example/" target="_blank" rel="noopener noreferrer nofollow" title="https://a.example/" aria-label="Source 1: A">[1]</a>';
  expect(html("**Grün.** x", [{ ...a, end: 8 }])).toContain(`<strong>Grün.${link.replace(/^/, '<sup class="mx-0.5 text-xs">')}</sup></strong>`);
  for (const text of ["`Grün`", "$Grün$ x", "```\nGrün\n```", "[x](https://x.example/ü)"]) {
    const end = new TextEncoder().encode(text.slice(0, text.search("n|ü") + 1)).length;
    expect(html(text, [{ ...a, end }])).not.toMatch(/[\ue000\ue001]/);
  }
  expect(html("see https://x.example/a", [{ ...a, end: 23 }])).toContain(`href="https://x.example/a"`);
});

test("MD-4 an address that is not of the web is no link", () => {
  const out = html("x", [{ title: "A", url: "javascript:alert(1)", end: 1 }, { title: "<b>", url: "https://b.example/" }]);
  expect(out).not.toContain('href="javascript');
  expect(out).toContain("&lt;b&gt;");
  expect(out).toContain('title="Source 1: A"');
});

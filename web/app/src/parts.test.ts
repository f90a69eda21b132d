import { renderToStaticMarkup } from "react-dom/server";
import { createElement } from "react";
import { describe, expect, test } from "vitest";
import { diff } from "./diff";
import { Markdown } from "./markdown";
import { initial, problems, shapeOf } from "./schema";
import { entriesOf, quoted, words } from "./serveredit";
import { blanks } from "./registry";
import { completionOf } from "./completed";
import { Parser } from "./stream";
import { millis, visible, visibleJson } from "./ui";

const html = (text: string) => renderToStaticMarkup(createElement(Markdown, { text }));

describe("server-sent events", () => {
  const text = ": hello\r\n\r\nid: 1\ndata: a\ndata:b\n\nevent: live\r\ndata: {\"x\":1}\r\rid: 3\ndata\n\ndata: never ended\n";
  const want = [
    { id: "1", type: "message", data: "a\nb" },
    { id: "1", type: "live", data: '{"x":1}' },
    { id: "3", type: "message", data: "" },
  ];
  test("whole, and split anywhere", () => {
    expect(new Parser().push(text)).toEqual(want);
    for (let i = 0; i <= text.length; i++) {
      const p = new Parser();
      expect([...p.push(text.slice(0, i)), ...p.push(text.slice(i))]).toEqual(want);
    }
    const p = new Parser();
    expect([...text].flatMap((c) => p.push(c))).toEqual(want);
  });
});

describe("markdown", () => {
  test.each([
    ["**a** *b* `c` ~~d~~", "<strong>a</strong> <em>b</em> <code>c</code> <s>d</s>"],
    ["# Title", "<h2>Title</h2>"],
    ["- a\n- b\n  - c", "<ul><li>a</li>"],
    ["3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'],
    ["```js\n<b>\n```", "<pre tabindex=\"0\"><code>&lt;b&gt;</code></pre>"],
    ["| a | b |\n| --- | --- |\n| 1 | 2 |", "<td>1</td><td>2</td>"],
    ["| a | b |\n| :-: | --: |\n| 1 | 2 |", '<td class="text-center!">1</td><td class="text-right!">2</td>'],
    ["| a | b |\n| --- | --- |\n| x \\| y | `c\\|d` |", "<td>x | y</td><td><code>c|d</code></td>"],
    ["\\*not\\* snake\\_case 1\\. \\[x\\](y) `\\*`", "*not* snake_case 1. [x](y) <code>\\*</code>"],
    ["*a\\*b* **c\\***", "<em>a*b</em> <strong>c*</strong>"],
    ["C:\\Users \\u{200b}", "C:\\Users \\u{200b}"],
    ["snake_case_name and 2*3*4", "snake_case_name and 2*3*4"],
    ["[x](https://example.com/a?b=c)", 'href="https://example.com/a?b=c"'],
    ["> a\n> b", "<blockquote>"],
    ["so $a_1 * b_2$ is", "so <span>a_1 * b_2</span> is"],
    ["**both \\(x^2\\) too**", "<strong>both <span>x^2</span> too</strong>"],
    ["$$x < y$$", '<span class="block overflow-x-auto py-1">x &lt; y</span>'],
    ["a\n\\[\n- x\n+ y\n\\]\nb", '<span class="block overflow-x-auto py-1">- x\n+ y</span>'],
    ["from $5 to $10, and $ 3", "from $5 to $10, and $ 3"],
    ["`$x$` and \\$y$", "<code>$x$</code> and $y$"],
  ])("%j", (text, want) => expect(html(text)).toContain(want));

  test.each(["[x](javascript:alert(1))", "[x](data:text/html,<script>)", "<img src=x onerror=alert(1)>", "![x](https://evil.example/p.png)", "<script>alert(1)</script>", "[x](vbscript:x)", "[x](//evil.example)", "<a href='javascript:1'>x</a>"])("%j makes no markup", (text) => {
    const out = html(text);
    expect(out).not.toMatch(/<(img|script|iframe|object|style|svg)/i);
    for (const [, href] of out.matchAll(/href="([^"]*)"/g)) expect(href).toMatch(/^https?:/);
  });

  test("hostile sizes end", () => {
    for (const text of ["*".repeat(20_000), "[".repeat(20_000), "> ".repeat(5_000) + "x", "`".repeat(20_000), "_a".repeat(20_000), `${"  - a\n".repeat(3_000)}`, "|".repeat(20_000), "(".repeat(20_000), "$a".repeat(10_000), "\\(".repeat(10_000), "\\[".repeat(10_000), "$$a".repeat(7_000)]) {
      expect(html(text).length).toBeGreaterThan(0);
    }
  });
});

test("what cannot be seen is shown", () => {
  expect(visible("a\u202eb\u200b\u0007c\u{e0041}")).toBe("a\\u{202e}b\\u{200b}\\u{7}c\\u{e0041}");
  expect(visible("tab\tline\n")).toBe("tab\tline\n");
  expect(visible("\u3164\u034f\ue000\ufe00 \u2764\ufe0f")).toBe("\\u{3164}\\u{34f}\\u{e000}\\u{fe00} \u2764\ufe0f");
  // Joiners are needed within emoji and in some scripts, and hide something anywhere else.
  const joined = "\u{1f468}\u200d\u{1f4bb} \u2764\ufe0f\u200d\u{1f525} \u{1f469}\u{1f3fd}\u200d\u{1f52c} \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u0d9a\u0dca\u200d\u0dba";
  expect(visible(joined)).toBe(joined);
  expect(visible("pass\u200dword a\u200cb \u{1f468}\u200d \u200d\u{1f4bb}\u200c\u{1f4bb}")).toBe("pass\\u{200d}word a\\u{200c}b \u{1f468}\\u{200d} \\u{200d}\u{1f4bb}\\u{200c}\u{1f4bb}");
  const value = { a: "\u202eb\u{e0041}" };
  expect(visibleJson(JSON.stringify(value))).toBe(String.raw`{"a":"\u202eb\udb40\udc41"}`);
  expect(JSON.parse(visibleJson(JSON.stringify(value)))).toEqual(value);
});

describe("schemas", () => {
  test("shapes", () => {
    expect(shapeOf({ type: "string", enum: ["a"] })).toBe("choice");
    expect(shapeOf({ type: ["null", "integer"] })).toBe("number");
    expect(shapeOf({ type: "array", items: { type: "string" } })).toBe("list");
    expect(shapeOf({ type: "array", items: { type: "object" } })).toBe("json");
    expect(shapeOf({})).toBe("json");
    expect(shapeOf({ oneOf: [{ const: 1, title: "one" }, { const: 2 }] })).toBe("choice");
  });
  const schema = { type: "object", properties: { a: { type: "integer", minimum: 1 }, b: { type: "string", default: "x" }, c: { type: "object", properties: { d: { type: "boolean" } }, required: ["d"] } }, required: ["a"] };
  test("begin with the defaults and nothing else", () => expect(initial(schema)).toEqual({ b: "x" }));
  test.each([
    [{}, { "/a": "is required" }],
    [{ a: 0 }, { "/a": "at least 1" }],
    [{ a: 1.5 }, { "/a": "a whole number is needed" }],
    [{ a: 1, c: {} }, { "/c/d": "is required" }],
    [{ a: 1, b: 2 }, { "/b": "a text is needed" }],
    [{ a: 1 }, {}],
    ["x", { "": "an object is needed" }],
  ])("%j", (v, want) => expect(problems(schema, v)).toEqual(want));
});

describe("differences", () => {
  const marks = (a: string, b: string) => diff(a, b).map((l) => l.mark + l.text);
  test("none", () => expect(marks("a\nb\n", "a\nb\n")).toEqual([]));
  test("of an empty file", () => expect(marks("", "a\n")).toEqual(["+a"]));
  test("with what stands around", () => expect(marks("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n")).toEqual(["@…", " 2", " 3", " 4", "-5", "+x", " 6", " 7", " 8"]));
  test("two apart", () => expect(marks("a\nb\nc\nd\n", "a\nB\nc\nD\n")).toEqual([" a", "-b", "+B", " c", "-d", "+D"]));
});

describe("servers that are pasted", () => {
  const entry = { command: "npx", args: ["x"] };
  test.each([
    [JSON.stringify({ mcpServers: { a: entry } }), ""],
    [JSON.stringify({ servers: { a: entry } }), ""],
    [JSON.stringify({ mcp: { servers: { a: entry } } }), ""],
    [JSON.stringify({ a: entry }), ""],
    [`"a": ${JSON.stringify(entry)},`, ""],
    [JSON.stringify(entry), "a"],
  ])("%j", (text, name) => expect(entriesOf(text, name)).toEqual({ a: entry }));
  test.each([["[1]"], ["{}"], ["{"], [JSON.stringify(entry)]])("%j is refused", (text) => expect(() => entriesOf(text, "")).toThrow());
  test("command lines", () => {
    expect(words(`npx -y "a b" 'c "d"' e\\ f "g\\"h" ''`)).toEqual(["npx", "-y", "a b", 'c "d"', "e f", 'g"h', ""]);
    expect(() => words("a 'b")).toThrow("not closed");
  });
});

test("RP-11 completion of a prompt's argument is asked for with what is written so far", () => {
  const review = { server: "demo", prompt: "review" };
  expect(completionOf(review, "tone", {})).toEqual({ server: "demo", prompt: "review", argument: "tone", value: "" });
  expect(completionOf(review, "tone", { tone: "k", subject: "code", note: "" })).toEqual(
    { server: "demo", prompt: "review", argument: "tone", value: "k", arguments: { subject: "code" } });
  expect(completionOf({ server: "demo", template: "day/{date}" }, "date", { date: "2" })).toEqual({ server: "demo", template: "day/{date}", argument: "date", value: "2" });
});

test("UX-10 a command of the registry is the same command when it is read from the form", () => {
  const command = ["npx", "-y", "@a/b@1.0", "--root=/my files", "it's", "<folder>", "", "$HOME", 'a"b'];
  expect(words(command.map(quoted).join(" "))).toEqual(command);
  expect(blanks("npx x <folder> <folder>\nKEY=<your key>\nT=${TOKEN}")).toEqual(["<folder>", "<your key>"]);
});

describe("UX-13 Markdown as the terminal shows it", () => {
  test("a list of the other kind is a list of its own, and tasks have marks", () => {
    const out = html("1. one\n2. two\n- [ ] todo\n- [x] done");
    expect(out).toContain('<ol start="1"><li>one</li><li>two</li></ol><ul>');
    expect(out).toMatch(/aria-label="to do"[^>]*>☐<\/span>todo<\/li>/);
    expect(out).toMatch(/aria-label="done"[^>]*>☑<\/span>done<\/li>/);
    expect(out).not.toContain("[ ]");
    expect(html("- a\n  1. b\n- c")).toMatch(/<li><p[^>]*>a<\/p><ol start="1"><li>b<\/li><\/ol><\/li><li>c/);
  });
  test("entities are the signs that they stand for, and nothing hidden", () => {
    expect(html("a &amp; b &lt;i&gt; &#65; &#x42;")).toContain("a &amp; b &lt;i&gt; A B"); // React escapes once
    expect(html("&#x202e;x")).toContain("\\u{202e}");
    expect(html("&#0;&#xD800;")).toContain("\ufffd\ufffd");
    expect(html("`&amp;` &nosuch;")).toContain("<code>&amp;amp;</code> &amp;nosuch;");
  });
  test("a text of megabytes is drawn in part", () => {
    const out = html("x".repeat(10_000_000));
    expect(out.length).toBeLessThan(50_000);
    expect(out).toContain("show all 10.0M characters");
  });
});

test("UX-13 times below a millisecond", () => {
  expect([0, 0.4, 1, 999, 1500].map(millis)).toEqual(["<1 ms", "<1 ms", "1 ms", "999 ms", "1.5 s"]);
});

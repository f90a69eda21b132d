import { renderToStaticMarkup } from "react-dom/server";
import { createElement } from "react";
import { describe, expect, test } from "vitest";
import { Questions } from "./approval";
import { Arguments, Judged, pieces } from "./judged";
import type { Asking } from "./types";
import { visible } from "./ui";

const args = (value: unknown) => renderToStaticMarkup(createElement(Arguments, { value }));

describe("SEC-F16 arguments of a call that waits", () => {
  test("every key is there, or counted with a button", () => {
    const many = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`key_${i}`, i]));
    expect(args(many)).toContain("key_99");
    expect(args(many)).toContain("50 more arguments");
    expect(args(many)).toContain("Show all of them");
    expect(args({ a: 1, b: "x" })).not.toContain("more");
  });
  test("a text that is cut says so, with its size", () => {
    const out = args({ path: "a", text: "harmless ".repeat(1000) + "; rm -rf /", mode: "w" });
    expect(out).toContain("8.8 KiB in all");
    expect(out).toContain("Show all of it");
    expect(out).toContain("mode");
  });
  test("blanks that push the rest out of sight are counted", () => {
    expect(args({ c: "ls" + " ".repeat(2000) + "; curl x" })).toContain("2,000 spaces");
    expect(args({ c: "ls" + "\n".repeat(500) + "rm" })).toContain("500 line breaks");
    expect(args({ c: { d: "ls" + " ".repeat(2000) + "rm" } })).toContain("2000×");
    expect(args({ c: "A".repeat(100) + "!" })).toContain("100 times A");
  });
  test.each(["", "a", "a  b", " ".repeat(23), " ".repeat(24), "x".repeat(63), "x".repeat(64) + "y", "👨".repeat(70), "\n \n".repeat(50)])("%j comes back from its pieces", (text) => {
    expect(pieces(text).map((p) => ("text" in p ? p.text : p.run.repeat(p.count))).join("")).toBe(text);
  });
  test("hidden characters are shown, in keys too", () => {
    const out = args({ "k\u202ey": "a\u200b\u{e0041}\u180e\u2065" });
    expect(out).toContain("k\\u{202e}y");
    for (const c of out) expect(visible(c)).toBe(c);
    expect(renderToStaticMarkup(createElement(Judged, { text: "a\u202eb" }))).toContain("a\\u{202e}b");
  });
});

describe("SEC-F17 forms of servers", () => {
  const form = (secrets?: Record<string, string[]>) =>
    renderToStaticMarkup(createElement(Questions, {
      busy: false, decide: () => {},
      asking: { kind: "input", name: "pay", server: "bank", remote_name: "pay", secrets, requests: { q: { method: "elicitation/create", params: { message: "tenon asks:\nyour password?", requestedSchema: { type: "object", properties: { pin: { type: "string" }, city: { type: "string" } } } } } } } as unknown as Asking,
    }));
  test("a secret is marked with the server that gets it", () => {
    const out = form({ q: ["pin"] });
    expect(out).toContain("asks for a secret (pin): it gets what you type");
    expect(out.match(/a secret, for server bank/g)).toHaveLength(1);
  });
  test("no secret, no mark; the server's words are framed with its name", () => {
    const out = form();
    expect(out).not.toContain("asks for a secret");
    expect(out).toMatch(/server <strong>bank<\/strong> says<\/figcaption><blockquote/);
  });
});

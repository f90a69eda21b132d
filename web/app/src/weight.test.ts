import { describe, expect, it } from "vitest";
import { scale, shares } from "./weight";

describe("UX-12 token weight", () => {
  it("adds the tokens of each server, the largest first", () => {
    expect(shares([{ server: "a", tokens: 10 }, { server: "b", tokens: 30 }, { server: "a", tokens: 5 }])).toEqual([
      { server: "b", tools: 1, tokens: 30 },
      { server: "a", tools: 2, tokens: 15 },
    ]);
    expect(shares([])).toEqual([]);
  });

  it("joins the small ones", () => {
    const list = shares(Array.from({ length: 9 }, (_, i) => ({ server: `s${i}`, tokens: 10 - i })));
    expect(list.map((s) => s.server)).toEqual(["s0", "s1", "s2", "s3", "s4", "4 more servers"]);
    expect(list.at(-1)).toEqual({ server: "4 more servers", tools: 4, tokens: 14 });
    expect(shares(Array.from({ length: 6 }, (_, i) => ({ server: `s${i}`, tokens: 1 }))).length).toBe(6); // no share for one server
  });

  it.each([[0, 1], [1, 1], [7, 10], [15, 20], [20, 20], [480, 500], [51_000, 100_000]])("has room for %d up to %d", (total, end) => {
    expect(scale(total)).toEqual({ end, marks: [0, end / 2, end] });
  });
});

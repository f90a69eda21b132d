import { describe, expect, test } from "vitest";
import { high, pathOf, route, wide } from "./flowroute";
import type { WorkflowGraph } from "./types";

const graph = (levels: Record<string, number>, edges: [string, string][]) =>
  ({ name: "g", nodes: Object.entries(levels).map(([id, level]) => ({ id, kind: "tool", level })), edges: edges.map(([from, to]) => ({ from, to })) }) as unknown as WorkflowGraph;

/** The boxes that an arrow runs behind. Between two points it stays between their heights, within a gap or a lane. */
function hidden(g: WorkflowGraph): string[] {
  const { at, edges } = route(g);
  return edges.flatMap((points, i) => points!.slice(1).flatMap(([x2, y2], n) => {
    const [x1, y1] = points![n]!;
    return [...at].filter(([, [x, y]]) => x2 > x && x1 < x + wide && Math.max(y1, y2) > y && Math.min(y1, y2) < y + high).map(([id]) => `${g.edges[i]!.from}-${g.edges[i]!.to} behind ${id}`);
  }));
}

describe("UX-13 arrows", () => {
  const skipping = graph({ a: 0, b: 1, c: 1, d: 2, e: 3 }, [["a", "b"], ["a", "c"], ["b", "d"], ["a", "d"], ["a", "e"], ["c", "e"], ["d", "e"]]);
  const wideOne = graph(Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`n${i}`, i % 8])), Array.from({ length: 39 }, (_, i) => [`n${i}`, `n${i + 1}`] as [string, string]).filter(([f, t]) => Number(t.slice(1)) % 8 > Number(f.slice(1)) % 8).concat([["n0", "n7"], ["n8", "n15"], ["n1", "n39"]]));
  test.each([["that skip levels", skipping], ["of many boxes", wideOne]])("%s run behind no box", (_, g) => expect(hidden(g)).toEqual([]));

  test("end at their boxes, and stay within the picture", () => {
    const { at, edges, width, height } = route(skipping);
    skipping.edges.forEach((e, i) => {
      const points = edges[i]!;
      expect(points[0]).toEqual([at.get(e.from)![0] + wide, at.get(e.from)![1] + high / 2]);
      expect(points.at(-1)).toEqual([at.get(e.to)![0], at.get(e.to)![1] + high / 2]);
      for (const [x, y] of points) expect(x >= 0 && x <= width && y >= 0 && y <= height).toBe(true);
    });
  });

  test("of one box share a lane, and have curves in gaps only", () => {
    const { edges } = route(skipping);
    expect(edges[3]![1]).toEqual(edges[4]![1]);
    expect(pathOf(edges[3]!)).toMatch(/^M\S+ \S+C[^CH]+H\d+C[^CH]+$/);
  });

  test("to what is not drawn are left out", () => expect(route(graph({ a: 0 }, [["a", "gone"]])).edges).toEqual([undefined]));
});

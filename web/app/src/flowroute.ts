// Where the boxes and arrows of a workflow's graph are. An arrow changes its height only in the gaps between levels; past
// the levels between its ends it runs in a lane below their boxes, so that no arrow is hidden behind a box.

import type { WorkflowGraph } from "./types";

export const wide = 190;
export const high = 50;
const gapX = 56;
const gapY = 16;
const margin = 14;
const lane = 12; // height
export const most = 500; // boxes that are drawn

export interface Routed {
  at: Map<string, [number, number]>; // the upper left corner of each box
  /** The points of each edge; undefined for one without a box. They come in pairs: each pair ends a gap. */
  edges: ([number, number][] | undefined)[];
  width: number;
  height: number;
}

export function route(graph: WorkflowGraph): Routed {
  const at = new Map<string, [number, number]>();
  const level = new Map<string, number>();
  const rows: number[] = [];
  let deep = 0;
  const left = (l: number) => margin + l * (wide + gapX);
  for (const n of graph.nodes.slice(0, most)) {
    const row = rows[n.level] ?? 0;
    rows[n.level] = row + 1;
    deep = Math.max(deep, n.level);
    level.set(n.id, n.level);
    at.set(n.id, [left(n.level), margin + row * (high + gapY)]);
  }
  const lanes: Map<string, number>[] = []; // of each level: the lane of each box whose arrows pass
  const below = (l: number, from: string) => {
    const own = (lanes[l] ??= new Map());
    if (!own.has(from)) own.set(from, own.size);
    return margin + (rows[l] ?? 0) * (high + gapY) + own.get(from)! * lane;
  };
  const edges = graph.edges.map((e) => {
    const [from, to] = [at.get(e.from), at.get(e.to)];
    if (!from || !to) return undefined;
    const points: [number, number][] = [[from[0] + wide, from[1] + high / 2]];
    for (let l = level.get(e.from)! + 1; l < level.get(e.to)!; l++) {
      const y = below(l, e.from);
      points.push([left(l), y], [left(l) + wide, y]);
    }
    points.push([to[0], to[1] + high / 2]);
    return points;
  });
  let height = high;
  for (let l = 0; l <= deep; l++) height = Math.max(height, (rows[l] ?? 0) * (high + gapY) - gapY + (lanes[l] ? gapY + lanes[l]!.size * lane : 0));
  return { at, edges, width: 2 * margin + (deep + 1) * wide + deep * gapX, height: 2 * margin + height };
}

/** An edge as a path of SVG: curves in the gaps, straight lines in the lanes. */
export function pathOf(points: [number, number][]): string {
  let d = `M${points[0]![0]} ${points[0]![1]}`;
  for (let i = 1; i < points.length; i++) {
    const [[x1, y1], [x2, y2]] = [points[i - 1]!, points[i]!];
    d += i % 2 === 1 ? `C${x1 + gapX / 2} ${y1} ${x2 - gapX / 2} ${y2} ${x2} ${y2}` : `H${x2}`;
  }
  return d;
}

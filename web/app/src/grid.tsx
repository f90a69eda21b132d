// A table of any size: only what is in sight is drawn, and only what is drawn is read.

import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useRef, useState } from "react";
import type { TablePage, TableRow } from "./types";
import { Button, Dialog, ErrorBox, Json, cx, field, grouped, visible } from "./ui";

const rowHeight = 27;
const headHeight = 40;
const scrollbar = 16;
const cellWidth = 170;
const idWidth = 110;
const pageRows = 100;
const maxPages = 40; // that are kept
/** Rows that one grid scrolls over: browsers draw nothing beyond some 30 million pixels. */
const window_ = 500_000;

/** Reads rows of a table. */
export type Read = (skip: number, limit: number, whole: boolean) => Promise<TablePage>;

/** Key the grid by the table, so that another one begins anew. */
export function Grid({ first, read, label }: { first: TablePage; read: Read; label: string }) {
  const total = first.total >= 0 ? first.total : first.rows.length;
  const [base, setBase] = useState(0); // the row with which the grid begins
  const count = Math.min(window_, total - base);
  const [pages, setPages] = useState<Map<number, TableRow[]>>(() => new Map([[0, first.rows]]));
  const [error, setError] = useState<unknown>();
  const [whole, setWhole] = useState<number>();
  const asked = useRef(new Set<number>([0]));
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({ count, getScrollElement: () => box.current, estimateSize: () => rowHeight, overscan: 12 });
  const [room, setRoom] = useState(0);
  const last = first.columns.length - 1;
  // Texts that stand last get what room there is.
  const widthOf = (i: number) => (i === last && first.columns[i]!.type === "string" ? Math.max(cellWidth, room - idWidth - last * cellWidth) : cellWidth);
  const cols = useVirtualizer({ horizontal: true, count: first.columns.length, getScrollElement: () => box.current, estimateSize: widthOf, overscan: 3 });
  useEffect(() => {
    const o = new ResizeObserver(([e]) => setRoom(Math.floor(e!.contentRect.width)));
    o.observe(box.current!);
    return () => o.disconnect();
  }, []);
  useEffect(() => cols.measure(), [room, cols]);
  const drawn = rows.getVirtualItems();
  const from = base + (drawn[0]?.index ?? 0);
  const to = base + (drawn.at(-1)?.index ?? 0);
  const load = useCallback((page: number) => {
    if (asked.current.has(page)) return;
    asked.current.add(page);
    read(page * pageRows, pageRows, false).then(
      (p) => setPages((old) => {
        const next = new Map(old).set(page, p.rows);
        if (next.size > maxPages) {
          const oldest = next.keys().next().value!;
          next.delete(oldest);
          asked.current.delete(oldest);
        }
        return next;
      }),
      (e: unknown) => {
        asked.current.delete(page);
        setError(e);
      });
  }, [read]);
  const [a, b] = [Math.floor(from / pageRows), Math.floor(to / pageRows)];
  useEffect(() => {
    if (count > 0) for (let p = a; p <= b; p++) if (!pages.has(p)) load(p);
  }, [a, b, count, pages, load]);
  const goTo = (n: number) => {
    const row = Math.max(0, Math.min(total - 1, n));
    const start = row < window_ ? 0 : Math.max(0, row - window_ / 2);
    setBase(start);
    requestAnimationFrame(() => rows.scrollToIndex(row - start, { align: "start" }));
  };
  const width = idWidth + cols.getTotalSize();
  return (
    <div className="flex flex-col">
      {error !== undefined && <ErrorBox error={error} retry={() => { setError(undefined); setPages(new Map(pages)); }} />}
      <div ref={box} tabIndex={0} role="table" aria-label={label} aria-rowcount={total + 1} aria-colcount={first.columns.length + 1} className="overflow-auto border-b border-line text-xs" style={{ height: `min(60vh, ${headHeight + count * rowHeight + scrollbar}px)` }}>
        <div role="rowgroup" className="sticky top-0 z-10 bg-panel" style={{ width, minWidth: "100%" }}>
          <div role="row" aria-rowindex={1} className="relative h-10 border-b border-line">
            <span role="columnheader" className="sticky left-0 z-10 inline-block h-9.75 bg-panel px-2 py-2.5 text-dim" style={{ width: idWidth }}>row</span>
            {cols.getVirtualItems().map((c) => (
              <span key={c.key} role="columnheader" aria-colindex={c.index + 2} title={visible(first.columns[c.index]!.name)} className={cx("absolute top-0 truncate px-2 py-1 font-medium", numeric(first.columns[c.index]!.type) && "text-right")} style={{ left: idWidth + c.start, width: c.size }}>
                {visible(first.columns[c.index]!.name)}<span className="block font-normal text-dim">{visible(first.columns[c.index]!.type)}</span>
              </span>
            ))}
          </div>
        </div>
        <div role="rowgroup" className="relative" style={{ height: rows.getTotalSize(), width, minWidth: "100%" }}>
          {drawn.map((r) => {
            const n = base + r.index;
            const row = pages.get(Math.floor(n / pageRows))?.[n % pageRows];
            return (
              <div key={r.key} role="row" aria-rowindex={n + 2} className={cx("absolute inset-x-0", n % 2 === 1 && "bg-sunk")} style={{ transform: `translateY(${r.start}px)`, height: rowHeight }}>
                <span role="rowheader" className={cx("sticky left-0 inline-block h-full overflow-hidden", n % 2 === 1 ? "bg-sunk" : "bg-panel")} style={{ width: idWidth }}>
                  <button type="button" className="block w-full truncate rounded px-2 py-1 text-left font-mono text-dim hover:text-ink hover:underline" title={`show row ${n}`} onClick={() => setWhole(n)}>{row ? visible(row.id) : n}</button>
                </span>
                {cols.getVirtualItems().map((c) => {
                  const cell = row?.cells[c.index];
                  return <span key={c.key} role="cell" aria-colindex={c.index + 2} className={cx("absolute top-0 truncate px-2 py-1 font-mono", numeric(first.columns[c.index]!.type) && "text-right")} style={{ left: idWidth + c.start, width: c.size }}>{!row ? "…" : cell === null || cell === undefined ? <span className="text-dim">∅<span className="sr-only">missing</span></span> : visible(cell.slice(0, 200))}</span>;
                })}
              </div>
            );
          })}
        </div>
      </div>
      <footer className="flex flex-wrap items-center gap-2 px-3 py-1.5 text-xs text-dim">
        <span role="status">{grouped(total)} {total === 1 ? "row" : "rows"}, {first.columns.length} {first.columns.length === 1 ? "column" : "columns"}{base > 0 || count < total ? `; rows ${grouped(base)} to ${grouped(base + count - 1)} can be scrolled to` : ""}</span>
        {total > pageRows && (
          <form className="ml-auto flex items-center gap-1" onSubmit={(e) => { e.preventDefault(); goTo(Number(new FormData(e.currentTarget).get("row"))); }}>
            <label>Go to row <input name="row" inputMode="numeric" pattern="[0-9]*" className={`${field} w-24! py-0.5 text-xs`} /></label>
            <Button type="submit" tone="quiet">Go</Button>
          </form>
        )}
      </footer>
      {whole !== undefined && <WholeRow n={whole} read={read} onClose={() => setWhole(undefined)} />}
    </div>
  );
}

const numeric = (type: string) => type === "integer" || type === "number";

function WholeRow({ n, read, onClose }: { n: number; read: Read; onClose: () => void }) {
  const [row, setRow] = useState<TableRow>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    let gone = false;
    read(n, 1, true).then((p) => !gone && setRow(p.rows[0]), (e: unknown) => !gone && setError(e));
    return () => {
      gone = true;
    };
  }, [n, read]);
  return (
    <Dialog wide title={`Row ${n}`} onClose={onClose}>
      {error !== undefined && <ErrorBox error={error} />}
      {row && <Json value={row.value} />}
    </Dialog>
  );
}

// A part of a long list at a time: a run may have thousands of steps, and a page that
// draws them all stands still. The part moves by portions when somebody scrolls to its
// edge, and what is looked at stays where it is.

import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button } from "./ui";

const portion = 40;
const most = 3 * portion; // drawn at a time

interface Props {
  count: number;
  /** What a button calls one of them: "step". */
  what: string;
  render: (i: number) => ReactNode;
}

/** Draws entries of a list of which each has a key of its own; the last ones, while nobody scrolls. */
export function Steps({ count, what, render }: Props) {
  const [end, setEnd] = useState<number>(); // of the part; nothing: that of the list
  const box = useRef<HTMLDivElement>(null);
  const held = useRef<{ index: string; top: number }>(undefined);
  const last = end === undefined ? count : Math.min(end, count);
  // The beginning moves by portions, not with each new step.
  const first = Math.max(0, Math.ceil((last - most) / portion) * portion);
  const move = (to: number) => {
    const scroller = box.current?.closest("[role=log]");
    if (scroller) {
      const edge = scroller.getBoundingClientRect().top;
      for (const e of box.current!.querySelectorAll<HTMLElement>(":scope > [data-index]")) {
        const at = e.getBoundingClientRect();
        if (at.bottom <= edge) continue;
        held.current = { index: e.dataset.index!, top: at.top };
        break;
      }
    }
    setEnd(to >= count ? undefined : to);
  };
  useLayoutEffect(() => {
    const h = held.current;
    held.current = undefined;
    const scroller = box.current?.closest("[role=log]");
    const e = h && box.current!.querySelector<HTMLElement>(`:scope > [data-index="${h.index}"]`);
    if (scroller && e) scroller.scrollTop += e.getBoundingClientRect().top - h.top;
  }, [first, last]);
  return (
    <div ref={box} className="flex flex-col gap-2.5">
      <Edge key={`before ${first}`} left={first} name={`earlier ${what}`} onReach={() => move(Math.max(most, last - portion))} />
      {Array.from({ length: last - first }, (_, i) => <div key={first + i} data-index={first + i}>{render(first + i)}</div>)}
      <Edge key={`after ${last}`} left={count - last} name={`later ${what}`} onReach={() => move(last + portion)} />
    </div>
  );
}

/** Stands for what is not drawn, and has it drawn when it comes into sight. */
function Edge({ left, name, onReach }: { left: number; name: string; onReach: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  const reached = useRef(onReach);
  useEffect(() => {
    reached.current = onReach;
  });
  useEffect(() => {
    if (left === 0 || !box.current) return;
    const o = new IntersectionObserver((seen) => seen.some((s) => s.isIntersecting) && reached.current(), { root: box.current.closest("[role=log]"), rootMargin: "400px 0px" });
    o.observe(box.current);
    return () => o.disconnect();
  }, [left]);
  if (left === 0) return null;
  return <div ref={box} className="text-center"><Button tone="quiet" onClick={onReach}>{left} {name}{left > 1 && "s"}</Button></div>;
}

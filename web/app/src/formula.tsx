// Formulas, written as TeX, shown as MathML. What draws them is loaded with the first one.

import { memo, useEffect, useRef } from "react";

const maxFormula = 5000; // characters

/** A formula; its text until it can be drawn, and where it cannot. */
export const Formula = memo(function Formula({ tex, display }: { tex: string; display?: boolean }) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (tex.length > maxFormula) return;
    let gone = false;
    void import("./mathml").then((m) => gone || box.current?.replaceChildren(m.mathml(tex, !!display)), () => undefined);
    return () => {
      gone = true;
    };
  }, [tex, display]);
  // The key makes a new element for another formula, because what is in the old one is not React's.
  return <span key={tex} ref={box} className={display ? "block overflow-x-auto py-1" : undefined}>{tex}</span>;
});

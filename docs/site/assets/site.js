// What the pages do beyond reading: the menu of narrow screens, the theme, the versions, copying, the search. Without
// it, everything can be read and reached.
const root = new URL(".", document.querySelector("link[rel=home]").href);
const $ = (selector) => document.querySelector(selector);

function menu() {
  const button = $(".menu"), side = $(".side");
  button.hidden = false;
  side.classList.add("closed");
  button.addEventListener("click", () => {
    const closed = side.classList.toggle("closed");
    button.setAttribute("aria-expanded", String(!closed));
  });
  const here = $(".nav [aria-current]");
  if (here && here.offsetTop > side.clientHeight) side.scrollTop = here.offsetTop - side.clientHeight / 2;
}

function theme() {
  const button = $(".theme"), system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem("tenon-docs-theme", next); } catch { /* storage may be off: the choice lasts for the page */ }
    label();
  });
  system.addEventListener("change", label);
  label();
  button.hidden = false;
}

// load reads a script of data, which works from files, too, where fetch does not.
function load(address) {
  return new Promise((done, fail) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = done;
    script.onerror = fail;
    document.head.append(script);
  });
}

// versions lists the folders beside this version's. A page that another version lacks is its first page.
async function versions() {
  const select = $(".versions select"), current = select.value || select.textContent.trim();
  await load(new URL("../versions.js", root).href);
  const here = location.href.split(/[?#]/)[0].slice(root.href.length);
  select.replaceChildren(...window.tenonVersions.map(({ name, pages }) => {
    const page = pages.includes(here) ? here : "index.html";
    const option = new Option(name, new URL(`../${name}/${page}`, root).href, false, name === current);
    return option;
  }));
  select.addEventListener("change", () => { location.href = select.value; });
}

function copying() {
  if (!navigator.clipboard) return;
  for (const block of document.querySelectorAll(".code")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const text = block.querySelector("pre").textContent;
      // Of a session at a terminal, the commands are copied, not their output.
      const typed = block.dataset.language === "console" ? text.split("\n").filter((l) => l.startsWith("$ ")) : [];
      await navigator.clipboard.writeText(typed.length ? typed.map((l) => l.slice(2)).join("\n") + "\n" : text);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
  }
}

const words = (text) => text.toLowerCase().split(/[^\p{L}\p{N}_-]+/u).filter(Boolean);

// find returns the best places of the index: every word must occur, and titles count more than texts.
function find(index, query) {
  const asked = words(query);
  if (!asked.length) return [];
  const hits = [];
  for (const [url, title, group, heading, text] of index) {
    const fields = [[title, heading ? 6 : 14], [heading, 9], [text, 1]];
    let score = 0;
    for (const word of asked) {
      let best = 0;
      for (const [field, weight] of fields) {
        const at = field.toLowerCase().indexOf(word);
        if (at < 0) continue;
        const begins = at === 0 || !/[\p{L}\p{N}]/u.test(field[at - 1]);
        const ends = !/[\p{L}\p{N}]/u.test(field[at + word.length] ?? " ");
        best += weight * (begins ? (ends ? 3 : 2) : 0.5);
      }
      if (!best) { score = 0; break; }
      score += best;
    }
    if (score) hits.push({ url, title, group, heading, text, score: group === "Guide" ? score * 1.2 : score });
  }
  hits.sort((a, b) => b.score - a.score);
  const perPage = new Map();
  return hits.filter((hit) => {
    const page = hit.url.split("#")[0], count = (perPage.get(page) ?? 0) + 1;
    perPage.set(page, count);
    return count <= 2;
  }).slice(0, 12);
}

// excerpt appends the text around the first word, with all words marked.
function excerpt(to, text, query) {
  const asked = words(query), lower = text.toLowerCase();
  const places = asked.map((w) => lower.indexOf(w)).filter((i) => i >= 0);
  const at = places.length ? Math.max(0, Math.min(...places) - 40) : 0;
  let part = (at > 0 ? "…" : "") + text.slice(at, at + 130) + (at + 130 < text.length ? "…" : "");
  while (part) {
    const low = part.toLowerCase();
    const next = asked.map((w) => [low.indexOf(w), w.length]).filter(([i]) => i >= 0).sort((a, b) => a[0] - b[0])[0];
    if (!next) { to.append(part); break; }
    to.append(part.slice(0, next[0]));
    const mark = document.createElement("mark");
    mark.textContent = part.slice(next[0], next[0] + next[1]);
    to.append(mark);
    part = part.slice(next[0] + next[1]);
  }
}

function search() {
  const form = $(".search"), input = $(".search input"), list = $("#found"), none = $(".search .none");
  form.hidden = false;
  let loading = null, chosen = -1, shown = [];
  const ready = () => (loading ??= load(new URL("search.js", root).href));
  const choose = (n) => {
    chosen = n;
    [...list.children].forEach((item, i) => {
      item.setAttribute("aria-selected", String(i === n));
      if (i === n) item.scrollIntoView({ block: "nearest" });
    });
    if (n >= 0) input.setAttribute("aria-activedescendant", `found-${n}`);
    else input.removeAttribute("aria-activedescendant");
  };
  const close = () => {
    list.hidden = true;
    none.textContent = "";
    input.setAttribute("aria-expanded", "false");
    choose(-1);
  };
  const open = (hit) => { location.href = new URL(hit.url, root).href; close(); };
  const draw = async () => {
    const query = input.value;
    if (!query.trim()) { close(); return; }
    try { await ready(); } catch { none.textContent = "The index cannot be read."; loading = null; return; }
    if (query !== input.value) return;
    shown = find(window.tenonIndex, query);
    list.replaceChildren(...shown.map((hit, i) => {
      const item = document.createElement("li"), name = document.createElement("b");
      const place = document.createElement("span"), text = document.createElement("span");
      item.id = `found-${i}`;
      item.setAttribute("role", "option");
      name.textContent = hit.heading || hit.title;
      place.className = "place";
      place.textContent = hit.heading ? `${hit.group} / ${hit.title}` : hit.group;
      text.className = "text";
      excerpt(text, hit.text, query);
      item.append(name, place, text);
      item.addEventListener("mousedown", (e) => { e.preventDefault(); open(hit); });
      return item;
    }));
    list.hidden = !shown.length;
    input.setAttribute("aria-expanded", String(!!shown.length));
    none.textContent = shown.length ? "" : `Nothing contains all words of “${query.trim()}”.`;
    choose(shown.length ? 0 : -1);
  };
  input.addEventListener("focus", () => { void ready().catch(() => { loading = null; }); });
  input.addEventListener("input", () => void draw());
  input.addEventListener("blur", close);
  form.addEventListener("submit", (e) => e.preventDefault());
  input.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" && shown.length) choose((chosen + 1) % shown.length);
    else if (e.key === "ArrowUp" && shown.length) choose((chosen + shown.length - 1) % shown.length);
    else if (e.key === "Enter" && shown[chosen]) open(shown[chosen]);
    else if (e.key === "Escape") { close(); input.blur(); }
    else return;
    e.preventDefault();
  });
  document.addEventListener("keydown", (e) => {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
    e.preventDefault();
    input.focus();
  });
}

menu();
theme();
copying();
search();
versions().catch(() => { /* a site of one version has no list */ });

// Templates of URIs (RFC 6570): the names in them, and the URI that values make of one.

interface Expression {
  operator: string; // one of + # . / ; ? & or none
  variables: { name: string; explode: boolean; length?: number }[];
}

const expression = /\{([+#./;?&]?)([\w.%,*:]+)\}/g;

function parse(operator: string, list: string): Expression {
  const variables = list.split(",").filter(Boolean).map((v) => {
    const [, name = v, length, explode] = /^([\w.%]+)(?::(\d+))?(\*)?$/.exec(v) ?? [];
    return { name, explode: !!explode, ...(length ? { length: Number(length) } : {}) };
  });
  return { operator, variables };
}

/** The names of a template's variables, each once, in their order. */
export function variables(template: string): string[] {
  const names = [...template.matchAll(expression)].flatMap(([, operator, list]) => parse(operator!, list!).variables.map((v) => v.name));
  return [...new Set(names)];
}

const first: Record<string, string> = { "#": "#", ".": ".", "/": "/", ";": ";", "?": "?", "&": "&" };
const between: Record<string, string> = { ".": ".", "/": "/", ";": ";", "?": "&", "&": "&" };

/** The URI of a template with values. A variable without a value is left out. */
export function expand(template: string, values: Record<string, string>): string {
  return template.replace(expression, (_, operator: string, list: string) => {
    const reserved = operator === "+" || operator === "#";
    const named = operator === ";" || operator === "?" || operator === "&";
    const parts = parse(operator, list).variables.flatMap(({ name, length }) => {
      const value = values[name];
      if (value === undefined || value === "") return [];
      const cut = length === undefined ? value : [...value].slice(0, length).join("");
      const text = reserved ? encodeReserved(cut) : encode(cut);
      return [named ? `${name}=${text}` : text];
    });
    return parts.length === 0 ? "" : (first[operator] ?? "") + parts.join(between[operator] ?? ",");
  });
}

const encode = (text: string) => encodeURIComponent(whole(text)).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

/** Keeps reserved characters, and what is encoded already. */
const encodeReserved = (text: string) => encodeURI(whole(text)).replace(/%25([0-9a-fA-F]{2})/g, "%$1").replaceAll("%5B", "[").replaceAll("%5D", "]");

/** Without halves of surrogate pairs, which cannot be encoded. */
const whole = (text: string) => text.replace(/\p{Cs}/gu, "\ufffd");

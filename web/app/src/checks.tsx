// What the doctor found: of everything, or on the way to one server.

import type { Check } from "./types";
import { Badge, type BadgeTone, Phases, To, cx, millis, path, visible } from "./ui";

const looks: Record<Check["status"], [BadgeTone, string]> = { ok: ["ok", "✓"], warn: ["warn", "▲"], fail: ["bad", "✕"], skip: ["dim", "–"] };

export function Checks({ checks }: { checks: Check[] }) {
  return (
    <ul aria-label="Checks" className="divide-y divide-line">
      {checks.map((c, i) => {
        const [tone, mark] = looks[c.status];
        return (
          <li key={i} data-status={c.status} className="flex flex-col gap-1 px-3 py-2 text-sm">
            <p className="flex flex-wrap items-center gap-2">
              <Badge tone={tone}><span aria-hidden className="mr-1">{mark}</span>{c.status}</Badge>
              <span className="font-medium">{c.area}</span>
              {c.name && <span className="min-w-0 font-mono text-xs break-all">{c.area === "server" || c.area === "tool" ? <To to={path(`${c.area}s`, c.name)}>{visible(c.name)}</To> : visible(c.name)}</span>}
              <span className="ml-auto text-xs text-dim">{c.duration_ms > 0 && millis(c.duration_ms)}</span>
            </p>
            <p className={cx("whitespace-pre-wrap break-words", c.status === "fail" ? "text-bad" : "text-dim")}>{visible(c.text)}</p>
            {c.phases && c.phases.length > 0 && <Phases phases={c.phases} />}
            {c.remedy && <p className="break-words"><span aria-hidden>→ </span><span className="sr-only">What to do: </span>{visible(c.remedy)}</p>}
          </li>
        );
      })}
    </ul>
  );
}

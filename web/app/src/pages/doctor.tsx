// The doctor: everything that a run needs, and what to do where it does not work.

import { useQuery } from "@tanstack/react-query";
import { post, type Page } from "../api";
import { Checks } from "../checks";
import { useMe } from "../data";
import type { Check } from "../types";
import { Ago, Button, Empty, ErrorBox, Panel, count } from "../ui";

export default function Doctor() {
  const owner = useMe().data?.owner;
  const found = useQuery({ queryKey: ["doctor"], queryFn: () => post<Page<Check>>("/api/v1/doctor"), enabled: !!owner });
  if (!owner) return <Empty>Only the owner of this tenon may look at what it needs.</Empty>;
  const checks = found.data?.items ?? [];
  const n = (s: Check["status"]) => checks.filter((c) => c.status === s).length;
  // What is wrong comes first.
  const order: Check["status"][] = ["fail", "warn", "ok", "skip"];
  return (
    <div className="mx-auto flex max-w-4xl flex-col gap-3 p-3 md:p-5">
      <header className="flex flex-wrap items-center gap-2">
        <h1 className="text-lg font-semibold">Doctor</h1>
        <span role="status" className="text-sm text-dim">
          {found.isFetching ? "Looking at servers and models…" : found.data ? n("fail") ? `${count(n("fail"))} wrong${n("warn") ? `, ${n("warn")} to look at` : ""}` : n("warn") ? `nothing is wrong, ${n("warn")} to look at` : "all is well" : ""}
          {found.data && !found.isFetching && <>, <Ago time={found.dataUpdatedAt} /></>}
        </span>
        <Button className="ml-auto" disabled={found.isFetching} onClick={() => void found.refetch()}>Look again</Button>
      </header>
      {found.isError && <ErrorBox error={found.error} />}
      {checks.length > 0 && <Panel><Checks checks={order.flatMap((s) => checks.filter((c) => c.status === s))} /></Panel>}
      <p className="text-xs text-dim">Servers are connected as a run would connect them. Models are reached and not asked anything; <code className="font-mono">tenon doctor --ask-models</code> asks them.</p>
    </div>
  );
}

import { expect, test } from "vitest";
import { renameStep, wrongName } from "./flowrename";

const flow = {
  inputs: [{ name: "rates" }],
  steps: [
    { id: "total", sql: "SELECT 1 AS total" },
    { id: "sum", sql: "SELECT total, total.n, 'total' FROM total JOIN \"total\" AS t ON t.n = total.n, rates -- total\nWHERE total > :total" },
    { id: "call", tool: "add", args: { a: "steps.total.count", b: "'steps.total'", c: ["steps['total'].rows", 3], d: "steps.total2.count + mine.steps.total" }, after: ["total", "sum"], when: "steps . total.ok" },
    { id: "other", tool: "flow", inputs: { in: "total", out: "total.port" }, foreach: { items: "steps.total.rows" }, on_error: { default: "steps.total.text" } },
    { id: "words", template: "steps.total is {{ steps.total.text }} {{ params.total }}" },
    { id: "ports", sql: "SELECT * FROM total_port, total_other" },
    { id: "total_other", table: { rows: "steps.total.rows" } },
  ],
  outputs: [{ name: "total", from: "total" }, { name: "b", from: "total.port" }],
  message: "total",
};

test("UX-10: a step's new name stands wherever the step was named, and nowhere else", () => {
  const changes = Object.fromEntries(renameStep(flow, 0, "all").map((c) => [c.path.join("."), c.value]));
  expect(changes).toEqual({
    "steps.0.id": "all",
    "steps.1.sql": "SELECT total, all.n, 'total' FROM all JOIN \"all\" AS t ON t.n = all.n, rates -- total\nWHERE total > :total",
    "steps.2.args.a": "steps.all.count",
    "steps.2.args.c.0": "steps['all'].rows",
    "steps.2.after.0": "all",
    "steps.2.when": "steps . all.ok",
    "steps.3.inputs.in": "all",
    "steps.3.inputs.out": "all.port",
    "steps.3.foreach.items": "steps.all.rows",
    "steps.3.on_error.default": "steps.all.text",
    "steps.4.template": "steps.total is {{ steps.all.text }} {{ params.total }}",
    "steps.5.sql": "SELECT * FROM all_port, total_other",
    "steps.6.table.rows": "steps.all.rows",
    "outputs.0.from": "all",
    "outputs.1.from": "all.port",
    "message": "all",
  });
});

test("UX-10: a step without a name, a message as an object, and hostile values", () => {
  expect(renameStep({ steps: [{ tool: "x" }] }, 0, "a")).toEqual([{ path: ["steps", 0, "id"], value: "a" }]);
  expect(renameStep({ steps: [{ id: "a" }], message: { from: "a" } }, 0, "b")).toContainEqual({ path: ["message", "from"], value: "b" });
  for (const steps of [null, 3, [null, 3, []], [{ id: "a", sql: 3, args: "x", after: "a", inputs: [null] }]]) expect(renameStep({ steps, outputs: "x", message: 3 }, 0, "b").length).toBeGreaterThan(0);
});

test("UX-10: names that a step cannot have", () => {
  expect(wrongName("a_1", ["b"])).toBeUndefined();
  for (const n of ["", "1a", "a b", "b"]) expect(wrongName(n, ["b"])).toBeTruthy();
});

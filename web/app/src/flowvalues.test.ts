import { expect, test } from "vitest";
import { literal, nextId, written } from "./flowvalues";

test("UX-10: a literal text has quotes in the file and none in the form", () => {
  for (const t of ["London", "it's", "a\\b", ""]) expect(literal(written(t, false, "string"))).toEqual({ text: t, cel: false });
  expect(literal("params.city")).toEqual({ text: "params.city", cel: true });
  expect(literal("'a' + 'b'")).toEqual({ text: "'a' + 'b'", cel: true });
  expect(literal(3)).toEqual({ text: "3", cel: false });
});

test("UX-10: values follow the type of the schema", () => {
  expect(written("3", false, "integer")).toBe(3);
  expect(written("true", false, "boolean")).toBe(true);
  expect(written("3", false, "string")).toBe("'3'");
  expect(written("params.n", true, "integer")).toBe("params.n");
  expect(written('[1, "steps.a.value"]', false, "array")).toEqual([1, "steps.a.value"]);
});

test("UX-10: a new step has a free name", () => {
  expect(nextId("sql", [])).toBe("sql");
  expect(nextId("sql", ["sql", "sql2"])).toBe("sql3");
});

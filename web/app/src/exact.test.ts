import { expect, test } from "vitest";
import { Exact, number, parse } from "./exact";

const able = "rawJSON" in JSON;

test.runIf(able)("what is read is what is written", () => {
  for (const text of ['{"id":9007199254740993,"n":[1,2.5,-3]}', "[123456789012345678901234567890]", "-9007199254740993", "0.12345678901234567890", '{"a":"9007199254740993"}', "1e400"]) expect(JSON.stringify(parse(text))).toBe(text === "1e400" ? "null" : text);
  expect(parse('{"a":9007199254740991}')).toEqual({ a: 9007199254740991 });
  expect(parse('{"a":"12345678901234567890"}')).toEqual({ a: "12345678901234567890" });
  expect(() => parse("{12345678901234567890}")).toThrow();
});

test("the number of a text", () => {
  expect([number("1"), number("2.50"), number("-0.1"), number("1e3")]).toEqual([1, 2.5, -0.1, 1000]);
  for (const bad of ["x", "1x", "12345678901234567890x"]) expect(number(bad)).toBeNaN();
  if (able) expect(number("9007199254740993")).toEqual(new Exact("9007199254740993"));
});

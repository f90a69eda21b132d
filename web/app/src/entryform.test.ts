import { describe, expect, it } from "vitest";
import { changedKeys, formSchema } from "./entryform";
import { Unreadable, problems } from "./schema";

describe("UX-10 forms for entries", () => {
  const raw = {
    type: "object",
    properties: {
      timeout: { $ref: "#/$defs/duration", description: "How long.", default: "5m" },
      limits: { type: "object", properties: { cost: { type: "number" }, turns: { type: "integer", default: 50 } } },
      instructions: { anyOf: [{ type: "string" }, { type: "object", properties: { file: { type: "string" }, text: { type: "string" } } }], description: "Prompt.", type: "object" },
      tags: { type: ["array", "null"], items: { type: "string" } },
    },
    $defs: { duration: { anyOf: [{ type: "string", pattern: "^x$" }, { type: "number" }] } },
  };
  const schema = formSchema(raw);

  it("resolves references, and says defaults", () => {
    expect(schema.properties?.timeout).toEqual({ type: "string", pattern: "^x$", description: "How long. Default: 5m." });
    expect(schema.properties?.limits?.properties?.turns).toEqual({ type: "integer", description: "Default: 50." });
  });

  it("takes a text of several lines where it may be an object, unless it is one", () => {
    expect(schema.properties?.instructions).toMatchObject({ type: "string", description: "Prompt." });
    expect(schema.properties!.instructions!.maxLength).toBeGreaterThan(10_000);
    expect(changedKeys(schema, {}, { instructions: "Be nice.\nAlways." })).toEqual({ instructions: "Be nice.\nAlways." });
    const object = formSchema(raw, { instructions: { file: "x.md" } });
    expect(object.properties?.instructions?.properties?.file).toEqual({ type: "string" });
  });

  it("refuses what is not JSON", () => {
    expect(problems(schema, { limits: new Unreadable("{") })).toHaveProperty("/limits");
    expect(problems(schema, {})).toEqual({});
  });

  it.each([
    ["nothing", { a: 1 }, { a: 1 }, {}],
    ["a value", { timeout: "1s" }, { timeout: "2s" }, { timeout: "2s" }],
    ["a removed value", { timeout: "1s" }, {}, { timeout: null }],
    ["one value of an object", { limits: { cost: 1, turns: 2 } }, { limits: { cost: 1, turns: 3 } }, { "limits.turns": 3 }],
    ["a new object", {}, { limits: { cost: 1 } }, { "limits.cost": 1 }],
    ["a removed value of an object", { limits: { cost: 1, turns: 2 } }, { limits: { cost: 1 } }, { "limits.turns": null }],
    ["a removed object", { limits: { cost: 1 } }, {}, { limits: null }],
    ["a list", { tags: ["a"] }, { tags: ["a", "b"] }, { tags: ["a", "b"] }],
    ["an object in a short form", { limits: "x" }, { limits: { cost: 1 } }, { limits: { cost: 1 } }],
  ])("finds %s", (_, before, after, want) => {
    expect(changedKeys(schema, before, after)).toEqual(want);
  });
});

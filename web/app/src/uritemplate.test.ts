import { describe, expect, test } from "vitest";
import { expand, variables } from "./uritemplate";

describe("UX-11 templates of URIs", () => {
  // the examples of RFC 6570, section 1.2, for texts
  const values = { var: "value", hello: "Hello World!", path: "/foo/bar", x: "1024", y: "768", empty: "" };
  for (const [template, want] of [
    ["{var}", "value"], ["{hello}", "Hello%20World%21"], ["{+var}", "value"], ["{+hello}", "Hello%20World!"],
    ["{+path}/here", "/foo/bar/here"], ["here?ref={+path}", "here?ref=/foo/bar"], ["X{#var}", "X#value"],
    ["map?{x,y}", "map?1024,768"], ["{x,hello,y}", "1024,Hello%20World%21,768"], ["{+x,hello,y}", "1024,Hello%20World!,768"],
    ["{#path,x}/here", "#/foo/bar,1024/here"], ["X{.var}", "X.value"], ["{/var,x}/here", "/value/1024/here"],
    ["{;x,y}", ";x=1024;y=768"], ["{?x,y}", "?x=1024&y=768"], ["?fixed=yes{&x}", "?fixed=yes&x=1024"], ["{var:3}", "val"],
    ["{?none}", ""], ["file:///{path*}", "file:///%2Ffoo%2Fbar"], ["no variables", "no variables"], ["{not closed", "{not closed"],
  ] as const) {
    test(template, () => expect(expand(template, values)).toBe(want));
  }
  test("names", () => expect(variables("a{x}{?y,x}{/z*}")).toEqual(["x", "y", "z"]));
});

// The graph of a workflow: its arrows run behind no box.

import AxeBuilder from "@axe-core/playwright";
import { Project, expect, test, visit } from "./tenon";

let p: Project;

test.beforeAll(async () => {
  p = new Project();
  p.write("skips.yaml", `kind: workflow
version: 1
name: skips
parameters:
  city: {type: string, description: Which city, default: London}
steps:
  - {id: first, template: "to {{ params.city }}"}
  - {id: second, template: "after {{ steps.first.text }}"}
  - {id: third, template: "after {{ steps.second.text }}"}
  - {id: last, template: "{{ steps.first.text }}, {{ steps.second.text }}, {{ steps.third.text }}"}
message: last
`);
  p.write("tenon.yaml", "version: 1\nname: graph\ntools:\n  skips: {kind: workflow, path: skips.yaml}\n");
  await p.serve();
});

test.afterAll(() => p.end());

for (const width of [1440, 400]) {
  for (const theme of ["light", "dark"]) {
    test(`UX-13 the arrows of a workflow run behind no box, at ${width} px, ${theme}`, async ({ chrome }) => {
      const { page, wrong } = await visit(chrome, p, "/workflows/skips", { width, height: 900 });
      await page.evaluate((t) => { document.documentElement.dataset.theme = t; }, theme);
      await expect(page.locator("[data-flow-step]")).toHaveCount(4);
      const behind = await page.evaluate(() => {
        const boxes = [...document.querySelectorAll<SVGGElement>("[data-flow-step]")].map((g) => ({ id: g.dataset.flowStep, at: g.transform.baseVal.getItem(0).matrix }));
        return [...document.querySelectorAll<SVGPathElement>("[data-flow-edge]")].flatMap((path, i) => {
          const length = path.getTotalLength();
          const points = Array.from({ length: 200 }, (_, n) => path.getPointAtLength((length * n) / 199));
          return boxes.filter(({ at }) => points.some((q) => q.x > at.e + 1 && q.x < at.e + 189 && q.y > at.f + 1 && q.y < at.f + 49)).map((b) => `arrow ${i} behind ${b.id}`);
        });
      });
      expect(await page.locator("[data-flow-edge]").count()).toBeGreaterThan(4);
      expect(behind).toEqual([]);
      expect((await new AxeBuilder({ page }).analyze()).violations.map((v) => `${v.id}: ${v.nodes[0]?.html}`)).toEqual([]);
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/graph-${width}-${theme}.png` });
      expect(wrong).toEqual([]);
    });
  }
}

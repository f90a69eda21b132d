// Reads and writes Arrow tables with apache-arrow: dump MODULES FILE..., write MODULES FILE
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [what, modules, ...files] = process.argv.slice(2);
const arrow = createRequire(modules + '/x.js')('apache-arrow');

const plain = (v) => {
  if (v === null || v === undefined) return null;
  if (typeof v === 'bigint') return Number(v);
  if (typeof v !== 'object') return v;
  if (v instanceof arrow.Vector) return [...v].map(plain);
  return Object.fromEntries(Object.entries(v.toJSON ? v.toJSON() : v).map(([k, e]) => [k, plain(e)]));
};

if (what === 'dump') {
  const out = files.map((f) => {
    const t = arrow.tableFromIPC(readFileSync(f));
    return {
      columns: t.schema.fields.map((c) => ({ name: c.name, metadata: Object.fromEntries(c.metadata) })),
      metadata: Object.fromEntries(t.schema.metadata),
      batches: t.batches.map((b) => b.numRows),
      rows: [...t].map(plain),
    };
  });
  console.log(JSON.stringify(out));
} else {
  const { Field, Struct, Utf8, Int8, Int32 } = arrow;
  const types = [new Int8(), new Utf8(), new Utf8(), new Utf8(), new Utf8(), new Utf8(), new Int32(), new Utf8(), new Utf8()];
  const storage = new Struct(types.map((t, i) => new Field(String(i), t, true)));
  const rows = [0, 1, 2].map((i) => i === 1 ? null :
    { 0: 1, 1: `js_${i}`, 2: 'from JavaScript', 3: '{}', 4: null, 5: null, 6: -1, 7: null, 8: 'http://127.0.0.1:9/mcp' });
  const builder = arrow.makeBuilder({ type: storage, nullValues: [null, undefined] });
  rows.forEach((r) => builder.append(r));
  const cell = builder.finish().toVector();
  const meta = new Map([['ARROW:extension:name', 'knime.logical_type'],
    ['ARROW:extension:metadata', '{"value_factory_class":"org.knime.core.node.agentic.tool.ToolValueFactory"}']]);
  const schema = new arrow.Schema([new Field('Tools', storage, true, meta)]);
  const batch = new arrow.RecordBatch(schema, arrow.makeData({ type: new Struct(schema.fields), children: [cell.data[0]], length: rows.length }));
  writeFileSync(files[0], arrow.tableToIPC(new arrow.Table(schema, [batch]), 'file'));
  console.log(JSON.stringify(rows));
}

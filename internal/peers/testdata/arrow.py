"""Reads and writes Arrow tables with pyarrow.

dump FILE...  prints what it finds: columns with types and extension, metadata, rows
write FOLDER  writes tables in many forms, and prints what is in each
"""
import json
import os
import sys

import pyarrow as pa
import pyarrow.ipc as ipc


def open_table(path):
    with open(path, "rb") as f:
        data = f.read()
    if data.startswith(b"ARROW1"):
        reader = ipc.open_file(data)
        batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
    else:
        reader = ipc.open_stream(data)
        batches = list(reader)
    return reader.schema, batches


def dump(path):
    schema, batches = open_table(path)
    for b in batches:
        b.validate(full=True)
    text = lambda m: {k.decode(): v.decode() for k, v in (m or {}).items()}
    rows = [r for b in batches for r in b.to_pylist()]
    columns = [{"name": f.name, "type": str(f.type), "metadata": text(f.metadata)} for f in schema]
    return {"columns": columns, "metadata": text(schema.metadata), "batches": [b.num_rows for b in batches], "rows": rows}


PORT = pa.struct([pa.field(str(i), pa.string()) for i in range(4)])
CLASS = "org.knime.core.node.agentic.tool.ToolValueFactory"


def logical(name, storage):
    meta = {"ARROW:extension:name": "knime.logical_type", "ARROW:extension:metadata": json.dumps({"value_factory_class": CLASS})}
    return pa.field(name, storage, metadata=meta)


def seed9(text=pa.string(), kind=pa.int8(), ports=None):
    ports = ports or text
    types = [kind, text, text, text, ports, ports, pa.int32(), text, text]
    return pa.struct([pa.field(str(i), t) for i, t in enumerate(types)])


def tool(i, ports=None):
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "number"}}})
    return {"0": 1, "1": "tool_%d" % i, "2": "Tool – %d" % i, "3": schema, "4": ports, "5": None, "6": -1, "7": None, "8": "http://127.0.0.1:9/mcp"}


def dictionary(array):
    """The strings of a struct as dictionaries."""
    kids = [array.field(i) for i in range(array.type.num_fields)]
    kids = [k.dictionary_encode() if pa.types.is_string(k.type) else k for k in kids]
    fields = [pa.field(str(i), k.type) for i, k in enumerate(kids)]
    return pa.StructArray.from_arrays(kids, fields=fields, mask=array.is_null())


def write(folder):
    tools = [tool(i) for i in range(10)]
    tools[3] = None
    ids = ["Row%d" % i for i in range(10)]
    plain = pa.array(tools, seed9())
    out = {}

    def put(name, arrays, fields, chunks=(10,), stream=False, compress=None, metadata=None, expect=tools):
        schema = pa.schema(fields, metadata=metadata)
        path = os.path.join(folder, name)
        make = ipc.new_stream if stream else ipc.new_file
        with make(path, schema, options=ipc.IpcWriteOptions(compression=compress, unify_dictionaries=not stream)) as w:
            at = 0
            for n in chunks:
                w.write_batch(pa.record_batch([a.slice(at, n) for a in arrays], schema=schema))
                at += n
        out[name] = expect

    rid = pa.array(ids)
    head = pa.field("<RowID>", pa.string())
    put("plain.arrow", [rid, plain], [head, logical("Tools", plain.type)])
    put("odd.arrow", [rid, plain], [head, logical("Tools", plain.type)], chunks=(1, 0, 3, 5, 0, 1))
    put("stream.arrow", [rid, plain], [head, logical("Tools", plain.type)], chunks=(4, 6), stream=True)
    put("lz4.arrow", [rid, plain], [head, logical("Tools", plain.type)], chunks=(4, 6), compress="lz4")
    put("zstd.arrow", [rid, plain], [head, logical("Tools", plain.type)], chunks=(4, 6), compress="zstd")
    large = pa.array(tools, seed9(pa.large_string()))
    put("large.arrow", [rid.cast(pa.large_string()), large], [pa.field("<RowID>", pa.large_string()), logical("Tools", large.type)])
    view = pa.array(tools, seed9(pa.string_view()))
    put("view.arrow", [rid, view], [head, logical("Tools", view.type)])
    wide = pa.array(tools, seed9(kind=pa.int64()))
    put("int64.arrow", [rid, wide], [head, logical("Tools", wide.type)])
    coded = dictionary(plain)
    put("dictionary.arrow", [rid.dictionary_encode(), coded], [pa.field("<RowID>", rid.dictionary_encode().type), logical("Tools", coded.type)], chunks=(5, 5))
    put("dictionary_stream.arrow", [rid.dictionary_encode(), coded], [pa.field("<RowID>", rid.dictionary_encode().type), logical("Tools", coded.type)], chunks=(5, 5), stream=True)
    lists = [tool(0, []), tool(1, [{"0": "in", "1": "", "2": "Table", "3": None}])]
    listed = pa.array(lists, seed9(ports=pa.list_(PORT)))
    put("lists.arrow", [listed], [logical("Tools", listed.type)], chunks=(1, 1), expect=lists)
    longer = pa.concat_arrays([plain, plain, plain])
    put("sliced.arrow", [rid, longer.slice(10, 10)], [head, logical("Tools", plain.type)], chunks=(3, 7))
    put("unnamed.arrow", [rid, plain], [pa.field("0", pa.string()), logical("1", plain.type)], metadata={"KNIME:basic:chunkSize": "10", "other": "kept"})
    print(json.dumps(out))


if sys.argv[1] == "dump":
    print(json.dumps([dump(p) for p in sys.argv[2:]]))
else:
    write(sys.argv[2])

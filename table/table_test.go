package table

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tenonhq/tenon"
)

var update = flag.Bool("update", false, "rewrite the tables that the command line's scripts read")

// accept is the folder of the tables for the command-line scripts.
const accept = "../internal/cli/testdata/accept"

const spec = `{"name":"default","columns":[{"name":"city","type":"String"},{"name":"amount","type":"Number (Float)"}]}`

var (
	report = Tool{Kind: Workflow, Name: "monthly_report", Description: "Sum sales per city",
		Parameters: `{"city":{"type":"string","default":"London","description":"City to report on"}}`,
		Inputs:     []Port{{"sales", "Sales rows", "Table", spec}, {"rates", "Rates", "Table", ""}},
		Outputs:    []Port{{"message", "What to say", "Table", ""}, {"totals", "Totals per city", "Table", spec}}, Message: 0,
		Keys: "v1:11111111-2222-4333-8444-555555555555:0:workflow_66666666-7777-4888-9999-aaaaaaaaaaaa:-1"}
	noPorts = Tool{Kind: Workflow, Name: "hello", Description: "", Parameters: `{}`, Message: -1,
		Keys: "v1:11111111-2222-4333-8444-555555555555:1:workflow_bbbbbbbb-7777-4888-9999-aaaaaaaaaaaa:-1"}
	add = Tool{Kind: MCP, Name: "add", Description: "Add two numbers", Message: -1, Remote: "add", Server: "http://127.0.0.1:8080/mcp",
		Parameters: `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`}
)

func rows(tools ...*Tool) []Row {
	list := make([]Row, len(tools))
	for i, t := range tools {
		list[i] = Row{ID: "Row" + string(rune('0'+i)), Tool: t}
	}
	return list
}

// write writes a table of tools of any kind to a temporary folder, or to accept.
func write(t *testing.T, path string, o WriteOptions, list ...*Tool) string {
	t.Helper()
	if filepath.Base(path) == path {
		path = filepath.Join(t.TempDir(), path)
	}
	if err := writeTools(t.Context(), path, rows(list...), o); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) *Reader {
	t.Helper()
	r, err := Open(context.Background(), path, Options{Legacy: LegacyAllow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func tools(t *testing.T, path string) []*Tool {
	t.Helper()
	r := read(t, path)
	c, err := r.Column("")
	if err != nil {
		t.Fatal(err)
	}
	var list []*Tool
	for row, err := range r.Tools(t.Context(), c) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, row.Tool)
	}
	return list
}

var sameTool = cmpopts.IgnoreUnexported(Tool{})

// raw writes a table of one tool column with hand-made cells.
func raw(t *testing.T, path string, class string, storage *arrow.StructType, fill func(*array.StructBuilder), n int) string {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: RowID, Type: arrow.BinaryTypes.String}, logical(ToolColumn, class, storage)}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range n {
		b.Field(0).(*array.StringBuilder).Append("Row" + string(rune('0'+i)))
	}
	fill(b.Field(1).(*array.StructBuilder))
	return rawBatch(t, path, b.NewRecordBatch())
}

func rawBatch(t *testing.T, path string, recs ...arrow.RecordBatch) string {
	t.Helper()
	o, err := WriteOptions{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(path) == path {
		path = filepath.Join(t.TempDir(), path)
	}
	w, err := create(context.Background(), path, recs[0].Schema(), nil, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range recs {
		if err := w.write(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.commit(); err != nil {
		t.Fatal(err)
	}
	return path
}

// java9 writes layout java9, which only tests write.
func java9(t *testing.T, path string, list ...*Tool) string {
	return raw(t, path, ClassTool, Java9.storage(), func(b *array.StructBuilder) {
		for _, tool := range list {
			if err := appendTool(b, Java9, tool); err != nil {
				t.Fatal(err)
			}
		}
	}, len(list))
}

// seed9 writes cells that no writer produces: kind 7, and both fields 7 and 8.
func seed9(t *testing.T, path string, list ...*Tool) string {
	return write(t, path, WriteOptions{}, list...)
}

// twoColumns writes a table of two tool columns and a text.
func twoColumns(t *testing.T, path string, first, second *Tool) {
	schema := arrow.NewSchema([]arrow.Field{{Name: RowID, Type: arrow.BinaryTypes.String}, logical("First", ClassTool, Seed9.storage()),
		logical("Second", ClassTool, Java10.storage()), {Name: "Note", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	b.Field(0).(*array.StringBuilder).Append("Row0")
	for i, l := range []Layout{Seed9, Java10} {
		if err := appendTool(b.Field(1+i).(*array.StructBuilder), l, []*Tool{first, second}[i]); err != nil {
			t.Fatal(err)
		}
	}
	b.Field(3).(*array.StringBuilder).Append("beside")
	rawBatch(t, path, b.NewRecordBatch())
}

// TestFixtures writes the tables for the command-line scripts and compares them with the files.
// Equal tools must give equal bytes.
func TestFixtures(t *testing.T) {
	bad := add
	bad.Kind = 7
	both := add
	both.Keys = "workflow_x"
	later := add
	later.Kind, later.Name = 107, "later"
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, l := range layouts {
		write(t, at(string(l)+".arrow"), WriteOptions{Layout: l}, &report, &noPorts)
	}
	java9(t, at("java9.arrow"), &report, &noPorts)
	write(t, at("old.arrow"), WriteOptions{Layout: Legacy6}, &report, &noPorts)
	seed9(t, at("mixed.arrow"), &report, &add)
	seed9(t, at("nulls.arrow"), &report, nil, &add)
	seed9(t, at("bad7.arrow"), &add, &bad)
	seed9(t, at("both.arrow"), &add, &both)
	seed9(t, at("later.arrow"), &later)
	write(t, at("lz4.arrow"), WriteOptions{LZ4: true, BatchRows: 2}, &report, nil, &add, nil, &noPorts)
	named := func(name, remote string) *Tool {
		c := add
		c.Name, c.Remote = name, remote
		return &c
	}
	seed9(t, at("names.arrow"), named("read.file", "read.file"), named("read file", "read file"), named("1st", "1st"), named("again", "read.file"))
	twoColumns(t, at("columns.arrow"), named("first", "first"), named("second", "second"))
	if err := WriteTexts(t.Context(), at("r.arrow"), "Result", []string{"Result"}, []string{"3"}, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, e := range dirNames(t, dir) {
		got, err := os.ReadFile(at(e))
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join(accept, e)
		if *update {
			if err := os.WriteFile(golden, got, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what is written now; if that is meant, go test ./table -update", e)
		}
	}
}

func dirNames(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestLayouts(t *testing.T) {
	want := []*Tool{&report, &noPorts}
	for _, l := range []Layout{Seed9, Java9, Java10, Legacy6} {
		t.Run(string(l), func(t *testing.T) {
			path := filepath.Join(accept, string(l)+".arrow")
			if diff := cmp.Diff(want, tools(t, path), sameTool); diff != "" {
				t.Error(diff)
			}
			r := read(t, path)
			if got := r.Columns()[0].Layout; got != l {
				t.Errorf("layout %s, want %s", got, l)
			}
		})
	}
}

// TestFactoryVersions compares the factory versions with the strings of the seed.
func TestFactoryVersions(t *testing.T) {
	for l, want := range map[Layout]string{
		Seed9:   "0,0[1[0;0;0;0;0;0;0;0;0;];]",
		Java9:   "0,0[1[0;1[0;0;0;0;0[1[0;0;0;0;];];0[1[0;0;0;0;];];0;0;0;];];]",
		Java10:  "0,0[1[0;1[0;0;0;0;0[1[0;0;0;0;];];0[1[0;0;0;0;];];0;0;0;0;];];]",
		Legacy6: "0,0[1[0;1[0;0;0;0[1[0;0;0;0;];];0[1[0;0;0;0;];];0;];];]",
	} {
		r := read(t, filepath.Join(accept, string(l)+".arrow"))
		if got := r.Metadata()[metaVersions]; got != want {
			t.Errorf("%s: %s, want %s", l, got, want)
		}
		if got := r.Metadata()[metaChunk]; got != "2" {
			t.Errorf("%s: chunkSize %s", l, got)
		}
	}
}

func TestBatches(t *testing.T) {
	list := make([]Row, 2500)
	for i := range list {
		list[i] = Row{ID: "r", Tool: &add}
	}
	path := filepath.Join(t.TempDir(), "t.arrow")
	if err := WriteTools(t.Context(), path, list, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1024, 1024, 452}, batches(t, path)); diff != "" {
		t.Error(diff)
	}
	// The same rows in other batches give the same table.
	odd := filepath.Join(t.TempDir(), "odd.arrow")
	if _, err := Concat(t.Context(), odd, []*Reader{read(t, path)}, WriteOptions{BatchRows: 77}); err != nil {
		t.Fatal(err)
	}
	even := filepath.Join(t.TempDir(), "even.arrow")
	if _, err := Concat(t.Context(), even, []*Reader{read(t, odd)}, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1024, 1024, 452}, batches(t, even)); diff != "" {
		t.Error(diff)
	}
}

func batches(t *testing.T, path string) []int64 {
	t.Helper()
	_, list, err := read(t, path).Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestParameters/KN-48: a tool without a parameter schema has no parameters.
func TestParameters(t *testing.T) {
	t.Run("KN-48", func(t *testing.T) {
		path := raw(t, "t.arrow", ClassTool, Seed9.storage(), func(b *array.StructBuilder) {
			for i := range 3 {
				tool := add
				tool.Parameters = []string{"", "", "{}"}[i]
				if i == 0 {
					tool.nulls = 1 << fieldParameters
				}
				if err := appendTool(b, Seed9, &tool); err != nil {
					t.Fatal(err)
				}
			}
		}, 3)
		r := read(t, path)
		var got []string
		for row, err := range r.Rows(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			v, err := row.JSON(false)
			if err != nil {
				t.Fatal(err)
			}
			if _, after, _ := strings.Cut(string(v), `"parameter_schema":`); !strings.HasPrefix(after, "{},") {
				t.Errorf("row %d: %s", row.Index, v)
			}
			v, err = row.JSON(true)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(v))
		}
		for i, want := range []string{`"3":null`, `"3":""`, `"3":"{}"`} {
			if !strings.Contains(got[i], want) {
				t.Errorf("row %d is stored as %s, want %s", i, got[i], want)
			}
		}
		for _, tool := range tools(t, path) {
			s, err := tool.Schema()
			if err != nil || string(s) != `{"type":"object","properties":{}}` {
				t.Errorf("%s, %v", s, err)
			}
		}
	})
	for name, test := range map[string]struct{ kind, params, want, err string }{
		"workflow":  {"0", `{"b":{"type":"string"},"a":{}}`, `{"type":"object","properties":{"b":{"type":"string"},"a":{}},"required":["b","a"]}`, ""},
		"none":      {"0", `{}`, `{"type":"object","properties":{},"required":[]}`, ""},
		"twice":     {"0", `{"a":{},"a":{}}`, "", "Duplicate parameter name 'a' found in configuration nodes."},
		"no object": {"1", `[1]`, "", "is not a JSON object"},
		"no JSON":   {"0", `{`, "", "is not a JSON object"},
		"MCP":       {"1", `{"type":"object","x":9007199254740993}`, `{"type":"object","x":9007199254740993}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tool := Tool{Kind: Kind(test.kind[0] - '0'), Name: "x", Parameters: test.params}
			got, err := tool.Schema()
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %s", err, test.err)
				}
			} else if err != nil || string(got) != test.want {
				t.Errorf("%s, %v; want %s", got, err, test.want)
			}
		})
	}
}

// TestPorts/KN-49: three encodings of ports decode alike; none are null in seed9.
func TestPorts(t *testing.T) {
	t.Run("KN-49", func(t *testing.T) {
		two := []Port{{"a", "A", "Table", spec}, {"b", "B", "Table", ""}}
		lists := fields(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String, arrow.BinaryTypes.String, arrow.BinaryTypes.String,
			list(fields(arrow.BinaryTypes.String, arrow.BinaryTypes.String, arrow.BinaryTypes.String, arrow.BinaryTypes.String)), arrow.BinaryTypes.String,
			arrow.PrimitiveTypes.Int16, arrow.BinaryTypes.String, arrow.BinaryTypes.String)
		path := raw(t, "t.arrow", ClassTool, lists, func(b *array.StructBuilder) {
			for i := range 3 { // a list of two, an empty list, null; JSON for the outputs
				b.Append(true)
				b.FieldBuilder(0).(*array.Int64Builder).Append(0)
				for _, f := range []int{1, 2, 3} {
					b.FieldBuilder(f).(*array.StringBuilder).Append("{}")
				}
				l := b.FieldBuilder(4).(*array.ListBuilder)
				out := b.FieldBuilder(5).(*array.StringBuilder)
				switch i {
				case 0:
					appendPorts(l, &Tool{}, two)
					s, err := encodePorts(two)
					if err != nil {
						t.Fatal(err)
					}
					out.Append(s)
				case 1:
					l.Append(true)
					out.Append("[]")
				case 2:
					l.AppendNull()
					out.AppendNull()
				}
				b.FieldBuilder(6).(*array.Int16Builder).AppendNull()
				b.FieldBuilder(7).AppendNull()
				b.FieldBuilder(8).AppendNull()
			}
		}, 3)
		got := tools(t, path)
		for i, want := range [][]Port{two, nil, nil} {
			if diff := cmp.Diff(want, got[i].Inputs); diff != "" {
				t.Errorf("row %d, list: %s", i, diff)
			}
			if diff := cmp.Diff(want, got[i].Outputs); diff != "" {
				t.Errorf("row %d, JSON: %s", i, diff)
			}
			if got[i].Message != -1 {
				t.Errorf("row %d: message index %d", i, got[i].Message)
			}
		}
		out := filepath.Join(t.TempDir(), "seed9.arrow")
		if _, err := Concat(t.Context(), out, []*Reader{read(t, path)}, WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		n := 0
		for row, err := range read(t, out).Rows(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			v, err := row.JSON(true)
			if err != nil {
				t.Fatal(err)
			}
			if null := strings.Contains(string(v), `"4":null,"5":null`); null != (n > 0) {
				t.Errorf("row %d: %s", n, v)
			}
			n++
		}
		// Python writes spaces. Names instead of numbers are accepted, and so is a spec that is an
		// object.
		for _, text := range []string{`[{"0": "a", "1": "A", "2": "Table", "3": null}]`, `[{"name":"a","description":"A","type":"Table"}]`} {
			a := array.NewStringBuilder(memory.DefaultAllocator)
			a.Append(text)
			ports, err := decodePorts(a.NewArray(), 0)
			if diff := cmp.Diff([]Port{{Name: "a", Description: "A", Type: "Table"}}, ports); diff != "" || err != nil {
				t.Errorf("%s: %v %s", text, err, diff)
			}
		}
	})
}

func TestWrongColumns(t *testing.T) {
	text := arrow.BinaryTypes.String
	for name, test := range map[string]struct {
		class   string
		storage *arrow.StructType
		want    string
	}{
		"seven fields":   {"org.knime.x.MCPToolValueFactory", fields(text, text, text, text, text, text, text), "unknown layout"},
		"unknown layout": {ClassTool, fields(text, text, text), "unknown layout"},
		"no number":      {ClassTool, fields(text, text, text, text, text, text, text, text, text), "field 0 of a tool column"},
		"legacy of MCP":  {ClassTool, Legacy6.storage(), "unknown layout"},
	} {
		t.Run(name, func(t *testing.T) {
			schema := arrow.NewSchema([]arrow.Field{logical("T", test.class, test.storage)}, nil)
			var b bytes.Buffer
			writeStream(t, &b, schema)
			_, err := Open(context.Background(), "-", Options{Stdin: &b})
			if err == nil || !strings.Contains(err.Error(), test.want) || tenon.ErrorCode(err) != tenon.CodeInvalid {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

func TestBareClassName(t *testing.T) {
	for _, meta := range []string{ClassTool, "ToolValueFactory", `{"value_factory_class":"` + ClassTool + `"}`} {
		f := arrow.Field{Name: "T", Type: Seed9.storage(), Metadata: arrow.NewMetadata([]string{"ARROW:extension:name", "ARROW:extension:metadata"}, []string{Extension, meta})}
		cols, _, err := columns(arrow.NewSchema([]arrow.Field{f}, nil))
		if err != nil || !cols[0].IsTool() {
			t.Errorf("%s: %v, %v", meta, cols, err)
		}
	}
}

func TestURI(t *testing.T) {
	for _, test := range []struct {
		tool Tool
		want string // in seed9
	}{
		{Tool{Name: "add", Remote: "add", Server: "http://h/mcp"}, "http://h/mcp"},
		{Tool{Name: "mcp_add", Remote: "add", Server: "http://h/mcp"}, "http://h/mcp#tool=add"},
		{Tool{Name: "add", Remote: "add", Server: "http://h/mcp", Credential: "my key"}, "http://h/mcp#credential=my%20key"},
		{Tool{Name: "a", Remote: "x&y=z+1 #", Server: "wss://h", Credential: "c"}, "wss://h#tool=x%26y%3Dz%2B1%20%23&credential=c"},
		{Tool{Name: "a", Remote: "a", Server: "http://h/mcp#part"}, "http://h/mcp#part"},
		{Tool{Name: "a", Remote: "a", Server: ServerURI("my server")}, "tenon+server:my%20server"},
	} {
		got := test.tool.uri(true)
		if got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
		back := Tool{Name: test.tool.Name}
		back.readURI(got)
		if diff := cmp.Diff(test.tool, back, sameTool); diff != "" {
			t.Errorf("%s: %s", got, diff)
		}
	}
	argv := []string{"npx", "-y", "@scope/server", "a b&c=d", ""}
	tool := Tool{Name: "x", Server: CommandURI(argv)}
	a, err := tool.Address()
	if diff := cmp.Diff(argv, a.Command); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
	if a, err := (&Tool{Server: ServerURI("my server/x")}).Address(); err != nil || a.Server != "my server/x" {
		t.Errorf("%v %v", a, err)
	}
	for _, bad := range []string{"", "file:///etc/passwd", "http://", "tenon+server:", "stdio:", "stdio:?arg=", "javascript:x", "::", "relative"} {
		if _, err := (&Tool{Name: "x", Server: bad}).Address(); tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestToolBesideBroken reads a tool of a table in which another row has an invalid tool.
func TestToolBesideBroken(t *testing.T) {
	path := raw(t, "t.arrow", ClassTool, Seed9.storage(), func(b *array.StructBuilder) {
		b.Append(true) // all fields are null, including the kind
		for i := range b.NumField() {
			b.FieldBuilder(i).AppendNull()
		}
		if err := appendTool(b, Seed9, &add); err != nil {
			t.Fatal(err)
		}
	}, 2)
	r := read(t, path)
	c, err := r.Column("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Tool(t.Context(), c, 0); err == nil || !strings.Contains(err.Error(), "row 0, ") || !strings.Contains(err.Error(), "field 0: the tool type is missing") {
		t.Errorf("%v", err)
	}
	// It is shown, though it cannot be used.
	shown := read(t, path)
	_, texts := shown.View()
	for row, err := range shown.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"MISSING", "MCP"}[row.Index]
		cells, err := texts(row)
		if err != nil || len(cells) < 2 || cells[0] == nil || *cells[0] != strings.ToLower(want) {
			t.Errorf("row %d: %v, %v", row.Index, cells, err)
		}
		v, err := row.Value(c, false)
		sql, serr := row.sqlValue(c)
		for _, text := range []string{string(v), string(sql)} {
			if !strings.Contains(text, `"tool_type":"`+want+`"`) {
				t.Errorf("row %d: %s, %v, %v", row.Index, text, err, serr)
			}
		}
	}
	if got, err := read(t, path).Tool(t.Context(), c, 1); err != nil || got.Name != add.Name {
		t.Errorf("%v %v", got, err)
	}
	if _, err := read(t, path).Tool(t.Context(), c, 2); err == nil || !strings.Contains(err.Error(), "Row index 2 not found in table with 2 rows.") {
		t.Errorf("%v", err)
	}
}

package config

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/workflow"
)

// FuzzForms parses any bytes as a configuration and as the files of other programs. Every error must have a position. A
// valid configuration can be shown and exported. An import can be parsed again.
func FuzzForms(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/good/*.yaml", "testdata/good/*.json", "testdata/import/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	for _, text := range []string{
		`{"mcpServers":{"a":{"command":"x","oauth":{"scopes":"a b"}},"b c":{"url":"https://a","type":"http","disabled":true}}}`,
		`{"servers":{"a":{"type":"stdio","command":"${input:k}","env":{"A":"${input:k}"}}},"inputs":[{"id":"k","type":"promptString","description":"d","password":true}]} // c`,
		"name: x\nmodel: {provider: azure_openai, name: m, endpoint: https://e, api_key: k}\ninstructions: {inline: i}\ntools: [{type: mcp, name: a, description: d, server: \"@a/b\", config: {allowed_tools: [x]}}, {type: function, name: f}]\n",
		`{"mcp":{"a":{"url":"https://a","auth-token":"t"}},"tool":{"b":"{\"type\":\"mcp-tool\",\"name\":\"n\",\"mcp-tool\":\"a\",\"arguments\":[{\"name\":\"q\",\"type\":\"int\"}]}"}}`,
		`[{"serverName":"a","transport":"websocket","connection":{"url":"https://a"},"auth":{"type":"api_key","token":"t"},"toolPrefix":"p"}]`,
		`{"servers":[{"id":"a","name":"A","transport":"SSE","url":"https://a","enabled":false}]}`,
		"profile: strict\nservers: {a: {command: \"${secret:s}\", env: {A: \"${secret:s}\"}}}\nsecrets: {s: {keyring: a/b}}\n",
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	o := Options{Dir: dir, Home: dir, LookupEnv: func(string) (string, bool) { return "v", true }}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		c, err := Parse("f.json", data, o)
		placed(t, err)
		if err == nil {
			if _, err := c.Show(""); err != nil && tenon.ErrorCode(err) != tenon.CodeNotFound {
				t.Error(err)
			}
			for _, kind := range Kinds() {
				if _, _, err := c.Export(kind); err != nil {
					t.Errorf("export to %s: %v", kind, err)
				}
			}
		}
		for _, kind := range append(Kinds(), "") {
			made, err := Import(Source{Label: "f.json", Data: data, Kind: kind, Extract: len(data)%2 == 0, Dir: dir, Home: dir})
			if err != nil {
				if code := tenon.ErrorCode(err); code != tenon.CodeConfig && code != tenon.CodeInvalid {
					t.Errorf("import from %s: %v", kind, err)
				}
				continue
			}
			s := &tree.Sink{}
			if tree.Parse(&tree.Source{Label: "made"}, made.YAML(), s); len(s.Errs) > 0 {
				t.Errorf("import from %s: %v\n%s", kind, Errors(s.Errs), made.YAML())
			}
		}
	})
}

// placed checks that every error about a file has a position.
func placed(t *testing.T, err error) {
	t.Helper()
	var list Errors
	if err == nil {
		return
	}
	if !errors.As(err, &list) || len(list) == 0 {
		t.Fatalf("error %T: %v", err, err)
	}
	for _, e := range list {
		if e.File == "" || e.Line < 1 || e.Col < 1 || e.Message == "" {
			t.Errorf("without a place: %+v", e)
		}
	}
}

// FuzzWorkflow parses any bytes as a workflow file. Every error must have a position. A valid workflow can be drawn,
// described and given parameters, and its queries can be compiled.
func FuzzWorkflow(f *testing.F) {
	files, err := filepath.Glob("../internal/cli/testdata/script/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for part := range bytes.SplitSeq(data, []byte("\n-- ")) {
			if _, text, _ := bytes.Cut(part, []byte("--\n")); bytes.HasPrefix(text, []byte("kind: workflow\n")) {
				f.Add(text)
			}
		}
	}
	for _, text := range []string{
		"kind: workflow\nversion: 1\nname: a\ndescription: d\nsteps: [{id: a, sql: \"SELECT * FROM b\"}, {id: b, sql: 'SELECT 1 AS n', after: [a]}]\n",
		"kind: workflow\nversion: 1\nname: a\ndescription: d\nsteps: [{id: a, tool: t, args: {x: \"[[1], {'y': steps.b.text}]\"}, foreach: \"[1]\", retry: 3}, {id: b, template: \"{{ data }}\", when: params.p}]\nparameters: {p: {type: boolean, default: 3}}\n",
		"kind: workflow\nversion: 1\nname: a\ndescription: d\nsteps:\n  - id: a\n    sql: |2\n\n      SELECT\n       x\n  - id: c\n    sql: >-\n      SELECT a\n      b\n  - {id: d, sql: \"SEL\\u0045CT é, x\", tables: [a.b]}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 16<<10 {
			return
		}
		w, doc, err := parseWorkflow("f.yaml", data, 0)
		placed(t, err)
		if err != nil {
			return
		}
		_ = w.Graph().Text()
		if svg := w.Graph().SVG(); !xmlValid(svg) {
			t.Errorf("the picture is no XML: %s", svg)
		}
		_, _ = w.Params(nil)
		k := &queries{readWorkflowFile: readWorkflowFile{w: w, pack: &workflow.Pack{}, doc: doc}, known: map[string]table.QueryTable{}, more: map[string]bool{}}
		for i := range w.Steps {
			if w.Steps[i].SQL != "" {
				if _, err := k.step(i); err != nil {
					t.Fatal(err)
				}
			}
		}
		placed(t, doc.Err())
		var list Errors
		if errors.As(doc.Err(), &list) {
			for _, e := range list {
				if lines := bytes.Count(data, []byte("\n")) + 1; e.Line < 1 || e.Line > lines || e.Col < 1 {
					t.Errorf("%d:%d is not in the %d lines of the file: %s", e.Line, e.Col, lines, e.Message)
				}
			}
		}
	})
}

func xmlValid(b []byte) bool {
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
		if _, err := d.Token(); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// FuzzSplice changes a value of any file. Either the change is refused, or exactly this value changes.
func FuzzSplice(f *testing.F) {
	for _, in := range []string{"tools:\n  t:\n    title: x\n", "tools: {t: {title: 'x', a: [1, ]}}", "tools:\n- t: |\n   a\n- >+2\n",
		"a: &x {b: c}\ntools: {t: *x}", "tools:\r\n  t: !!map\r\n    title: \"x\r\n y\"", "{\"tools\": {\"t\": {}}}", "tools:\n  t:",
		"tools:\n  t:\n    ? title\n    : x\n", "--- {tools: {t: {title}}}"} {
		f.Add(in, "tools.t.title", "y\nz")
		f.Add(in, "tools.t.a[0]", " ")
	}
	f.Fuzz(func(t *testing.T, in, key, value string) {
		for _, v := range []*tree.Node{tree.Text(value), nil, {Kind: tree.List, Vals: []*tree.Node{tree.Text(value)}}, {Kind: tree.Map}} {
			s := &splicer{label: "f.yaml", data: []byte(in), known: &Spellings{}}
			sink := &tree.Sink{}
			before := tree.Parse(&tree.Source{Label: "f.yaml"}, s.data, sink)
			if before == nil || len(sink.Errs) > 0 {
				return
			}
			if s.set(keyPath(key), v) != nil {
				continue
			}
			now := s.tree()
			got := at(now, keyPath(key))
			if v == nil && got != nil && got.Kind != tree.List || v != nil && (got == nil || !sameValue(got, v)) {
				if at(before, keyPath(key)) == nil && v == nil {
					continue
				}
				if path := keyPath(key); v == nil {
					if _, item := path[len(path)-1].(int); item {
						continue // the next item takes the place of the removed one
					}
				}
				t.Fatalf("%q: %q at %s became %v in %q", in, value, key, got, s.data)
			}
		}
	})
}

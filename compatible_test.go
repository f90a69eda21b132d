package tenon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestREL_compatibility checks the promise of docs/reference/compatibility.md: nothing that the lists in
// testdata/compatible name may be removed or changed. Additions are compatible, and the test accepts them; -update adds
// them to the lists.
func TestREL_compatibility(t *testing.T) {
	page := read(t, "docs/reference/compatibility.md")
	for name, list := range map[string][]string{
		"go":     slices.Concat(goAPI(t, "."), goAPI(t, "host")),
		"http":   httpRoutes(t),
		"cli":    commandLines(t),
		"config": configKeys(t),
	} {
		file := filepath.Join("testdata", "compatible", name+".txt")
		slices.Sort(list)
		list = slices.Compact(list)
		if *update {
			if err := os.WriteFile(file, []byte(strings.Join(list, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.Contains(page, "testdata/compatible/"+name+".txt") {
			t.Errorf("docs/reference/compatibility.md does not name %s", file)
		}
		for _, line := range gone(read(t, file), list) {
			t.Errorf("%s: removed or changed: %s\n\tbring it back; or add a note to CHANGELOG.md under \"Changed\" and run "+
				"go test . -run REL_compatibility -update", file, line)
		}
	}
}

// TestREL_compatibilityFindsChanges checks which differences the comparison reports.
func TestREL_compatibilityFindsChanges(t *testing.T) {
	before := "func A(int)\nfunc B()\n"
	for name, tt := range map[string]struct{ now, want []string }{
		"same":    {[]string{"func A(int)", "func B()"}, nil},
		"added":   {[]string{"func A(int)", "func B()", "func C()"}, nil},
		"changed": {[]string{"func A(string)", "func B()"}, []string{"func A(int)"}},
		"removed": {nil, []string{"func A(int)", "func B()"}},
	} {
		if got := gone(before, tt.now); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	for _, list := range [][]string{goAPI(t, "."), goAPI(t, "host"), httpRoutes(t), commandLines(t), configKeys(t)} {
		if len(list) < 20 {
			t.Errorf("a list has only %d lines: %q", len(list), list)
		}
	}
}

// gone returns the lines of before that are missing in now.
func gone(before string, now []string) (lost []string) {
	there := map[string]bool{}
	for _, line := range now {
		there[line] = true
	}
	for line := range strings.SplitSeq(strings.TrimSpace(before), "\n") {
		if line != "" && !there[line] {
			lost = append(lost, line)
		}
	}
	return lost
}

// goAPI returns a line for each exported declaration, field and method of a package on Linux.
func goAPI(t *testing.T, dir string) (list []string) {
	t.Helper()
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH = "linux", "amd64"
	p, err := ctx.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	text := func(node any) string {
		var b bytes.Buffer
		if err := printer.Fprint(&b, files, node); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(f)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				d.Body = nil
				list = append(list, p.Name+": "+text(d))
			case *ast.GenDecl:
				for _, s := range d.Specs {
					list = append(list, specLines(p.Name+": ", d.Tok, s, text)...)
				}
			}
		}
	}
	return list
}

// specLines returns the lines of one declared type, constant or variable. Fields are compatible one by one; an interface
// is not, because others implement it.
func specLines(prefix string, kind token.Token, spec ast.Spec, text func(any) string) (list []string) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		return []string{prefix + kind.String() + " " + text(s)}
	case *ast.TypeSpec:
		fields, ok := s.Type.(*ast.StructType)
		if !ok {
			return []string{prefix + "type " + text(s)}
		}
		list = append(list, prefix+"type "+s.Name.Name+" struct")
		for _, f := range fields.Fields.List {
			tag := ""
			if f.Tag != nil {
				tag = " " + f.Tag.Value
			}
			for _, n := range f.Names {
				list = append(list, prefix+"field "+s.Name.Name+"."+n.Name+" "+text(f.Type)+tag)
			}
			if len(f.Names) == 0 {
				list = append(list, prefix+"embedded "+s.Name.Name+" "+text(f.Type))
			}
		}
	}
	return list
}

// httpRoutes returns the methods, paths and statuses of the HTTP APIs.
func httpRoutes(t *testing.T) (list []string) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(read(t, "httpapi/openapi.json")), &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method, raw := range methods {
			var op struct {
				Parameters []struct{ Name, In string }
				Responses  map[string]any
			}
			if method == "parameters" || json.Unmarshal(raw, &op) != nil {
				continue
			}
			route := strings.ToUpper(method) + " " + path
			list = append(list, route)
			for _, p := range op.Parameters {
				if p.Name != "" {
					list = append(list, route+" parameter "+p.In+" "+p.Name)
				}
			}
			for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
				if status < "300" {
					list = append(list, route+" answers "+status)
				}
			}
		}
	}
	return list
}

// commandLines returns the commands and their flags, from the help texts, which the tests of internal/cli compare with the
// program.
func commandLines(t *testing.T) (list []string) {
	t.Helper()
	files, err := filepath.Glob("internal/cli/testdata/help/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`(?m)^ +(?:-\w, )?--[\w-]+`)
	for _, file := range files {
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".txt"), "_", " ")
		list = append(list, name)
		_, flags, _ := strings.Cut(read(t, file), "\nFlags:\n")
		if name != "tenon" {
			flags, _, _ = strings.Cut(flags, "\n\n") // flags of all verbs are in the root's help
		}
		for _, f := range flag.FindAllString(flags, -1) {
			list = append(list, name+" "+strings.TrimSpace(f))
		}
	}
	exits := regexp.MustCompile(`(?m)^  +(\d+)  \S.*$`)
	for _, m := range exits.FindAllStringSubmatch(read(t, "docs/reference/cli/exit-codes.md"), -1) {
		list = append(list, "exit status "+m[1])
	}
	return list
}

// configKeys returns the keys of tenon.yaml with their types, from the generated reference.
func configKeys(t *testing.T) (list []string) {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|")
	for _, m := range row.FindAllStringSubmatch(read(t, "docs/reference/config.md"), -1) {
		list = append(list, fmt.Sprintf("%s: %s", m[1], strings.TrimSpace(m[2])))
	}
	return list
}

package tenon_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxFunction is the number of lines that a function may have, tests included.
const maxFunction = 80

// longFunctions are longer, for a reason. The key is the folder and the name of the function.
var longFunctions = map[string]string{
	"internal/testserver faults":     "a flat table of faults, one after the other",
	"internal/testserver httpFaults": "a flat table of faults, one after the other",
	"model ResolvedQuirks":           "a flat list of switches, with the defaults of each",
}

// TestFunctions checks that no function is longer than maxFunction, but for the exceptions, and that each exception is
// still needed.
func TestFunctions(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" ||
			d.Name() == "testresults") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") {
			return nil
		}
		for name, lines := range functionLines(t, file) {
			place := filepath.ToSlash(filepath.Dir(file)) + " " + name
			switch _, allowed := longFunctions[place]; {
			case lines <= maxFunction:
			case allowed:
				found[place] = true
			default:
				t.Errorf("%s: %s has %d lines, and at most %d are allowed: divide it", file, name, lines, maxFunction)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range slices.Sorted(maps.Keys(longFunctions)) {
		if !found[place] {
			t.Errorf("the exception %q is no longer needed: remove it", place)
		}
	}
}

// functionLines returns the number of lines of each function and method of a file.
func functionLines(t *testing.T, file string) map[string]int {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1
			lines[fn.Name.Name] = max(lines[fn.Name.Name], n)
		}
	}
	return lines
}

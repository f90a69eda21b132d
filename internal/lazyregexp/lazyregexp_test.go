package lazyregexp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestAll compiles the expressions of all packages, because programs do so only when they need them.
func TestAll(t *testing.T) {
	n := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || f.Sel.Name != "New" {
				return true
			}
			if of, ok := f.X.(*ast.Ident); !ok || of.Name != "lazyregexp" {
				return true
			}
			n++
			text, ok := literal(call.Args[0])
			if !ok {
				t.Errorf("%s: the expression is no literal", path)
			} else if _, err := regexp.Compile(text); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			return true
		})
		return nil
	})
	if err != nil || n < 30 {
		t.Errorf("%d expressions were found: %v", n, err)
	}
}

// literal returns the value of string literals that are joined by +.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.BinaryExpr:
		a, ok := literal(e.X)
		b, ok2 := literal(e.Y)
		return a + b, ok && ok2 && e.Op == token.ADD
	}
	return "", false
}

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
		consts := constants(file)
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
			text, ok := literal(call.Args[0], consts)
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

// constants returns the values of the string constants of a file.
func constants(file *ast.File) map[string]string {
	values := map[string]string{}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, value := range v.Values {
				if text, ok := literal(value, values); ok {
					values[v.Names[i].Name] = text
				}
			}
		}
	}
	return values
}

// literal returns the value of string literals and constants that are joined by +.
func literal(e ast.Expr, consts map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.Ident:
		s, ok := consts[e.Name]
		return s, ok
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.BinaryExpr:
		a, ok := literal(e.X, consts)
		b, ok2 := literal(e.Y, consts)
		return a + b, ok && ok2 && e.Op == token.ADD
	}
	return "", false
}

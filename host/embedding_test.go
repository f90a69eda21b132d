package host

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// TestNothingEmbedsHost keeps the package quick to compile: a type that embeds *Host gets a copy of each of its methods.
func TestNothingEmbedsHost(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					star, ok := field.Type.(*ast.StarExpr)
					if !ok || len(field.Names) > 0 {
						continue
					}
					if name, ok := star.X.(*ast.Ident); ok && name.Name == "Host" {
						t.Errorf("%s: %s embeds *Host; name the field", file, spec.Name.Name)
					}
				}
			}
			return true
		})
	}
}

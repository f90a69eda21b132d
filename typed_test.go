package tenon_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// typedPkg is a package of this module with the types of its expressions, without tests.
type typedPkg struct {
	dir   string // "." is the root package
	files []*ast.File
	fset  *token.FileSet
	info  *types.Info
	types *types.Package
}

// typed type-checks all packages of the module. Imports are read from the build cache.
var typed = sync.OnceValues(func() ([]*typedPkg, error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,Module",
		"./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list -export: %w", err)
	}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
		Module                  *struct{ Main bool }
	}
	exports := map[string]string{}
	var own []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main {
			own = append(own, p)
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	var list []*typedPkg
	for _, p := range own {
		k := &typedPkg{dir: strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/"), fset: fset,
			info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
				Selections: map[*ast.SelectorExpr]*types.Selection{}}}
		k.dir = cmp.Or(k.dir, ".")
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				return nil, err
			}
			k.files = append(k.files, f)
		}
		if k.types, err = (&types.Config{Importer: imports}).Check(p.ImportPath, fset, k.files, k.info); err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	return list, nil
})

func typedPackages(t *testing.T) []*typedPkg {
	t.Helper()
	list, err := typed()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// place returns the file and line of a node.
func (k *typedPkg) place(n ast.Node) string {
	p := k.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", filepath.ToSlash(filepath.Join(k.dir, filepath.Base(p.Filename))), p.Line)
}

// maxDecodes is the number of places outside of agent, engine and view that may decode the data of an event without
// view's functions.
const maxDecodes = 10

// TestEventData finds code that decodes the data of a tenon.Event directly, or the data of a first event, which is an
// engine.Spec.
func TestEventData(t *testing.T) {
	decoders := []string{"encoding/json.Unmarshal", "encoding/json.NewDecoder", "bytes.NewReader",
		module + "/internal/exactjson.Decode",
		module + "/internal/exactjson.DecodeOpen"}
	var found, known []string
	for _, k := range typedPackages(t) {
		core, _, _ := strings.Cut(k.dir, "/")
		for _, f := range k.files {
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 || !slices.Contains(decoders, k.callee(call)) {
					return true
				}
				s, ok := ast.Unparen(call.Args[0]).(*ast.SelectorExpr)
				if !ok || s.Sel.Name != "Data" {
					return true
				}
				switch of := strings.TrimPrefix(k.info.Types[s.X].Type.String(), "*"); {
				case of != module+".Event" && of != module+"/engine.Spec":
				case slices.Contains([]string{"agent", "engine", "view"}, core):
					known = append(known, k.place(n))
				default:
					found = append(found, k.place(n))
				}
				return true
			})
		}
	}
	if len(known) == 0 {
		t.Error("no decoder was found in agent, engine and view: the search is wrong")
	}
	if len(found) > maxDecodes {
		t.Errorf("%d places decode the data of an event; use the functions of package view, in all but %d:\n%s",
			len(found), maxDecodes, strings.Join(found, "\n"))
	}
	t.Logf("places outside of agent, engine and view:\n%s", strings.Join(found, "\n"))
}

// callee returns the full name of the function that a call names, "" if it is not a declared one.
func (k *typedPkg) callee(call *ast.CallExpr) string {
	fun := ast.Unparen(call.Fun)
	if s, ok := fun.(*ast.SelectorExpr); ok {
		fun = s.Sel
	}
	id, ok := fun.(*ast.Ident)
	if !ok {
		return ""
	}
	f, ok := k.info.Uses[id].(*types.Func)
	if !ok {
		return ""
	}
	return f.FullName()
}

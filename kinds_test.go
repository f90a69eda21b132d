package tenon_test

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/longtest"
)

// dispatchers are the packages that decide how to handle a tool. They must use the table in host/kinds.go, or the one
// of package agent. The packages catalog and config are not listed: they read the entries of a file, which have kinds.
var dispatchers = []string{"agent", "eval", "executor", "host", "httpapi", "transcript", "view", "telemetry", "workflow"}

// languages are functions that may compare a kind or a reserved server name, because it is a word in a file. Each has a
// reason.
var languages = map[string]string{
	"workflow.calls": "a step of a workflow names the server of another workflow in its file",
}

// Test_KN60_OneDispatch finds comparisons with the reserved names of servers, and with the kinds of tools and
// decisions, in the packages that make calls. It uses the type checker to recognize these constants under any name.
func Test_KN60_OneDispatch(t *testing.T) {
	longtest.Skip(t)
	list := typedPackages(t)
	values := map[string]bool{}      // the values of the constants
	kinds := map[types.Object]bool{} // found by the type checker
	for _, k := range list {
		scope := k.types.Scope()
		for _, name := range scope.Names() {
			c, ok := scope.Lookup(name).(*types.Const)
			if !ok || c.Val().Kind() != constant.String {
				continue
			}
			server := k.dir == "catalog" && strings.HasSuffix(name, "Server")
			kind := (k.dir == "." || k.dir == "agent") && strings.HasPrefix(name, "Kind")
			if server || kind {
				values[constant.StringVal(c.Val())], kinds[c] = true, true
			}
		}
	}
	if len(kinds) < 20 {
		t.Fatalf("%d constants were found, want the servers of catalog and the kinds of tenon and agent", len(kinds))
	}
	compared := 0
	for _, k := range list {
		// is reports whether an operand is one of the constants, or another constant with the same value.
		is := func(e ast.Expr) bool {
			e = ast.Unparen(e)
			if s, ok := e.(*ast.SelectorExpr); ok {
				e = s.Sel
			}
			id, ok := e.(*ast.Ident)
			if !ok {
				return false
			}
			c, ok := k.info.Uses[id].(*types.Const)
			return ok && c.Val().Kind() == constant.String && values[constant.StringVal(c.Val())] &&
				(strings.HasSuffix(c.Name(), "Server") || strings.HasPrefix(c.Name(), "Kind"))
		}
		for _, f := range k.files {
			name := "" // of the function
			ast.Inspect(f, func(n ast.Node) bool {
				var operands []ast.Expr
				switch n := n.(type) {
				case *ast.FuncDecl:
					name = n.Name.Name
				case *ast.BinaryExpr:
					if n.Op == token.EQL || n.Op == token.NEQ {
						operands = []ast.Expr{n.X, n.Y}
					}
				case *ast.CaseClause:
					operands = n.List
				case *ast.CallExpr:
					if k.callee(n) == "slices.Contains" {
						operands = n.Args[1:]
						if list, ok := n.Args[0].(*ast.CompositeLit); ok {
							operands = append(operands, list.Elts...)
						}
					}
				}
				if !slices.ContainsFunc(operands, is) {
					return true
				}
				compared++
				if slices.Contains(dispatchers, k.dir) && languages[k.dir+"."+name] == "" {
					t.Errorf("%s compares a kind or a reserved server; put what differs into the table of kinds",
						k.place(n))
				}
				return true
			})
		}
	}
	if compared == 0 {
		t.Error("no comparison was found in the whole module: the search is wrong")
	}
}

// failing are the toolsets whose calls may always fail. The one of eval is used for a call without a mock. The one of
// host is used if a function of a Go program that wraps the toolset has panicked.
var failing = []string{"eval.offered", "host.brokenToolset"}

// TestToolsetsCall finds toolsets whose method Call always fails. A toolset that offers tools must be able to call
// them.
func TestToolsetsCall(t *testing.T) {
	sets := 0
	for _, k := range typedPackages(t) {
		for _, f := range k.files {
			for _, d := range f.Decls {
				m, ok := d.(*ast.FuncDecl)
				if !ok || m.Name.Name != "Call" || !k.isToolset(m) {
					continue
				}
				sets++
				if k.onlyFails(m.Body) && !slices.Contains(failing, k.dir+"."+receiverName(m)) {
					t.Errorf("%s: Call of this toolset only returns an error", k.place(m))
				}
			}
		}
	}
	if sets < 8 {
		t.Errorf("%d toolsets were found, want those of executor, host, mcp, record and servers", sets)
	}
}

// receiverName returns the name of the type that has a method.
func receiverName(m *ast.FuncDecl) string {
	of := m.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	id, ok := of.(*ast.Ident)
	if !ok {
		return ""
	}
	return id.Name
}

// isToolset reports whether a method Call belongs to a toolset: a type that also has a method Tools.
func (k *typedPkg) isToolset(m *ast.FuncDecl) bool {
	if m.Recv == nil || m.Body == nil {
		return false
	}
	of := k.info.Types[m.Recv.List[0].Type].Type
	tools, _, _ := types.LookupFieldOrMethod(of, true, k.types, "Tools")
	_, ok := tools.(*types.Func)
	return ok
}

// onlyFails reports whether a body is one statement that returns an error, and nil.
func (k *typedPkg) onlyFails(body *ast.BlockStmt) bool {
	if len(body.List) != 1 {
		return false
	}
	r, ok := body.List[0].(*ast.ReturnStmt)
	return ok && len(r.Results) == 2 && k.info.Types[r.Results[0]].IsNil()
}

package tenon_test

import (
	"go/ast"
	"strings"
	"testing"
)

// Test_KN60_OnePlaceDecidesByKind reads the sources: outside of package table, which
// reads and writes kinds as numbers, exactly one switch has the kinds of tools for its
// cases.
func Test_KN60_OnePlaceDecidesByKind(t *testing.T) {
	kinds := map[string]bool{"KindMCP": true, "KindHTTP": true, "KindPrompt": true, "KindAgent": true, "KindWorkflow": true, "KindFunction": true}
	var found []string
	for _, p := range packages(t) {
		if p.dir == "table" {
			continue
		}
		for file, f := range p.files {
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SwitchStmt)
				if !ok {
					return true
				}
				for _, c := range s.Body.List {
					for _, e := range c.(*ast.CaseClause).List {
						is := false
						ast.Inspect(e, func(n ast.Node) bool {
							if id, ok := n.(*ast.Ident); ok && kinds[id.Name] {
								is = true
							}
							return true
						})
						if is {
							found = append(found, file)
							return true
						}
					}
				}
				return true
			})
		}
	}
	if len(found) != 1 || !strings.HasSuffix(found[0], "agents.go") {
		t.Errorf("switches on the kind of a tool: %v, want the one in host/agents.go", found)
	}
}

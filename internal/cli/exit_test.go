package cli

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestExitTableIsWhole checks that every error code has a row in the table of exit statuses, and that every status has
// a meaning.
func TestExitTableIsWhole(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	rows, means := map[string]bool{}, map[int]bool{}
	for _, m := range exitMeanings {
		means[m.status] = true
	}
	for _, e := range exits {
		rows[string(e.code)] = true
		if !means[e.exit] || !means[e.direct] {
			t.Errorf("%s leads to a status without a meaning", e.code)
		}
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		v, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(v.Names[0].Name, "Code") || len(v.Values) == 0 {
			return true
		}
		n++
		if code := strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`); !rows[code] {
			t.Errorf("code %s has no exit status", code)
		}
		return true
	})
	if n != len(exits) {
		t.Errorf("error.go has %d codes, the table %d", n, len(exits))
	}
}

func TestExitStatus(t *testing.T) {
	timeout := tenon.Errorf(tenon.CodeTimeout, "late")
	tests := map[string]struct {
		err  error
		want int
	}{
		"nil":              {nil, 0},
		"of ours":          {timeout, exitUnreachable},
		"direct":           {direct{timeout}, exitTool},
		"told of":          {reported{direct{timeout}}, exitTool},
		"begun":            {reported{begun{tenon.Errorf(tenon.CodeInvalid, "x")}}, exitFailed},
		"begun, late":      {begun{timeout}, exitUnreachable},
		"wrapped":          {fmt.Errorf("x: %w", timeout), exitUnreachable},
		"of somebody else": {fmt.Errorf("x"), exitFailed},
		"cancelled":        {fmt.Errorf("x: %w", context.Canceled), exitInterrupted},
	}
	for name, tt := range tests {
		if got := exitStatus(tt.err); got != tt.want {
			t.Errorf("%s: status %d, want %d", name, got, tt.want)
		}
	}
}

func TestArgumentsAreUTF8(t *testing.T) {
	if status, _, stderr := runHere(t, "run", "caf\xe9"); status != exitUsage || !strings.Contains(stderr, "is not UTF-8") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

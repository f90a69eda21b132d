package cli

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
		"a closed pipe":    {unwritten(syscall.EPIPE), 141},
		"a full disk":      {unwritten(syscall.ENOSPC), exitFailed},
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

// TestStdoutCannotBeWritten runs verbs whose stdout fails. A reader that has closed the pipe ends them quietly; any
// other failure is reported, with status 1.
func TestStdoutCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	for k, v := range map[string]string{"HOME": dir, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "TENON_KEYRING": "off",
		"TENON_NO_PROBE": "1"} {
		t.Setenv(k, v)
	}
	t.Chdir(dir)
	steps := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(steps, []byte("steps:\n  - text: done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"version", "--help", "version -o json", "help run", "docs", "man",
		"run hi --model script:" + steps, "run hi -o json --model script:" + steps, "run hi -o jsonl --model script:" + steps,
		"runs list", "runs list -o json", "runs show", "runs events", "sessions list", "sessions show",
		"models list", "config schema", "tables query SELECT+1", "tables query SELECT+1 --csv", "tables query SELECT+1 -o jsonl"} {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "+", " ")
			}
			for failure, want := range map[error]int{syscall.EPIPE: 141, syscall.ENOSPC: exitFailed} {
				var errs strings.Builder
				status := run(t.Context(), args, stdio{strings.NewReader(""), failing{failure}, &errs})
				if status != want {
					t.Errorf("%v: status %d, want %d: %s", failure, status, want, errs.String())
				}
				if said := strings.Contains(errs.String(), "stdout cannot be written"); said != (want == exitFailed) {
					t.Errorf("%v: %s", failure, errs.String())
				}
			}
		})
	}
}

// failing is a stdout on which every write fails.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

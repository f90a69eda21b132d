package kill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLazy checks that a server with a cached tool list is started only by its first use, and that its
// process ends with the run. The cleanup of the shell checks that no process is left.
func TestLazy(t *testing.T) {
	t.Parallel()
	f := newField(t)
	t.Run("HD-FR-024", func(t *testing.T) {
		used, other := filepath.Join(f.Dir, "used.json"), filepath.Join(f.Dir, "other.json")
		f.WriteFile(t, "lazy.yaml", fmt.Sprintf(`servers:
  t: {command: %[1]q, args: [testserver, --stdio, --stats, %[2]q], include: [add]}
  o: {command: %[1]q, args: [testserver, --stdio, --stats, %[3]q], include: [greet]}
`, f.Tenon, used, other))
		if o := f.OK(t, "tools", "list", "-c", "lazy.yaml"); !strings.Contains(o.Out, "add") ||
			!strings.Contains(o.Out, "greet") {
			t.Fatalf("not the tools of both\n%s", o)
		}
		for _, file := range []string{used, other} { // both were started once to list their tools
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		script := f.WriteFile(t, "one.yaml",
			"steps:\n  - calls: [{name: add, arguments: {a: 1, b: 2}}]\n  - {text: done}\n")
		f.OK(t, "run", "-c", "lazy.yaml", "--model", "script:"+script, "go")
		if _, err := os.Stat(used); err != nil {
			t.Errorf("the used server was not started: %v", err)
		}
		if _, err := os.Stat(other); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the unused server was started: %v", err)
		}
		f.NoProcess(t)
	})
}

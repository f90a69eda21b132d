package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// TestEditsAtOnce makes several edits at the same time. Each edit that reports success must be in the file (RP-18).
func TestEditsAtOnce(t *testing.T) {
	dir := t.TempDir()
	o := config.Options{Dir: dir, LookupEnv: func(string) (string, bool) { return "", false }}
	path := filepath.Join(dir, "tenon.yaml")
	if err := os.WriteFile(path, []byte("servers:\n  first: {command: x}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const writers = 16
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			name := fmt.Sprintf("s%02d", i)
			for {
				_, err := config.Edit(t.Context(), o, config.Edits{Changes: []config.Change{{Section: "servers", Name: name, Add: true,
					Entry: config.Entry{{Key: "command", Value: "x"}}}}})
				if tenon.ErrorCode(err) == tenon.CodeConflict && strings.Contains(err.Error(), "meanwhile") {
					continue
				}
				if err != nil {
					t.Error(err)
				}
				return
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "command: x"); n != writers+1 {
		t.Errorf("%d of %d entries are in the file:\n%s", n, writers+1, data)
	}
}

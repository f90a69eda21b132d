package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTrustGraphFiles imports every file of testdata/trustgraph. The files have tools with and without arguments,
// groups and states, and values as JSON texts, in all forms in which TrustGraph stores its configuration.
func TestTrustGraphFiles(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	files, err := filepath.Glob("testdata/trustgraph/*.json")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			status, text, stderr := runHere(t, "config", "import", file, "--from", "trustgraph")
			if status != exitOK {
				t.Fatalf("import: status %d: %s", status, stderr)
			}
			made := filepath.Join(t.TempDir(), "t.yaml")
			if err := os.WriteFile(made, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if status, _, stderr := runHere(t, "config", "validate", "-c", made); status != exitOK {
				t.Errorf("validate: status %d: %s\n%s", status, stderr, text)
			}
			// An import of the export results in the same file.
			status, back, stderr := runHere(t, "config", "export", "-c", made, "--to", "trustgraph")
			if status != exitOK || !json.Valid([]byte(back)) {
				t.Fatalf("export: status %d: %s", status, stderr)
			}
			if strings.Contains(stderr, "not exported") && !strings.Contains(file, "list.json") {
				t.Errorf("export: %s", stderr)
			}
			again := filepath.Join(t.TempDir(), "b.json")
			if err := os.WriteFile(again, []byte(back), 0o600); err != nil {
				t.Fatal(err)
			}
			status, second, stderr := runHere(t, "config", "import", again, "--from", "trustgraph")
			if status != exitOK {
				t.Fatalf("import again: status %d: %s", status, stderr)
			}
			if status, third, _ := exportOf(t, second); status != exitOK || third != back {
				t.Errorf("there and back again: %s\n%s", third, back)
			}
		})
	}
}

func exportOf(t *testing.T, text string) (int, string, string) {
	file := filepath.Join(t.TempDir(), "t.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return runHere(t, "config", "export", "-c", file, "--to", "trustgraph")
}

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type upgradeCase struct {
	name   string
	store  string // a store in testdata of package sqlite; "" for none
	change func(t *testing.T, path string)
	config string
	status int
	want   []string
	ready  bool
}

// TestREL_upgradeCheck checks the reports of upgrade --check about stores of several kinds.
func TestREL_upgradeCheck(t *testing.T) {
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	tests := []upgradeCase{
		{"older", "v8.db", nil, "agents: {default: {}}\n", exitOK, []string{"tenon.yaml: every key is still valid",
			"schema 8, will be migrated to 11", "  9  rows get checksums\n", "to tenon.db.v8.bak"}, true},
		{"again", "v9.db", func(t *testing.T, path string) {
			if err := os.WriteFile(path+".v9.bak", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "{}\n", exitOK, []string{"tenon.db.v9.bak exists already and will be replaced"}, true},
		{"none", "", nil, "{}\n", exitOK, []string{"nothing is migrated"}, true},
		{"postgres", "", nil, "store: {postgres: {dsn: {env: TENON_POSTGRES_DSN}}}\n", exitOK, []string{"pg_dump"}, true},
		{"warning", "", nil, "servers: {web: {type: sse, url: \"http://127.0.0.1:1/sse\"}}\n", exitOK, []string{"tenon.yaml: "}, true},
		{"newer", "v9.db", func(t *testing.T, path string) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text[63] = 99 // the last byte of user_version (https://www.sqlite.org/fileformat.html)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "{}\n", exitFailed, []string{"schema 99, and this version knows 11", "In the way: ", "use a newer tenon"}, false},
		{"another_program", "", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("not a database"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "{}\n", exitFailed, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkUpgrade(t, repository, tt) })
	}
	if status, _, stderr := runHere(t, "upgrade"); status != exitUsage || !strings.Contains(stderr, "--check") {
		t.Errorf("without --check: status %d: %s", status, stderr)
	}
}

// checkUpgrade checks the output of upgrade --check for a configuration and a store, and that the command changes
// nothing.
func checkUpgrade(t *testing.T, repository string, tt upgradeCase) {
	dir := t.TempDir()
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, filepath.Join(dir, "home"))
	}
	t.Chdir(dir)
	path := filepath.Join(dir, "s", "tenon.db")
	if err := os.Mkdir("s", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("tenon.yaml", []byte(tt.config), 0o600); err != nil {
		t.Fatal(err)
	}
	if tt.store != "" {
		text, err := os.ReadFile(filepath.Join(repository, "store", "sqlite", "testdata", tt.store))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if tt.change != nil {
		tt.change(t, path)
	}
	before, err := os.ReadDir("s")
	if err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := runHere(t, "upgrade", "--check", "-c", "tenon.yaml", "--home", "s")
	if status != tt.status {
		t.Fatalf("status %d, want %d:\n%s%s", status, tt.status, stdout, stderr)
	}
	for _, want := range tt.want {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in:\n%s", want, stdout)
		}
	}
	if after, err := os.ReadDir("s"); err != nil || len(after) != len(before) {
		t.Errorf("it made files: %v, before %v (%v)", after, before, err)
	}
	if len(tt.want) == 0 {
		return
	}
	_, stdout, _ = runHere(t, "upgrade", "--check", "-c", "tenon.yaml", "--home", "s", "-o", "json")
	var r upgradeReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Ready != tt.ready {
		t.Errorf("%v: ready %v, want %v: %s", err, r.Ready, tt.ready, stdout)
	}
}

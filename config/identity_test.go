package config

import (
	"os"
	"path/filepath"
	"testing"
)

// TestServerIdentity checks which changes outside of a server's entry, such as in an env file or a secret, change the
// identity of the server.
func TestServerIdentity(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const file = `servers:
  s: {command: x, env_file: s.env, env: {A: "${A}", B: "${secret:b}"}}
  u: {url: "https://example.com/mcp", auth: {type: bearer, secret: c}}
secrets: {b: {env: B}, c: {file: c.txt}, d: {command: [echo, "1"]}}
`
	reset := func() {
		put("tenon.yaml", file)
		put("s.env", "X=1\n")
		put("c.txt", "one")
		put(".env", "A=1\nB=1\n")
	}
	identity := func() string {
		t.Helper()
		cfg, err := Load(t.Context(), Options{File: filepath.Join(dir, "tenon.yaml"), LookupEnv: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatal(err)
		}
		return cfg.ServerIdentity("s") + cfg.ServerIdentity("u")
	}
	reset()
	plain := identity()
	if plain == "" || plain != identity() {
		t.Fatalf("%q is not the same each time", plain)
	}
	for name, c := range map[string]struct {
		file, text string
		same       bool
	}{
		"env_file":             {file: "s.env", text: "X=2\n"},
		"variable":             {file: ".env", text: "A=2\nB=1\n"},
		"secret of a variable": {file: ".env", text: "A=1\nB=2\n"},
		"secret of a file":     {file: "c.txt", text: "two"},
		"secret named in a text": {file: "tenon.yaml", text: `servers:
  s: {command: x, env_file: s.env, env: {A: "${A}", B: "${secret:d}"}}
  u: {url: "https://example.com/mcp", auth: {type: bearer, secret: c}}
secrets: {b: {env: B}, c: {file: c.txt}, d: {command: [echo, "1"]}}
`},
		"what else there is":  {file: "tenon.yaml", text: file + "limits: {max_turns: 3}\n", same: true},
		"variable of nothing": {file: ".env", text: "A=1\nB=1\nC=1\n", same: true},
	} {
		t.Run(name, func(t *testing.T) {
			reset()
			put(c.file, c.text)
			if got := identity(); got == plain != c.same {
				t.Errorf("the same: %v, want %v", got == plain, c.same)
			}
		})
	}
	if got := (&Config{}).ServerIdentity("s"); got != "" {
		t.Errorf("no server has the identity %s", got)
	}
}

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/servers"
)

// TestServersAtOwnFiles checks that no server entry can give a server access to tenon's own files, by its command line,
// its environment or its folders. It does not matter whether the files exist. Servers in the project's folder are
// permitted.
func TestServersAtOwnFiles(t *testing.T) {
	refused := map[string]string{
		"the file":                  `{command: x, args: [tenon.yaml]}`,
		"the file in capitals":      `{command: x, args: [./TENON.YAML]}`,
		"another name":              `{command: x, args: [tenon.yml]}`,
		"up and down":               `{command: x, args: ["../work/./tenon.yaml"]}`,
		"a flag":                    `{command: x, args: ["--config=tenon.yaml"]}`,
		"a short flag":              `{command: x, args: ["-ctenon.yaml"]}`,
		"a URL":                     `{command: x, args: ["file://DIR/tenon.yaml"]}`,
		"a shell":                   `{command: sh, args: [-c, "echo 'servers: {}' > tenon.yaml; exec server"]}`,
		"the store":                 `{command: x, args: [--db, .tenon/tenon.db]}`,
		"the store's folder":        `{command: x, args: [.tenon]}`,
		"a store that is elsewhere": `{command: x, args: [data/runs.db-wal]}`,
		"a mount":                   `{command: docker, args: [run, -v, "DIR/.tenon:/data"]}`,
		"a link":                    `{command: x, args: [link]}`,
		"a link to the folder":      `{command: x, args: [sub/up/tenon.yaml]}`,
		"the user's variables":      `{command: x, args: ["~/.config/tenon/.env"]}`,
		"the user's file":           `{command: x, args: ["HOME/.config/tenon/config.yaml"]}`,
		"the state":                 `{command: x, args: ["${HOME}/.local/state/tenon"]}`,
		"the administrator's":       `{command: x, args: [/etc/tenon/config.yaml]}`,
		"a variable":                `{command: x, env: {CONFIG: tenon.yaml}}`,
		"a variable with a path":    `{command: x, env: {CONFIG: "a:DIR/tenon.yaml"}}`,
		"a root":                    `{command: x, roots: [.tenon]}`,
		"the working folder":        `{command: x, cwd: .tenon}`,
		"from the working folder":   `{command: x, cwd: sub, args: [../tenon.yaml]}`,
		"an env_file":               `{command: x, env_file: tenon.yaml}`,
		"a program":                 `{command: ./.tenon/tool}`,
		"a disabled one":            `{command: x, enabled: false, args: [tenon.yaml]}`,
	}
	allowed := map[string]string{
		"the project":           `{command: npx, args: [-y, "@modelcontextprotocol/server-filesystem", ., ./sub]}`,
		"its parent":            `{command: x, args: [..]}`,
		"a configuration":       `{command: x, args: [--config, ./server.yaml]}`,
		"a configuration below": `{command: x, args: [sub/tenon.yaml]}`,
		"an env_file":           `{command: x, args: [--env-file=.env], env_file: .env}`,
		"a database":            `{command: x, args: [--db, data/other.db]}`,
		"a URL":                 `{url: "https://example.com/.tenon/mcp"}`,
	}
	load := func(t *testing.T, entry string) error {
		t.Helper()
		home, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(home, "work")
		for _, d := range []string{"sub", "data", ".tenon"} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for link, target := range map[string]string{"link": "tenon.yaml", "sub/up": ".."} {
			if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
		entry = strings.NewReplacer("DIR", dir, "${HOME}", "${HOME}", "HOME/", home+"/").Replace(entry)
		for name, text := range map[string]string{"tenon.yaml": "store: {path: data/runs.db}\nservers:\n  s: " + entry + "\n", ".env": "A=b\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err = config.Load(t.Context(), config.Options{Dir: dir, Home: home, LookupEnv: func(name string) (string, bool) { return home, name == "HOME" }})
		return err
	}
	for name, entry := range refused {
		t.Run("SEC-F9_"+name, func(t *testing.T) {
			if err := load(t, entry); err == nil || !strings.Contains(err.Error(), "tenon's own file") || !strings.Contains(err.Error(), "servers.s.") {
				t.Errorf("%s is loaded: %v", entry, err)
			}
		})
	}
	for name, entry := range allowed {
		t.Run(name, func(t *testing.T) {
			if err := load(t, entry); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGuardServer checks that a server that does not come from a file is refused in the same way.
func TestGuardServer(t *testing.T) {
	dir := t.TempDir()
	c, err := config.Parse("tenon.yaml", []byte("version: 1\n"), config.Options{Dir: dir, Home: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddServer("t", servers.Config{Command: "x", Args: []string{".tenon/tenon.db"}}, ""); err == nil || len(c.Servers) > 0 {
		t.Errorf("SEC-F9: added: %v", err)
	}
	if err := c.AddServer("t", servers.Config{Command: "x", Args: []string{"."}}, ""); err != nil {
		t.Error(err)
	}
}

// TestProtectedIsACopy appends to the lists of one configuration twice, as two concurrent hosts of tenon eval do.
func TestProtectedIsACopy(t *testing.T) {
	for n := range 5 { // slices of some lengths have spare capacity
		sources := ""
		for i := range n {
			sources += fmt.Sprintf("  s%d: {url: http://127.0.0.1:%d/mcp}\n", i, 9000+i)
		}
		cfg, err := config.Parse("tenon.yaml", []byte("version: 1\nservers:\n"+sources), config.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		a, b := cfg.Protected(), cfg.Protected()
		for _, list := range [][2]*[]string{{&a.Files, &b.Files}, {&a.Folders, &b.Folders}, {&a.Names, &b.Names}} {
			*list[0], *list[1] = append(*list[0], "a"), append(*list[1], "b")
			if got := (*list[0])[len(*list[0])-1]; got != "a" {
				t.Errorf("after append(…, \"a\") the list ends with %q", got)
			}
		}
	}
}

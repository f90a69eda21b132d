package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestStorePath checks where the store of a configuration may be. A configuration that was found must have its store
// inside of its folder. One that the person names, and the user's own, may have it anywhere.
func TestStorePath(t *testing.T) {
	for name, c := range map[string]struct {
		text    string // text of tenon.yaml; OUT is replaced by a folder outside of the project
		env     string // of .env
		links   map[string]string
		user    string // the user's file
		named   bool
		refused bool
	}{
		"the default":        {text: "name: x"},
		"inside":             {text: "store: {path: data/runs.db}"},
		"inside by dots":     {text: "store: {path: ./a/../data/runs.db}"},
		"inside, in full":    {text: "store: {path: 'PROJECT/data/runs.db'}"},
		"a link within":      {text: "store: {path: in/runs.db}", links: map[string]string{"in": "data"}},
		"above":              {text: "store: {path: ../runs.db}", refused: true},
		"far above":          {text: "store: {path: ../../../../../../../../../../tmp/runs.db}", refused: true},
		"up again":           {text: "store: {path: data/../../runs.db}", refused: true},
		"in full":            {text: "store: {path: 'OUT/runs.db'}", refused: true},
		"a neighbour":        {text: "store: {path: 'PROJECT2/runs.db'}", refused: true},
		"in the home":        {text: "store: {path: ~/runs.db}", refused: true},
		"by a link":          {text: "store: {path: out/runs.db}", links: map[string]string{"out": "OUT"}, refused: true},
		"a link itself":      {text: "store: {path: runs.db}", links: map[string]string{"runs.db": "OUT/runs.db"}, refused: true},
		"by links in a row":  {text: "store: {path: a/runs.db}", links: map[string]string{"a": "b", "b": "OUT"}, refused: true},
		"by a link and up":   {text: "store: {path: out/../runs.db}", links: map[string]string{"out": "OUT"}}, // the path is cleaned before it is used
		"by process files":   {text: "store: {path: '/proc/self/cwd/runs.db'}", refused: true},
		"a link in a circle": {text: "store: {path: loop/runs.db}", links: map[string]string{"loop": "loop"}, refused: true},
		"by a variable":      {text: `store: {path: "${WHERE}/runs.db"}`, env: "WHERE=OUT", refused: true},
		"by an anchor":       {text: "name: &p OUT/runs.db\nstore: {path: *p}", refused: true},
		"with a profile":     {text: "profile: researchai\nstore: {path: 'OUT/runs.db'}", refused: true},
		"over the user's":    {text: "store: {path: 'OUT/runs.db'}", user: "store: {path: '/elsewhere/runs.db'}"}, // which counts
		"the user's own":     {text: "name: x", user: "store: {path: 'OUT/runs.db'}"},
		"named, outside":     {text: "store: {path: 'OUT/runs.db'}", named: true},
		"named, above":       {text: "store: {path: ../runs.db}", named: true},
		"named, by a link":   {text: "store: {path: out/runs.db}", links: map[string]string{"out": "OUT"}, named: true},
	} {
		t.Run("SEC-F12_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			top, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			dir, out, home := filepath.Join(top, "project"), filepath.Join(top, "out"), filepath.Join(top, "home")
			text := strings.NewReplacer("OUT", out, "PROJECT", dir).Replace
			put := func(path, content string) {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text(content)+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			put(filepath.Join(dir, "tenon.yaml"), c.text)
			put(filepath.Join(dir, "data", "note"), "")
			put(filepath.Join(out, "note"), "")
			put(filepath.Join(dir, ".env"), c.env)
			if c.user != "" {
				put(filepath.Join(home, ".config", "tenon", "config.yaml"), c.user)
			}
			for link, target := range c.links {
				if err := os.Symlink(text(target), filepath.Join(dir, link)); err != nil {
					t.Skip(err)
				}
			}
			o := Options{Dir: dir, Home: home, LookupEnv: func(string) (string, bool) { return "", false }}
			if c.named {
				o.File = filepath.Join(dir, "tenon.yaml")
			}
			cfg, err := Load(t.Context(), o)
			if err == nil && c.user != "" && cfg.Layer("store.path") != LayerUser {
				t.Errorf("the store is at %s, by %s", cfg.Store.Path, cfg.Layer("store.path"))
			}
			switch {
			case !c.refused && err != nil:
				t.Error(err)
			case c.refused && (err == nil || tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "tenon.yaml:") || !strings.Contains(err.Error(), "-c")):
				t.Errorf("%v", err)
			}
		})
	}
}

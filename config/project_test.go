package config

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/trust"
)

// projectIn writes files into a folder and loads its tenon.yaml.
func projectIn(t *testing.T, files map[string]string) *Config {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if strings.HasPrefix(name, "bin/") {
			mode = 0o700
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return loadIn(t, dir)
}

func loadIn(t *testing.T, dir string) *Config {
	t.Helper()
	lookup := func(name string) (string, bool) {
		if name == "PATH" {
			return filepath.Join(dir, "bin") + ":/usr/bin:/bin", true
		}
		return "", false
	}
	c, err := Load(context.Background(), Options{Dir: dir, Home: t.TempDir(), LookupEnv: lookup})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// filesOf returns the names of the files of a project.
func filesOf(t *testing.T, c *Config) []string {
	t.Helper()
	p, err := c.Project()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(p.Files))
}

func TestProject(t *testing.T) {
	flow := "kind: workflow\nversion: 1\nname: f\ndescription: x\ndata: data\nsteps:\n  - {id: a, table: {csv: rows.csv}}\noutputs: [{name: o, description: x, from: a}]\n"
	for name, tt := range map[string]struct {
		files map[string]string
		want  []string // beside tenon.yaml
	}{
		"only the file":            {map[string]string{"tenon.yaml": "version: 1\n", "other.txt": "x"}, nil},
		".env":                     {map[string]string{"tenon.yaml": "version: 1\n", ".env": "A=b\n"}, []string{".env"}},
		"env_file":                 {map[string]string{"tenon.yaml": "servers: {s: {command: x, env_file: s.env}}\n", "s.env": "A=b\n"}, []string{"s.env"}},
		"not of a disabled server": {map[string]string{"tenon.yaml": "servers: {s: {command: ./run, enabled: false, env_file: s.env}}\n", "s.env": "A=b\n", "run": "x"}, nil},
		"agents": {map[string]string{"tenon.yaml": "agents: {a: {instructions: {file: i.txt}, prompt: p.tmpl, response_format: {file: s.json}, data_inputs: [d.arrow]}}\n",
			"i.txt": "x", "p.tmpl": "{{.tool_list}} {{.question}}", "s.json": "{}", "d.arrow": "x"}, []string{"d.arrow", "i.txt", "p.tmpl", "s.json"}},
		"prices and scripts": {map[string]string{"tenon.yaml": "prices: p.json\nmodels: {m: {provider: script, path: s.yaml}}\n", "p.json": "{}", "s.yaml": "steps: []"}, []string{"p.json", "s.yaml"}},
		"a workflow": {map[string]string{"tenon.yaml": "tools: {f: {kind: workflow, path: w/f.yaml}}\n", "w/f.yaml": flow, "w/rows.csv": "a\n1\n", "w/data/x/y.txt": "x", "w/other": "x"},
			[]string{"w/data/x/y.txt", "w/f.yaml", "w/rows.csv"}},
		"a script":                      {map[string]string{"tenon.yaml": "servers: {s: {command: sh, args: [run.sh, other]}}\n", "run.sh": "x"}, []string{"run.sh"}},
		"a script of a secret":          {map[string]string{"tenon.yaml": "secrets: {s: {command: [./get]}}\nmodels: {m: {provider: openai, model: x, api_key: {command: [sh, key]}}}\n", "get": "x", "key": "x"}, []string{"get", "key"}},
		"a program in PATH":             {map[string]string{"tenon.yaml": "servers: {s: {command: tool}}\n", "bin/tool": "x"}, []string{"bin/tool"}},
		"a program elsewhere":           {map[string]string{"tenon.yaml": "servers: {s: {command: sh}}\n"}, nil},
		"data of a program":             {map[string]string{"tenon.yaml": "servers: {s: {command: uvx, args: [mcp-server-sqlite, --db-path, ./test.db, out.json]}}\n", "test.db": "SQLite", "out.json": "{}"}, nil},
		"data that an interpreter runs": {map[string]string{"tenon.yaml": "servers: {s: {command: python3, args: [-u, ./test.db]}}\n", "test.db": "print()"}, []string{"test.db"}},
		"settings of a program": {map[string]string{"tenon.yaml": "servers: {s: {command: x, args: [--config, c.json, -r./r.txt, --import=i, settings.json]}}\n",
			"c.json": "{}", "r.txt": "x", "i": "x", "settings.json": "{}"}, []string{"c.json", "i", "r.txt", "settings.json"}},
		"in another folder": {map[string]string{"tenon.yaml": "servers: {s: {command: ./run, args: [a.py], cwd: sub}}\n", "sub/run": "x", "sub/a.py": "x", "a.py": "x"}, []string{"sub/a.py", "sub/run"}},
		"a line of a shell": {map[string]string{"tenon.yaml": "servers: {s: {command: bash, args: [-c, \"A=$(cat x); ./run.txt|sh lib/y && z\"]}}\n", "run.txt": "x", "lib/y": "x", "z": "x"},
			[]string{"lib/y", "run.txt", "z"}},
		"variables that load": {map[string]string{"tenon.yaml": "servers: {s: {command: node, args: [a.js], env: {NODE_OPTIONS: \"--require ./pre.txt\", MEMORY_FILE: memory.json}}}\n",
			"a.js": "x", "pre.txt": "x", "memory.json": "{}"}, []string{"a.js", "pre.txt"}},
		"SEC-G5 scripts behind options": {map[string]string{"tenon.yaml": "servers: {a: {command: sh, args: [-o, errexit, l1]}, b: {command: env, args: [-u, FOO, sh, l2]}, c: {command: python3, args: [-X, dev, l3]}, " +
			"d: {command: perl, args: [-I, lib, l4]}, e: {command: bash, args: [-O, extglob, l5]}, f: {command: node, args: [--stack-trace-limit, \"5\", l6.txt]}, g: {command: sh, args: [+x, l7.db]}}\n",
			"l1": "x", "l2": "x", "l3": "x", "l4": "x", "l5": "x", "l6.txt": "x", "l7.db": "x", "lib/x.pm": "x"}, []string{"l1", "l2", "l3", "l4", "l5", "l6.txt", "l7.db"}},
		"SEC-G5 decoys": {map[string]string{"tenon.yaml": "servers: {a: {command: sh, args: [-o, errexit, l1.txt]}, b: {command: flock, args: [lock, sh, --posix, l2.txt]}, c: {command: python3, args: [-W, ignore, -X, dev, l3.txt]}}\n",
			"errexit": "x", "lock": "x", "ignore": "x", "dev": "x", "l1.txt": "x", "l2.txt": "x", "l3.txt": "x"}, []string{"dev", "errexit", "ignore", "l1.txt", "l2.txt", "l3.txt", "lock"}},
		"SEC-G5 programs that are not known": {map[string]string{"tenon.yaml": "servers: {a: {command: gdb, args: [-x, l1]}, b: {command: vim, args: [-Sl2]}, c: {command: script, args: [-qc, \"sh l3.txt\"]}, d: {command: strace, args: [sh, l4.txt]}, e: {command: awk, args: [-fl5]}, f: {command: x, args: [--run=l6]}}\n",
			"l1": "x", "l2": "x", "l3.txt": "x", "l4.txt": "x", "l5": "x", "l6": "x"}, []string{"l1", "l2", "l3.txt", "l4.txt", "l5", "l6"}},
		"SEC-G5 a folder of an option": {map[string]string{"tenon.yaml": "servers: {a: {command: env, args: [-C, sub, sh, l1]}, b: {command: env, args: [--chdir=other, ./l2]}}\n",
			"sub/l1": "x", "other/l2": "x", "l3": "x"}, []string{"other/l2", "sub/l1"}},
		"SEC-G5 data of a script": {map[string]string{"tenon.yaml": "servers: {a: {command: python3, args: [-u, server.py, --db, a.db, notes.md]}, b: {command: mcp-x, args: [b.db, --log, b.log]}, c: {command: python3, args: [-m, server, --db, c.db]}}\n",
			"server.py": "x", "a.db": "x", "notes.md": "x", "b.db": "x", "b.log": "x", "c.db": "x"}, []string{"server.py"}},
		"a wrapper": {map[string]string{"tenon.yaml": "servers: {s: {command: env, args: [-i, A=b, timeout, \"5\", sh, run, data.json]}}\n", "run": "x", "data.json": "{}"}, []string{"run"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := filesOf(t, projectIn(t, tt.files))
			want := append([]string{"tenon.yaml"}, tt.want...)
			slices.Sort(want)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestProjectOfTheUser checks that a file that only the user's own configuration names does not belong to a project.
func TestProjectOfTheUser(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	own := filepath.Join(home, ".config", "tenon")
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(own, "config.yaml"): "servers: {mine: {command: ./mine.sh}}\nprices: p.json\nagents: {a: {instructions: {file: i.txt}}}\n",
		filepath.Join(own, ".env"):        "A=b\n", filepath.Join(own, "mine.sh"): "x", filepath.Join(own, "i.txt"): "x", filepath.Join(own, "p.json"): "{}",
		filepath.Join(dir, "tenon.yaml"): "servers: {its: {command: ./its.sh}}\n", filepath.Join(dir, "its.sh"): "x",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lookup := func(string) (string, bool) { return "", false }
	c, err := Load(context.Background(), Options{Dir: dir, Home: home, LookupEnv: lookup})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"its.sh", "tenon.yaml"}, filesOf(t, c)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if c, err = Load(context.Background(), Options{Dir: home, Home: home, LookupEnv: lookup}); err != nil {
		t.Fatal(err)
	}
	if p, err := c.Project(); err != nil || p.Path != "" {
		t.Errorf("the user's own file is a project: %v %v", p, err)
	}
}

// TestProjectKeepsBytes changes files after their digests were computed. tenon must use the bytes that have these
// digests.
func TestProjectKeepsBytes(t *testing.T) {
	files := map[string]string{
		"tenon.yaml": "agents: {a: {instructions: {file: i.txt}, response_format: {file: s.json}, prompt: p.tmpl}}\ntools: {f: {kind: workflow, path: f.yaml}}\n" +
			"prices: prices.json\nservers: {s: {command: x, env_file: s.env}}\n",
		"i.txt": "before", "s.json": `{"type": "object"}`, "p.tmpl": "{{.tool_list}} {{.question}}", "prices.json": "before", "s.env": "A=before\n",
		"f.yaml": "kind: workflow\nversion: 1\nname: f\ndescription: before\nsteps: [{id: a, template: x}]\nmessage: a\n",
	}
	c := projectIn(t, files)
	if _, err := c.Project(); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(strings.ReplaceAll(text, "before", "after")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := c.Agent("a")
	if err != nil || a.Instructions.Text != "before" || string(a.ResponseFormat.Schema) != `{"type":"object"}` && string(a.ResponseFormat.Schema) != `{"type": "object"}` || a.Template != files["p.tmpl"] {
		t.Errorf("%v: %q %s %q", err, a.Instructions.Text, a.ResponseFormat.Schema, a.Template)
	}
	if w, _, err := c.ReadWorkflow(filepath.Join(c.Dir, "f.yaml")); err != nil || w.Description != "before" {
		t.Errorf("%v %v", w, err)
	}
	if b, err := c.ReadFile(c.Prices, 100); err != nil || string(b) != "before" {
		t.Errorf("%q %v", b, err)
	}
	if s, err := c.Server(t.Context(), "s"); err != nil || s.Env["A"] != "before" {
		t.Errorf("%v %v", s.Env, err)
	}
}

// TestProjectLargeFile checks that a file that is too large to be kept in memory is compared with its digest whenever
// it is read.
func TestProjectLargeFile(t *testing.T) {
	c := projectIn(t, map[string]string{"tenon.yaml": "agents: {a: {data_inputs: [d.arrow]}}\n", "d.arrow": strings.Repeat("x", maxSmall+1)})
	if _, err := c.Project(); err != nil {
		t.Fatal(err)
	}
	file := c.Agents["a"].DataInputs[0]
	if _, err := c.ReadFile(file, 2*maxSmall); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("y", maxSmall+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ReadFile(file, 2*maxSmall); tenon.ErrorCode(err) != tenon.CodeDenied || !strings.Contains(err.Error(), "was changed since") {
		t.Errorf("other bytes are used: %v", err)
	}
}

// TestProjectMissing checks that a file that did not exist when the project was digested is refused if it appears
// later.
func TestProjectMissing(t *testing.T) {
	c := projectIn(t, map[string]string{"tenon.yaml": "prices: p.json\n"})
	if _, err := c.Project(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Prices, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ReadFile(c.Prices, 100); tenon.ErrorCode(err) != tenon.CodeDenied {
		t.Errorf("a file that nobody agreed to is used: %v", err)
	}
}

// TestProjectBounds checks that a project with too many bytes is refused instead of being digested.
func TestProjectBounds(t *testing.T) {
	longtest.Skip(t)
	c := projectIn(t, map[string]string{"tenon.yaml": "agents: {a: {data_inputs: [d.arrow]}}\n", "d.arrow": "x"})
	if err := os.Truncate(c.Agents["a"].DataInputs[0], trust.MaxBytes+1); err != nil {
		t.Skip(err)
	}
	if _, err := c.Project(); tenon.ErrorCode(err) != tenon.CodeTooLarge {
		t.Errorf("%v", err)
	}
}

// TestProjectPlace checks that a project is identified by its real path, and its files by their names.
func TestProjectPlace(t *testing.T) {
	c := projectIn(t, map[string]string{"tenon.yaml": "servers: {s: {command: sh, args: [run.sh]}}\n", "run.sh": "x"})
	want, err := c.Project()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(c.Dir, link); err != nil {
		t.Fatal(err)
	}
	got, err := loadIn(t, link).Project()
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("through a link: %v\n%s", err, cmp.Diff(want, got))
	}
	elsewhere := t.TempDir()
	if err := os.Symlink(filepath.Join(c.Dir, "tenon.yaml"), filepath.Join(elsewhere, "tenon.yaml")); err != nil {
		t.Fatal(err)
	}
	if got, err = loadIn(t, elsewhere).Project(); err != nil || got.Path != want.Path || got.Dir == want.Dir {
		t.Errorf("a link to the file: %v %s %s", err, got.Path, got.Dir)
	}
}

// TestScriptsAtEachStart checks that scripts are compared with their digests at each start of their process, including
// restarts.
func TestScriptsAtEachStart(t *testing.T) {
	for name, tt := range map[string]struct {
		yaml   string
		do     func(dir string) error
		denied bool
	}{
		"unchanged": {"servers: {s: {command: sh, args: [run.sh]}}\n", func(string) error { return nil }, false},
		"SEC-F13_changed": {"servers: {s: {command: sh, args: [run.sh]}}\n", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "run.sh"), []byte("evil"), 0o600)
		}, true},
		"SEC-F13_replaced by a link": {"servers: {s: {command: sh, args: [run.sh]}}\n", func(dir string) error {
			if err := os.Remove(filepath.Join(dir, "run.sh")); err != nil {
				return err
			}
			return os.Symlink("other.sh", filepath.Join(dir, "run.sh"))
		}, true},
		"SEC-F13_gone": {"servers: {s: {command: sh, args: [run.sh]}}\n", func(dir string) error { return os.Remove(filepath.Join(dir, "run.sh")) }, true},
		"SEC-F13_a new file that the command names": {"servers: {s: {command: sh, args: [new.sh]}}\n", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "new.sh"), []byte("evil"), 0o600)
		}, true},
		"SEC-F13_the script of a secret": {"servers: {s: {command: sh, env: {A: \"${secret:k}\"}}}\nsecrets: {k: {command: [sh, run.sh]}}\n", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "run.sh"), []byte("touch evil; echo abcdefgh"), 0o600)
		}, true},
		"a new file that the command writes": {"servers: {s: {command: server, args: [--log, out.log, out.json]}}\n", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "out.json"), []byte("{}"), 0o600)
		}, false},
	} {
		for _, first := range []string{"after a look", "at the second start"} {
			t.Run(name+"/"+first, func(t *testing.T) {
				c := projectIn(t, map[string]string{"tenon.yaml": tt.yaml, "run.sh": "echo abcdefgh", "other.sh": "echo evil"})
				if first == "after a look" {
					if _, err := c.Project(); err != nil {
						t.Fatal(err)
					}
				} else if _, err := c.Server(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
				if err := tt.do(c.Dir); err != nil {
					t.Fatal(err)
				}
				_, err := c.Server(t.Context(), "s")
				if denied := tenon.ErrorCode(err) == tenon.CodeDenied; denied != tt.denied || !tt.denied && err != nil {
					t.Errorf("%v", err)
				}
				if _, err := os.Stat(filepath.Join(c.Dir, "evil")); err == nil {
					t.Error("the changed script ran")
				}
			})
		}
	}
}

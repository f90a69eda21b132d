package host_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
)

// writer is a toolset that writes the files that its calls name, as a file server does.
type writer struct{ dir string }

func (w writer) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Remote: "write", Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (w writer) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	var args struct {
		Path, Content string
		Files         map[string]string
	}
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return nil, err
	}
	if args.Files == nil {
		args.Files = map[string]string{args.Path: args.Content}
	}
	for path, content := range args.Files {
		if path = strings.TrimPrefix(path, "file://"); !filepath.IsAbs(path) {
			path = filepath.Join(w.dir, path)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return tenon.ErrorResult(err.Error()), nil
		}
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text("written")}}, nil
}

// TestProtectedFiles checks that no tool call writes tenon's own files, even if the rules allow every call, and that
// calls for other files pass. A changed file fails the test.
func TestProtectedFiles(t *testing.T) {
	const text = "version: 1\npolicy: {defaults: {approval: never}}\n"
	tests := map[string]struct {
		args   string // DIR is replaced by the project's folder
		denied bool
	}{
		"the configuration":       {`{"path":"tenon.yaml","content":"x"}`, true},
		"absolute":                {`{"path":"DIR/tenon.yaml","content":"x"}`, true},
		"a URL":                   {`{"path":"file://DIR/tenon.yaml","content":"x"}`, true},
		"a link":                  {`{"path":"link.txt","content":"x"}`, true},
		"a hard link":             {`{"path":"hard.txt","content":"x"}`, true},
		"through a linked folder": {`{"path":"sub/here/tenon.yaml","content":"x"}`, true},
		"as a key":                {`{"files":{"a.txt":"a","./tenon.yaml":"x"}}`, true},
		"a second one":            {`{"path":"tenon.yml","content":"x"}`, true},
		"the store":               {`{"path":".tenon/tenon.db","content":"x"}`, true},
		"the token":               {`{"path":".tenon/serve.token","content":"x"}`, true},
		"the user's file":         {`{"path":"HOME/.config/tenon/config.yaml","content":"x"}`, true},
		"a consent":               {`{"path":"HOME/.local/state/tenon/consent.json","content":"x"}`, true},
		"escaped":                 {`{"path":"\u0074enon\u002eyaml","content":"x"}`, true},
		"a file beside":           {`{"path":"a.txt","content":"about tenon.yaml\n"}`, false},
		"a file of servers":       {`{"path":"server.yaml","content":"x"}`, false},
	}
	for name, tt := range tests {
		t.Run("SEC-F9_"+name, func(t *testing.T) {
			home, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(home, "project")
			for _, d := range []string{filepath.Join(dir, "sub"), filepath.Join(home, ".config", "tenon"), filepath.Join(home, ".local", "state", "tenon")} {
				if err := os.MkdirAll(d, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(dir, "tenon.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for link, target := range map[string]string{"link.txt": "tenon.yaml", "sub/here": ".."} {
				if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Link(file, filepath.Join(dir, "hard.txt")); err != nil {
				t.Fatal(err)
			}
			lookup := func(name string) (string, bool) { return home, name == "HOME" }
			c, err := config.Load(t.Context(), config.Options{File: file, Dir: dir, Home: home, LookupEnv: lookup})
			if err != nil {
				t.Fatal(err)
			}
			args := strings.NewReplacer("DIR", dir, "HOME", home).Replace(tt.args)
			h, err := host.Open(t.Context(), host.Config{Config: c, Model: "own", LookupEnv: lookup, Toolsets: map[string]tenon.Toolset{"files": writer{dir}},
				Models: map[string]tenon.Model{"own": once("write " + args)}})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			before := tree(t, home)
			r, _ := ask(t, h, host.Question{Text: "write it"})
			changed := ""
			for path, is := range tree(t, home) {
				if before[path] != is && !strings.Contains(path, "tenon.db") && !strings.HasSuffix(path, ".tenon/servers") {
					changed += " " + path
				}
			}
			denied := len(r.ToolCalls) == 1 && r.ToolCalls[0].Outcome == view.CallDenied
			if denied != tt.denied || (changed == "") != tt.denied {
				t.Errorf("denied %t, want %t; changed:%s; %+v", denied, tt.denied, changed, r.ToolCalls)
			}
			if denied && (!strings.Contains(r.ToolCalls[0].Reason, "belongs to tenon")) {
				t.Errorf("%+v", r.ToolCalls[0])
			}
		})
	}
}

// tree returns the contents of all files below a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon"
)

// TestEditKeys changes keys of an entry, in whichever YAML style it is written. Nothing else in the file may change.
func TestEditKeys(t *testing.T) {
	args := []Fields{{{"name", "a"}, {"type", "string"}, {"description", "one"}}}
	tests := []struct {
		name, in string
		keys     []Field
		want     string
	}{
		{"set one", "tools:\n  t: # mine\n    server: s # here\n    policy:\n      # slow\n      timeout: 1s\n      retry: never\n  # of u\n  u: {server: s}\n", []Field{{"policy.timeout", "30s"}},
			"tools:\n  t: # mine\n    server: s # here\n    policy:\n      # slow\n      timeout: 30s\n      retry: never\n  # of u\n  u: {server: s}\n"},
		{"add one", "tools:\n  t:\n    server: s\n\n# end\n", []Field{{"policy.max_calls", 3}}, "tools:\n  t:\n    server: s\n    policy: {max_calls: 3}\n\n# end\n"},
		{"add to a map on one line", "tools:\n  t:\n    server: s\n    policy: {timeout: 1s}\n", []Field{{"policy.max_calls", 3}}, "tools:\n  t:\n    server: s\n    policy: {timeout: 1s, max_calls: 3}\n"},
		{"an entry on one line", "tools:\n  t: {server: s, title: T}\n  # u\n  u: {server: s}\n", []Field{{"arguments", args}},
			"tools:\n  t: {server: s, title: T, arguments: [{name: a, type: string, description: one}]}\n  # u\n  u: {server: s}\n"},
		{"in place of a list", "tools:\n  t:\n    server: s\n    arguments:\n      # the first\n      - {name: z}\n    title: T # kept\n", []Field{{"arguments", args}},
			"tools:\n  t:\n    server: s\n    arguments:\n      # the first\n      - {name: a, type: string, description: one}\n    title: T # kept\n"},
		{"remove", "tools:\n  t:\n    server: s\n    arguments:\n      - {name: z}\n    title: T\n", []Field{{"arguments", nil}}, "tools:\n  t:\n    server: s\n    title: T\n"},
		{"remove the last of a map", "tools:\n  t:\n    server: s\n    policy:\n      timeout: 1s\n    title: T\n", []Field{{"policy.timeout", nil}}, "tools:\n  t:\n    server: s\n    title: T\n"},
		{"remove of a map on one line", "tools:\n  t:\n    server: s\n    policy: {timeout: 1s, retry: never}\n", []Field{{"policy.timeout", nil}}, "tools:\n  t:\n    server: s\n    policy: {retry: never}\n"},
		{"remove what is not there", "tools:\n  t:\n    server: s\n", []Field{{"policy.timeout", nil}, {"arguments", nil}}, "tools:\n  t:\n    server: s\n"},
		{"in place of a list at the indent of its key", "tools:\n  t:\n    server: s\n    arguments:\n    # the first\n    - name: z\n      type: string\n    -\n      name: y\n    # kept\n    title: T\n", []Field{{"arguments", args}},
			"tools:\n  t:\n    server: s\n    arguments:\n    # the first\n    - name: a\n      type: string\n      description: one\n    # kept\n    title: T\n"},
		{"remove one at the indent of its key", "tools:\n  t:\n    server: s\n    arguments:\n    - {name: z}\n    title: T\n", []Field{{"arguments", nil}}, "tools:\n  t:\n    server: s\n    title: T\n"},
		{"add behind one at the indent of its key", "tools:\n  t:\n    server: s\n    groups:\n    - a\n  u: {server: s}\n", []Field{{"title", "x"}}, "tools:\n  t:\n    server: s\n    groups:\n    - a\n    title: x\n  u: {server: s}\n"},
		{"RP-18_section_on_one_line", "tools: {t: {server: s}}\n", []Field{{"title", "x"}}, "tools: {t: {server: s, title: x}}\n"},
		{"RP-18_json", "{\"tools\": {\"t\": {\"server\": \"s\"}}}\n", []Field{{"server", "x"}}, "{\"tools\": {\"t\": {\"server\": \"x\"}}}\n"},
		{"RP-18_json_new_key", "{\"tools\": {\"t\": {\"server\": \"s\"}} // mine\n}\n", []Field{{"groups", []string{"a b"}}},
			"{\"tools\": {\"t\": {\"server\": \"s\", \"groups\": [\"a b\"]}} // mine\n}\n"},
		{"CR LF", "tools:\r\n  t:\r\n    server: s\r\n", []Field{{"title", "x"}}, "tools:\r\n  t:\r\n    server: s\r\n    title: x\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			label := "tenon.yaml"
			if strings.HasPrefix(tt.in, "{\"") {
				label = "tenon.json"
			}
			got, err := editBytes(label, []byte(tt.in), Change{Section: "tools", Name: "t", Keys: tt.keys}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for in, want := range map[string]string{
		"tools:\n  u: {server: s}\n":          "has no entry tools.t",
		"tools:\n  t: [\n":                    "tenon.yaml:",
		"version: 1\n":                        "has no entry tools.t",
		"x: &a {server: s}\ntools: {t: *a}\n": "cannot be changed here; edit the file",
		"tools:\n  t: {server: s}\n\x00":      "control characters",
	} {
		if _, err := editBytes("tenon.yaml", []byte(in), Change{Section: "tools", Name: "t", Keys: []Field{{"title", "x"}}}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", in, err, want)
		}
	}
}

// TestPlanEdit checks that planning an edit writes nothing, and that the edit does not overwrite changes that were made
// in the meantime.
func TestPlanEdit(t *testing.T) {
	dir := write(t, map[string]string{"tenon.yaml": "version: 1\nservers:\n  s: {command: x}\ntools:\n  t: {server: s}\n"})
	path := filepath.Join(dir, "tenon.yaml")
	read := func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	put := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Dir: dir, NoUser: true, LookupEnv: func(string) (string, bool) { return "", false }}
	e := Edits{Changes: []Change{{Section: "tools", Name: "t", Keys: []Field{{"title", "T"}}}}}
	p, err := PlanEdit(t.Context(), o, e)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(); got != string(p.Before) || p.Config.Tools["t"].Title != "T" {
		t.Errorf("the file is %q, the plan's title %q", got, p.Config.Tools["t"].Title)
	}
	put(string(p.Before) + "# more\n")
	if err := p.Write(t.Context()); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("over the work of others: %v", err)
	}
	put(string(p.Before))
	if err := p.Write(t.Context()); err != nil || read() != string(p.After) {
		t.Errorf("written: %v\n%s", err, read())
	}
	if got := p.Config.WrittenUnder("tools.t"); got["server"] != "s" || got["title"] != "T" {
		t.Errorf("what is written: %v", got)
	}
}

// TestPlanEditGuards checks that a file becomes readable only by its owner when an edit writes a literal token into it.
func TestPlanEditGuards(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	o := Options{NoUser: true, LookupEnv: func(name string) (string, bool) { return "t", name == "TOKEN" }}
	server := func(token string) Edits {
		return Edits{Create: true, Changes: []Change{{Section: "servers", Name: "h", Add: true, Entry: Entry{
			{Key: "url", Value: "https://example.com/mcp"},
			{Key: "headers", Value: Fields{{Key: "Authorization", Value: "Bearer " + token}}}}}}}
	}
	for name, test := range map[string]struct {
		edits  Edits
		before fs.FileMode // 0 for no file
		want   fs.FileMode
	}{
		"literal":            {server("sk-123456789"), 0o644, 0o600},
		"literal, new file":  {server("sk-123456789"), 0, 0o600},
		"variable":           {server("${TOKEN}"), 0o644, 0o644},
		"variable, new file": {server("${TOKEN}"), 0, 0o644},
	} {
		t.Run(name, func(t *testing.T) {
			o.Dir = t.TempDir()
			path := filepath.Join(o.Dir, "tenon.yaml")
			if test.before != 0 {
				if err := os.WriteFile(path, []byte("version: 1\n"), test.before); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(path, test.before); err != nil { // whatever the umask is
					t.Fatal(err)
				}
			}
			p, err := PlanEdit(t.Context(), o, test.edits)
			if err == nil {
				err = p.Write(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			st, err := os.Stat(path)
			if err != nil || st.Mode().Perm()&test.want != st.Mode().Perm() || test.before != 0 && st.Mode().Perm() != test.want {
				t.Errorf("mode %v, %v", st.Mode(), err)
			}
			for _, w := range p.Config.Warnings {
				if strings.HasPrefix(w.Message, wideToken) {
					t.Errorf("%v", w)
				}
			}
		})
	}
}

package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon"
)

func TestEdit(t *testing.T) {
	entry := Entry{{"server", "t"}, {"description", "Get it: now"}, {"arguments", []Fields{{{"name", "a"}, {"required", true}}, {{"name", "b"}}}}, {"groups", []string{"x", "y"}}}
	const text = `  new:
    server: t
    description: "Get it: now"
    arguments:
      - {name: a, required: true}
      - {name: b}
    groups: [x, "y"]
`
	tests := []struct {
		name, in, entry string
		remove          bool
		want, bad       string
	}{
		{"no section", "# mine\nversion: 1\n", "new", false, "# mine\nversion: 1\n\ntools:\n" + text, ""},
		{"no line break at the end", "version: 1", "new", false, "version: 1\n\ntools:\n" + text, ""},
		{"an empty section", "version: 1\ntools: # none yet\nmodels: {}\n", "new", false, "version: 1\ntools: # none yet\n" + text + "models: {}\n", ""},
		{"behind the last", "tools:\n  a: # first\n    server: t\n\n# about models\nmodels: {}\n", "new", false,
			"tools:\n  a: # first\n    server: t\n" + text + "\n# about models\nmodels: {}\n", ""},
		{"behind an entry on one line", "tools:\n  a: {server: t}\n", "new", false, "tools:\n  a: {server: t}\n" + text, ""},
		{"in place of one", "tools:\n  # keep\n  new:\n    server: old # gone\n\n  # keep too\n  b: {server: t}\n", "new", false,
			"tools:\n  # keep\n" + text + "\n  # keep too\n  b: {server: t}\n", ""},
		{"four blanks", "tools:\n    a:\n        server: t\n", "new", false,
			"tools:\n    a:\n        server: t\n" + strings.ReplaceAll("  "+strings.ReplaceAll(text, "\n", "\n  "), "\n  \x00", ""), ""},
		{"a text of several lines", "tools:\n  a:\n    server: t\n    description: |\n      # no comment\n\n      end\nmodels: {}\n", "a", true, "models: {}\n", ""},
		{"remove one of two", "tools:\n  # of a\n  a: {server: t}\n  # of b\n  b: {server: t}\n", "a", true, "tools:\n  # of a\n  # of b\n  b: {server: t}\n", ""},
		{"remove the last", "version: 1\ntools:\n  a: {server: t}\n", "a", true, "version: 1\n", ""},
		{"remove the last of the file", "version: 1\n\ntools:\n  a: {server: t}\n", "a", true, "version: 1\n", ""},
		{"remove the last before others", "version: 1\n\ntools:\n  a: {server: t}\nmodels: {}\n", "a", true, "version: 1\n\nmodels: {}\n", ""},
		{"remove the last beside a comment", "servers:\n  a: {command: x}\ntools:\n  # about b\n  b: {server: a}\n", "b", true, "servers:\n  a: {command: x}\ntools:\n  # about b\n", ""},
		{"lines that end with CR LF", "version: 1\r\n", "new", false, "version: 1\r\n\r\ntools:\r\n" + strings.ReplaceAll(text, "\n", "\r\n"), ""},
		{"remove what is not there", "tools:\n  abc: {server: t}\n", "abd", true, "", "has no entry tools.abd; did you mean 'abc'?"},
		{"on one line", "tools: {a: {server: t}}\n", "new", false, "", "edit the file"},
		{"the whole file on one line", "{tools: {a: {server: t}}}\n", "new", false, "", "edit the file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := entry
			if tt.remove {
				e = nil
			}
			got, err := editBytes("tenon.yaml", []byte(tt.in), Change{Section: "tools", Name: tt.entry, Entry: e}, nil)
			if tt.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tt.bad) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimRight(tt.want, " "), string(got)); diff != "" {
				t.Error(diff)
			}
			if _, err := Parse("tenon.yaml", append(got, "\nservers:\n  t: {command: x}\n"...), Options{Dir: t.TempDir()}); err != nil && tenon.ErrorCode(err) == tenon.CodeConfig && !tt.remove {
				t.Errorf("the result does not load: %v", err)
			}
		})
	}
}

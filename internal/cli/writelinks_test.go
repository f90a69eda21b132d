//go:build unix

package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// validVictim is a valid configuration, so that a command that follows the link would accept and rewrite it.
const validVictim = "version: 1\nservers:\n  web:\n    url: http://127.0.0.1:1/mcp\n"

// linkWriters are the commands that write the project's file.
var linkWriters = map[string][]string{
	"servers add":                 {"servers", "add", "x", "http://127.0.0.1:1/mcp"},
	"servers add-json":            {"servers", "add-json", "x", `{"command":"sh"}`},
	"servers remove":              {"servers", "remove", "web"},
	"tools add":                   {"tools", "add", "t", "--server", "web"},
	"config import --write":       {"config", "import", "theirs.json", "--from", "claude", "--write"},
	"servers add -c":              {"servers", "add", "x", "http://127.0.0.1:1/mcp", "-c", "tenon.yaml"},
	"config import --write -c":    {"config", "import", "theirs.json", "--from", "claude", "--write", "-c", "tenon.yaml"},
	"servers add --trust":         {"servers", "add", "x", "http://127.0.0.1:1/mcp", "--trust"},
	"config import with --trust":  {"config", "import", "theirs.json", "--from", "claude", "--write", "--trust"},
	"init --force":                {"init", "--force"},
	"init --force -c":             {"init", "--force", "-c", "tenon.yaml"},
	"servers add through a path":  {"servers", "add", "x", "http://127.0.0.1:1/mcp", "-c", "./tenon.yaml"},
	"servers remove -s project":   {"servers", "remove", "web", "-s", "project"},
	"tools remove":                {"tools", "remove", "t"},
	"servers add --force":         {"servers", "add", "--force", "web", "http://127.0.0.1:1/mcp"},
	"servers add-json -s project": {"servers", "add-json", "y", `{"command":"sh"}`, "-s", "project"},
}

// TestWritesThroughLinks plants a link in place of tenon.yaml. No command writes the file that the link leads to,
// unless the person agrees to its real path.
func TestWritesThroughLinks(t *testing.T) {
	targets := map[string]func(h *clone) string{
		"the user's own file": func(h *clone) string {
			h.own(validVictim)
			return filepath.Join(os.Getenv("HOME"), ".config", "tenon", "config.yaml")
		},
		"a file outside": func(h *clone) string {
			h.do(os.WriteFile(h.beside("victim.yaml"), []byte(validVictim), 0o600))
			return h.beside("victim.yaml")
		},
		"a file outside, by two links": func(h *clone) string {
			h.do(os.WriteFile(h.beside("victim.yaml"), []byte(validVictim), 0o600))
			h.do(os.Symlink("../victim.yaml", "second.yaml"))
			return "second.yaml"
		},
	}
	for target, make := range targets {
		for verb, args := range linkWriters {
			t.Run(strings.ReplaceAll(verb+" to "+target, " ", "_"), func(t *testing.T) {
				h := newClone(t)
				h.write("theirs.json", `{"mcpServers": {"x": {"command": "sh"}}}`)
				victim := make(h)
				h.do(os.Remove("tenon.yaml"))
				h.do(os.Symlink(victim, "tenon.yaml"))
				status, stdout, stderr := runHere(t, args...)
				real := h.real(victim)
				if b, err := os.ReadFile(real); err != nil || string(b) != validVictim {
					t.Errorf("status %d: the file behind the link is %q, %v: %s%s", status, b, err, stdout, stderr)
				}
				if strings.HasPrefix(verb, "init") { // the link is replaced
					return
				}
				if status != exitDenied || !strings.Contains(stderr, real) {
					t.Errorf("status %d, and the error does not name %s: %s%s", status, real, stdout, stderr)
				}
				if n := len(h.trusted()); n > 0 {
					t.Errorf("%d records of trust", n)
				}
			})
		}
	}
}

// real returns the absolute path of a file, with all links resolved.
func (h *clone) real(path string) string {
	h.t.Helper()
	path, err := filepath.Abs(path)
	h.do(err)
	path, err = filepath.EvalSymlinks(path)
	h.do(err)
	return path
}

// TestWritesThroughLinkedFolders checks that a linked folder of the project does not lead a command out of the project.
func TestWritesThroughLinkedFolders(t *testing.T) {
	for verb, args := range map[string][]string{
		"init":        {"init", "-c", "sub/tenon.yaml"},
		"servers add": {"servers", "add", "x", "http://127.0.0.1:1/mcp", "-c", "sub/tenon.yaml"},
		"import":      {"config", "import", "theirs.json", "--from", "claude", "--write", "-c", "sub/tenon.yaml"},
	} {
		t.Run(strings.ReplaceAll(verb, " ", "_"), func(t *testing.T) {
			h := newClone(t)
			h.write("theirs.json", `{"mcpServers": {"x": {"command": "sh"}}}`)
			h.do(os.Mkdir(h.beside("elsewhere"), 0o700))
			h.do(os.Symlink(h.beside("elsewhere"), "sub"))
			status, stdout, stderr := runHere(t, args...)
			if list, _ := os.ReadDir(h.beside("elsewhere")); len(list) > 0 || status != exitDenied {
				t.Errorf("status %d, wrote %v: %s%s", status, list, stdout, stderr)
			}
		})
	}
	t.Run("workflows of an imported table", func(t *testing.T) {
		h := newClone(t)
		h.do(os.Mkdir(h.beside("elsewhere"), 0o700))
		h.do(os.Symlink(h.beside("elsewhere"), "workflows"))
		a := newApp(stdio{strings.NewReader(""), io.Discard, io.Discard})
		err := a.withPacks([]importedPack{{path: "workflows/x.zip", zip: []byte("zip")}}, func() error { return nil })
		if list, _ := os.ReadDir(h.beside("elsewhere")); len(list) > 0 || exitStatus(err) != exitDenied {
			t.Errorf("%v, wrote %v", err, list)
		}
	})
}

// TestWritesThroughHardLinks checks that --force replaces a file with several names by a new file, and does not write
// into the shared one.
func TestWritesThroughHardLinks(t *testing.T) {
	for verb, args := range linkWriters {
		t.Run(strings.ReplaceAll(verb, " ", "_"), func(t *testing.T) {
			h := newClone(t)
			h.write("theirs.json", `{"mcpServers": {"x": {"command": "sh"}}}`)
			h.do(os.WriteFile(h.beside("victim.yaml"), []byte(validVictim), 0o600))
			h.do(os.Remove("tenon.yaml"))
			h.do(os.Link(h.beside("victim.yaml"), "tenon.yaml"))
			status, stdout, stderr := runHere(t, args...)
			if b, err := os.ReadFile(h.beside("victim.yaml")); err != nil || string(b) != validVictim {
				t.Errorf("status %d: the other file is %q, %v: %s%s", status, b, err, stdout, stderr)
			}
		})
	}
}

// TestWritesAskAboutLinks checks that a person at a terminal sees the real path and decides. Links inside of the
// project need no question.
func TestWritesAskAboutLinks(t *testing.T) {
	for name, tt := range map[string]struct {
		target string
		typed  []string
		want   int
		writes bool
	}{
		"yes":                {"../victim.yaml", []string{"y"}, exitOK, true},
		"no":                 {"../victim.yaml", []string{"n"}, exitDenied, false},
		"the end of input":   {"../victim.yaml", nil, exitInterrupted, false},
		"inside the project": {"conf/real.yaml", nil, exitOK, true},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			h := newClone(t)
			h.write("conf/x", "")
			h.do(os.WriteFile(tt.target, []byte(validVictim), 0o600))
			h.do(os.Remove("tenon.yaml"))
			h.do(os.Symlink(tt.target, "tenon.yaml"))
			var out, errs bytes.Buffer
			a := newApp(stdio{&typist{lines: tt.typed}, &out, &errs})
			a.inTTY, a.errTTY = true, true
			root := newRoot(a, []string{"servers", "add", "x", "http://127.0.0.1:1/mcp"})
			root.SetArgs([]string{"servers", "add", "x", "http://127.0.0.1:1/mcp"})
			err := root.ExecuteContext(t.Context())
			b, e := os.ReadFile(tt.target)
			h.do(e)
			if exitStatus(err) != tt.want || (string(b) != validVictim) != tt.writes {
				t.Errorf("status %d, want %d: %v\n%s%s", exitStatus(err), tt.want, err, errs.String(), b)
			}
			real := h.real(tt.target)
			if strings.HasPrefix(tt.target, "..") && !strings.Contains(errs.String(), real) || tt.writes && !strings.Contains(out.String(), filepath.Base(tt.target)) {
				t.Errorf("the real file %s is not named: %s%s", real, out.String(), errs.String())
			}
		})
	}
}

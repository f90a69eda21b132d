//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// plantedWrites has a command line for each command and flag that writes to a path. The path is the name planted.
var plantedWrites = map[string]string{
	"chat --record":          "chat --record planted",
	"eval --junit":           "eval cases.yaml --junit planted",
	"eval --keep":            "eval cases.yaml --keep planted",
	"eval --record":          "eval cases.yaml --record planted",
	"run --conversation":     "run hello --conversation planted",
	"run --data-out":         "run hello --data-out planted",
	"run --record":           "run hello --record planted",
	"runs resume --data-out": "runs resume x --data-out planted",
	"runs resume --out":      "runs resume x --out planted",
	"runs resume --record":   "runs resume x --record planted",
	"runs export --out":      "runs export x --out planted",
	"serve --token-file":     "serve --token-file planted/new",
	"store copy --from":      "store copy --from planted --to sqlite",
	"store copy --to":        "store copy --from sqlite --to planted",
	"sessions export --out":  "sessions export x --out planted",
	"tables concat --out":    "tables concat t.arrow t.arrow --out planted",
	"tables migrate --out":   "tables migrate t.arrow --out planted",
	"tables query --out":     "tables query t.arrow SELECT --out planted",
	"tables pick --out":      "tables pick t.arrow --index 0 --out planted",
	"tables convert --out":   "tables convert t.arrow --to csv --out planted",
	"tenon --home":           "runs list --home planted",
	"tools call --out":       "tools call x --out flow=planted",
	"tools call --record":    "tools call x --record planted",
	"workflows run --record": "workflows run report.yaml --record planted",
	"tools list --out":       "tools list --out planted",
	"workflows graph --out":  "workflows graph report.yaml --svg --out planted",
	"workflows pack --out":   "workflows pack report.yaml --out planted",
	"workflows pack --table": "workflows pack report.yaml --table planted",
	"workflows run --out":    "workflows run report.yaml --out planted",
	"workflows unpack --out": "workflows unpack pack.zip --out planted/new",
}

// readingFlags are the flags with the placeholder FILE, FOLDER or TABLE whose file or folder a command only reads.
var readingFlags = []string{"config", "file", "output-schema", "data-in", "history", "in", "replay", "preferences",
	"cwd", "env-file", "token-file", "table", "credential", "site"}

// plant plants a link of the given kind. It returns the file or folder outside of the project that the link leads to.
func (h *clone) plant(kind string, name string) (victim string) {
	h.t.Helper()
	victim = h.beside("victim")
	switch kind {
	case "a link to a file":
		h.do(os.WriteFile(victim, []byte("mine"), 0o600))
		h.do(os.Symlink(victim, name))
	case "a link to a folder":
		h.do(os.MkdirAll(victim, 0o700))
		h.do(os.Symlink(victim, name))
	case "a link in the folder":
		h.do(os.MkdirAll(victim, 0o700))
		h.do(os.MkdirAll(name, 0o700))
		h.do(os.Symlink(victim, filepath.Join(name, "model")))
	}
	return victim
}

// TestWritingFlags plants a link in place of each file and folder that a flag names for writing. No command writes
// through it, whether the project is trusted or not. A new flag needs a row in plantedWrites or in readingFlags.
func TestWritingFlags(t *testing.T) {
	for key, line := range plantedWrites {
		kinds := []string{"a link to a folder"}
		flag := key[strings.LastIndex(key, "--")+2:]
		switch {
		case writingFlags[flag] == writtenFolder:
			kinds = append(kinds, "a link in the folder")
		case !strings.Contains(line, "planted/"):
			kinds = []string{"a link to a file"}
		}
		for _, kind := range kinds {
			for _, form := range []string{"planted", "./planted", "ABS"} {
				t.Run(strings.ReplaceAll("SEC-G3_"+key+" "+kind+" "+form, " ", "_"), func(t *testing.T) {
					h := newClone(t)
					h.write("report.yaml", "kind: workflow\nversion: 1\nname: flow\ndescription: x\nsteps:\n  - {id: a, template: hi}\nmessage: a\n")
					h.do(os.WriteFile("pack.zip", []byte("PK"), 0o600))
					victim := h.plant(kind, "planted")
					name := strings.Replace(form, "ABS", filepath.Join(h.dir, "planted"), 1)
					args := strings.Fields(strings.Replace(line, "planted", name, 1))
					status, stdout, stderr := runHere(t, append(args, "--trust")...)
					if status != exitDenied || !strings.Contains(stderr, h.real(victim)) {
						t.Errorf("status %d, and the error does not name %s: %s%s", status, victim, stdout, stderr)
					}
					if b, _ := os.ReadFile(victim); len(b) > 0 && string(b) != "mine" {
						t.Errorf("the file behind the link is %q", b)
					}
					if list, _ := os.ReadDir(victim); len(list) > 0 {
						t.Errorf("the folder behind the link has %v", list)
					}
				})
			}
		}
	}
	t.Run("every_flag_is_known", func(t *testing.T) {
		var walk func(c *cobra.Command)
		seen := map[string]bool{}
		walk = func(c *cobra.Command) {
			c.LocalFlags().VisitAll(func(f *pflag.Flag) {
				name, _ := pflag.UnquoteUsage(f)
				key := strings.TrimPrefix(c.CommandPath(), "tenon ") + " --" + f.Name
				isFile := slices.ContainsFunc([]string{"FILE", "FOLDER", "TABLE"}, func(w string) bool { return strings.Contains(name, w) })
				switch {
				case plantedWrites[key] != "":
					seen[key] = true
				case writingFlags[f.Name] != 0 && key != "tenon --token-file", isFile && !slices.Contains(readingFlags, f.Name):
					t.Errorf("%s names a file or a folder and has no row in plantedWrites and readingFlags", key)
				}
			})
			for _, sub := range c.Commands() {
				walk(sub)
			}
		}
		walk(newRoot(newApp(stdio{}), nil))
		for key := range plantedWrites {
			if !seen[key] {
				t.Errorf("there is no flag %s", key)
			}
		}
	})
}

// TestWritesInside writes through links that stay in the project, and to an absolute path that the person names.
func TestWritesInside(t *testing.T) {
	for name, tt := range map[string]struct{ link, to, out, wrote string }{
		"SEC-G3_a_link_inside":             {"report.svg", "pictures/a.svg", "report.svg", "pictures/a.svg"},
		"SEC-G3_a_folder_inside":           {"out", "pictures", "out/b.svg", "pictures/b.svg"},
		"SEC-G3_an_absolute_path_outside":  {"", "", "../outside.svg", "../outside.svg"},
		"SEC-G3_an_absolute_link_outside":  {"../link.svg", "outside.svg", "../link.svg", "../outside.svg"},
		"SEC-G3_a_new_file_in_the_project": {"", "", "new.svg", "new.svg"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newClone(t)
			h.write("report.yaml", "kind: workflow\nversion: 1\nname: flow\ndescription: x\nsteps:\n  - {id: a, template: hi}\nmessage: a\n")
			h.do(os.MkdirAll("pictures", 0o700))
			for _, file := range []string{"pictures/a.svg", "../outside.svg"} {
				h.do(os.WriteFile(file, []byte("old"), 0o600))
			}
			if tt.link != "" {
				h.do(os.Symlink(tt.to, tt.link))
			}
			out := tt.out
			if strings.HasPrefix(out, "../") {
				out = filepath.Join(filepath.Dir(h.dir), filepath.Base(out))
			}
			status, stdout, stderr := runHere(t, "workflows", "graph", "report.yaml", "--svg", "--out", out)
			if b, _ := os.ReadFile(tt.wrote); status != 0 || !strings.Contains(string(b), "<svg") {
				t.Errorf("status %d, wrote %.40q: %s%s", status, b, stdout, stderr)
			}
		})
	}
}

package protect_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/protect"
)

// place makes a home folder with a project, and links to tenon's files. It returns the home folder and the protected
// paths.
func place(t *testing.T) (dir string, p *protect.Paths) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(home, "work")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"work/sub", "work/.tenon/workflows", "other", "work/workflows"} {
		check(os.MkdirAll(filepath.Join(home, d), 0o700))
	}
	for _, f := range []string{"work/tenon.yaml", "work/data.csv", "work/.tenon/tenon.db", "other/notes.txt"} {
		check(os.WriteFile(filepath.Join(home, f), []byte("x"), 0o600))
	}
	check(os.Symlink(dir, filepath.Join(home, "other", "project")))
	check(os.Symlink("../work/tenon.yaml", filepath.Join(home, "other", "plain.txt")))
	check(os.Symlink("sub/deeper/../../tenon.yaml", filepath.Join(dir, "dangling-part")))
	check(os.Symlink(".tenon", filepath.Join(dir, "innocent")))
	check(os.Symlink(filepath.Join(dir, "sub"), filepath.Join(home, "other", "sub")))
	check(os.Symlink("loop", filepath.Join(dir, "loop")))
	check(os.Link(filepath.Join(dir, "tenon.yaml"), filepath.Join(dir, "sub", "hard.txt")))
	check(os.Symlink("../..", filepath.Join(dir, ".tenon", "workflows", "out")))
	env := map[string]string{"HOME": home, "PWD": dir}
	return dir, protect.New(protect.Config{
		Files:    []string{filepath.Join(dir, "tenon.yaml"), filepath.Join(dir, "tenon.yml")},
		Families: []string{filepath.Join(dir, "runs.db")},
		Folders:  []string{filepath.Join(home, ".config", "tenon"), filepath.Join(home, ".local", "state", "tenon"), filepath.Join(dir, ".tenon")},
		Except:   []string{filepath.Join(dir, ".tenon", "workflows")},
		Names:    []string{".tenon"},
		LookupEnv: func(name string) (string, bool) {
			v, ok := env[name]
			return v, ok
		},
	})
}

// protectedNames are texts in arguments that lead to a file of tenon, in a project in the folder dir of home.
func protectedNames(dir, home string) map[string]string {
	return map[string]string{
		"a name":                        "tenon.yaml",
		"a file that is not there":      "tenon.yml",
		"absolute":                      filepath.Join(dir, "tenon.yaml"),
		"here":                          "./tenon.yaml",
		"up and down":                   "../work/tenon.yaml",
		"through a folder that is none": "none/../tenon.yaml",
		"slashes":                       ".//././tenon.yaml",
		"a slash at the end":            "tenon.yaml/",
		"a point at the end":            "tenon.yaml/.",
		"capitals":                      "TENON.Yaml",
		"capitals on the way":           strings.ToUpper(filepath.Join(dir, "tenon.yaml")),
		"blanks around":                 "  tenon.yaml\t",
		"quotes around":                 `"tenon.yaml"`,
		"a NUL at the end":              "tenon.yaml\x00",
		"a NUL and another name":        "tenon.yaml\x00.txt",
		"an encoded NUL":                "tenon.yaml%00.txt",
		"encoded":                       "%74enon%2Eyaml",
		"encoded twice":                 "%2574enon.yaml",
		"encoded dots":                  "sub/%2e%2e/tenon.yaml",
		"a file URL":                    "file://" + filepath.Join(dir, "tenon.yaml"),
		"a file URL, short":             "file:" + filepath.Join(dir, "tenon.yaml"),
		"a file URL, localhost":         "FILE://localhost" + filepath.Join(dir, "tenon.yaml"),
		"a file URL, encoded":           "file://" + strings.ReplaceAll(filepath.Join(dir, "tenon.yaml"), "t", "%74"),
		"a file URL, relative":          "file:tenon.yaml",
		"a file URL with a query":       "file://" + filepath.Join(dir, "tenon.yaml") + "?x=1#y",
		"a database URL":                "sqlite:///" + filepath.Join(dir, ".tenon", "tenon.db") + "?mode=rw",
		"a web URL taken for a path":    "http://../tenon.yaml",
		"a web URL with more dots":      "https://x/y/../../../tenon.yaml",
		"home":                          "~/work/tenon.yaml",
		"home as a variable":            "$HOME/work/tenon.yaml",
		"home in braces":                "${HOME}/work/.tenon/x",
		"the folder as a variable":      "$PWD/tenon.yaml",
		"backslashes":                   `sub\..\tenon.yaml`,
		"a link to the folder":          "../other/project/tenon.yaml",
		"a link to the file":            filepath.Join(home, "other", "plain.txt"),
		"a link before ..":              "../other/sub/../tenon.yaml",
		"a link over what is not there": "dangling-part",
		"a link to the store's folder":  "innocent/new.db",
		"a hard link":                   "sub/hard.txt",
		"the store":                     ".tenon/tenon.db",
		"beside the store":              ".tenon/serve.token",
		"the store's folder":            ".tenon",
		"the folder in capitals":        ".TENON/serve.sock",
		"out of the data of workflows":  ".tenon/workflows/../tenon.db",
		"a link out of such data":       ".tenon/workflows/out/tenon.yaml",
		"another project's store":       "../other/.tenon/tenon.db",
		"below another's":               "/srv/elsewhere/.tenon",
		"a store of another name":       "runs.db",
		"its journal":                   "runs.db-wal",
		"its socket":                    "runs.db.serve.sock",
		"its servers":                   "runs.db.servers/x",
		"the user's file":               "~/.config/tenon/config.yaml",
		"the user's folder":             filepath.Join(home, ".config", "tenon"),
		"the state":                     "~/.local/state/tenon/consent.json",
		"a flag":                        "--config=tenon.yaml",
		"a short flag":                  "-ctenon.yaml",
		"an assignment":                 "of=./tenon.yaml",
		"a mount":                       dir + "/.tenon:/data:rw",
		"a mount by names":              "type=bind,source=" + dir + "/tenon.yaml,target=/x",
		"a file behind @":               "@tenon.yaml",
		"a line break at the end":       "tenon.yaml\n",
		"in a list":                     "data.csv,tenon.yaml",
	}
}

// freeNames are texts in arguments that lead to no file of tenon.
func freeNames(dir string) map[string]string {
	return map[string]string{
		"nothing":                    "",
		"the project's folder":       ".",
		"the same, absolute":         dir,
		"its parent":                 "..",
		"home":                       "~",
		"a file of the project":      "data.csv",
		"a folder of the project":    "./sub",
		"another configuration":      "./server.yaml",
		"a name that begins so":      "tenon.yaml.md",
		"a name that ends so":        "my-tenon.yaml",
		"a name in another folder":   "sub/tenon.yaml",
		"a store that is none":       "runs.dbx",
		"the data of a workflow":     ".tenon/workflows/run_1/data/t.csv",
		"a folder of a similar name": "workflows/.tenonx/a",
		"a sentence":                 "Please explain what tenon.yaml says of servers",
		"a sentence about a path":    "see .tenon/tenon.db for it",
		"a text of lines":            "first\n./tenon.yaml\nlast",
		"a long text":                strings.Repeat("a/", 3000) + "../tenon.yaml",
		"a web page":                 "https://example.com/tenon.yaml",
		"a page below .tenon":        "https://example.com/x/.tenon/y",
		"a page in a flag":           "--url=https://example.com/.tenon/y",
		"an address":                 "user@example.com",
		"a number":                   "42",
		"percent":                    "100%",
		"a loop of links":            "loop/x",
		"JSON":                       `{"path":"tenon.yaml"}`,
	}
}

// TestValue checks which values in the arguments of calls lead to tenon's own files.
func TestValue(t *testing.T) {
	dir, p := place(t)
	home := filepath.Dir(dir)
	for name, text := range protectedNames(dir, home) {
		t.Run("SEC-F9_"+name, func(t *testing.T) {
			if p.Value(text, dir) == "" {
				t.Errorf("%q is let through", text)
			}
			b, err := json.Marshal(map[string]any{"list": []any{1, map[string]any{"deep": text}}})
			if err != nil {
				t.Fatal(err)
			}
			if _, found := p.JSON(b, dir); found != text {
				t.Errorf("%s: found %q", b, found)
			}
			if b, err = json.Marshal(map[string]any{"files": map[string]any{text: "content"}}); err != nil {
				t.Fatal(err)
			}
			if _, found := p.JSON(b, dir); found != text {
				t.Errorf("%s as a key: found %q", b, found)
			}
		})
	}
	for name, text := range freeNames(dir) {
		t.Run(name, func(t *testing.T) {
			if hit := p.Value(text, dir); hit != "" {
				t.Errorf("%q leads to %s", text, hit)
			}
		})
	}
}

// TestFind checks which paths are found in the command line of a server.
func TestFind(t *testing.T) {
	dir, p := place(t)
	for text, want := range map[string]bool{
		"cat tenon.yaml":                          true,
		"echo x>>tenon.yaml":                      true,
		"node server.js && cp x .tenon/y":         true,
		"--config tenon.yaml":                     true,
		"$(cat ./tenon.yaml)":                     true,
		"first\nrm -f .tenon/tenon.db":            true,
		"npx -y server-filesystem . ./data":       false,
		".":                                       false,
		"--config=./server.yaml":                  false,
		"print('tenon')":                          false,
		"--env-file=.env":                         false,
		"postgres://u:p@localhost:5432/tenon":     false,
		"https://example.com/.well-known/x":       false,
		"-e":                                      false,
		"@modelcontextprotocol/server-everything": false,
	} {
		if got := p.Find(text, dir) != ""; got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
	var none *protect.Paths
	if none.Find("tenon.yaml", dir)+none.Value("tenon.yaml", dir) != "" {
		t.Error("nothing is protected, and found")
	}
	if hit, _ := protect.New(protect.Config{}).JSON([]byte(`["tenon.yaml"`), dir); hit != "" {
		t.Error(hit)
	}
}

// FuzzValue checks that no text causes a panic, and that a path is also found if it is written with a superfluous part,
// such as "./".
func FuzzValue(f *testing.F) {
	for _, s := range []string{"tenon.yaml", "../x/..", "file:///a?b#c", "%%2e", "~", "$HOME", "-c", "a=b,c:d;e", `\\?\c:\x`, "://", "@"} {
		f.Add(s)
	}
	p := protect.New(protect.Config{Files: []string{"/p/tenon.yaml"}, Folders: []string{"/p/.tenon"}, Names: []string{".tenon"}})
	f.Fuzz(func(t *testing.T, text string) {
		if p.Value(text, "/p") != "" && !strings.ContainsAny(text, " \t\"'%\x00:=,;@$~-\\\r\n") && text[0] != '/' && len(text) < 1000 && p.Value("./"+text, "/p") == "" {
			t.Errorf("%q is found, and not behind ./", text)
		}
	})
}

// BenchmarkJSON measures the check of a call with a few arguments, and of one with a long list.
func BenchmarkJSON(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tenon.yaml"), nil, 0o600); err != nil {
		b.Fatal(err)
	}
	p := protect.New(protect.Config{Files: []string{filepath.Join(dir, "tenon.yaml")}, Folders: []string{filepath.Join(dir, ".tenon")}, Names: []string{".tenon"}})
	long := `["` + strings.Repeat(`a word","`, 10_000) + `end"]`
	many := "["
	for i := range 10_000 {
		many += fmt.Sprintf(`"word%d",`, i)
	}
	many += `"end"]`
	for name, args := range map[string]string{"few": `{"location":"London","unit":"celsius","days":3}`, "long": long, "many": many} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if hit, _ := p.JSON(json.RawMessage(args), dir, filepath.Dir(dir)); hit != "" {
					b.Fatal(hit)
				}
			}
		})
	}
}

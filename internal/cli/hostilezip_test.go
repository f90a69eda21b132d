package cli

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/internal/safezip/ziptest"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/workflow"
)

const packedFlow = "kind: workflow\nversion: 1\nname: packed\ndescription: d\nsteps: [{id: t, table: {rows: [{a: 1}]}}]\n"

// zipDoor is a command that opens an archive from an untrusted source.
type zipDoor struct {
	name string
	args func(file, out string) []string // out is a path that does not exist
	says string                          // part of the output for a valid archive
}

// packDoors are the commands that open a zip archive with a workflow.
var packDoors = []zipDoor{
	{"validate", func(f, _ string) []string { return []string{"workflows", "validate", f} }, "ok (1 step)"},
	{"graph", func(f, _ string) []string { return []string{"workflows", "graph", f} }, "t "},
	{"unpack", func(f, out string) []string { return []string{"workflows", "unpack", f, "--out", out} }, ""},
	{"pack", func(f, out string) []string { return []string{"workflows", "pack", f, "--out", out} }, ""},
	{"run", func(f, out string) []string { return []string{"workflows", "run", f, "--home", out} }, ""},
	{"configuration", func(f, out string) []string {
		return []string{"config", "validate", "-c", besideZip(f, out, "tools: {w: {kind: workflow, path: %s}}")}
	}, "is valid"},
}

// bundleDoors are the commands that open a tool table with its files in a zip archive (a bundle).
var bundleDoors = []zipDoor{
	{"check", func(f, _ string) []string { return []string{"tables", "check", f} }, ""},
	{"schema", func(f, _ string) []string { return []string{"tables", "schema", f} }, "Tools"},
	{"show", func(f, _ string) []string { return []string{"tables", "show", f} }, ""},
	{"count", func(f, _ string) []string { return []string{"tables", "count", f} }, ""},
	{"concat", func(f, out string) []string { return []string{"tables", "concat", f, "--out", out + ".arrow"} }, ""},
	{"import", func(f, _ string) []string { return []string{"config", "import", f} }, ""},
	{"configuration", func(f, out string) []string {
		return []string{"config", "validate", "-c", besideZip(f, out, "tool_tables: [%s]")}
	}, "is valid"},
}

// besideZip writes a configuration next to an archive that names the archive.
func besideZip(file, out, entry string) string {
	path := out + ".yaml"
	if err := os.WriteFile(path, []byte("version: 1\n"+strings.Replace(entry, "%s", file, 1)+"\n"), 0o600); err != nil {
		panic(err)
	}
	return path
}

// zipToolTable returns the bytes of a table of tools. writeBundle writes a bundle of a table with a packed workflow.
func zipToolTable(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.arrow")
	row := table.Row{ID: "Row0", Tool: &table.Tool{Kind: table.MCP, Name: "add", Description: "d", Parameters: "{}", Message: -1, Server: "https://example.com/mcp"}}
	if err := table.WriteTools(t.Context(), path, []table.Row{row}, table.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeBundle(t testing.TB, path string, pack []byte) {
	t.Helper()
	row := table.Row{ID: "Row0", Tool: &table.Tool{Kind: table.Workflow, Name: "packed", Description: "d", Parameters: "{}", Message: -1}, Pack: pack}
	if err := table.WriteTools(t.Context(), path, []table.Row{row}, table.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// aloneForZips isolates a test from the user's files. It returns an empty folder.
func aloneForZips(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for k, v := range map[string]string{"HOME": filepath.Join(root, "home"), "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "TENON_KEYRING": "off",
		"TENON_TRUST": "", "TENON_CONFIG": "", "TMPDIR": filepath.Join(root, "temp")} {
		t.Setenv(k, v)
	}
	dir := filepath.Join(root, "a", "work")
	for _, d := range []string{dir, filepath.Join(root, "temp"), filepath.Join(root, "home")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return dir
}

// noEvil fails if a file of an archive was written anywhere around a folder.
func noEvil(t *testing.T, dir string) {
	t.Helper()
	for _, pattern := range []string{"evil*", "*/evil*", "*/*/evil*", "*/*/*/evil*", "a/work/new*/*"} {
		found, err := filepath.Glob(filepath.Join(dir, "..", "..", pattern))
		if err != nil || len(found) > 0 {
			t.Errorf("found %v %v", found, err)
		}
	}
	if _, err := os.Lstat("/tmp/evil"); err == nil {
		t.Error("/tmp/evil was written")
	}
}

func TestHostileZips(t *testing.T) {
	longtest.Skip(t)
	dir := aloneForZips(t)
	for _, kind := range []struct {
		doors         []zipDoor
		main, content string
		ext           string
	}{{packDoors, workflow.FileName, packedFlow, ".zip"}, {bundleDoors, "table.arrow", zipToolTable(t), ".tooltable"}} {
		for _, c := range ziptest.Hostile(kind.main, kind.content) {
			if c.Deep && kind.ext == ".tooltable" || c.Name == "before the first entry" && kind.ext == ".tooltable" {
				continue // other files in a bundle are not read, and a bundle with a prefix is another format
			}
			file := filepath.Join(dir, "f"+kind.ext)
			if err := os.WriteFile(file, c.Zip, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, door := range kind.doors {
				t.Run("SEC-F14_"+door.name+kind.ext+"_"+c.Name, func(t *testing.T) {
					out := filepath.Join(dir, "new")
					status, stdout, errs := runHere(t, door.args(file, out)...)
					if status == exitOK || !strings.Contains(errs+stdout, c.Want) {
						t.Errorf("status %d: %s%s, want %s", status, stdout, errs, c.Want)
					}
					if strings.ContainsAny(errs+stdout, "\x00\x1b\u202e\u200b") {
						t.Errorf("hidden characters: %q", errs+stdout)
					}
					if _, err := os.Lstat(out); err == nil && door.name == "unpack" {
						t.Error("a folder was made")
					}
					noEvil(t, dir)
					_ = os.RemoveAll(out) // the store of a run
				})
			}
			left, err := os.ReadDir(os.Getenv("TMPDIR"))
			if err != nil || len(left) > 0 {
				t.Fatalf("%s: left in the folder for temporary files: %v %v", c.Name, left, err)
			}
		}
		for _, c := range ziptest.Legal(kind.main, kind.content) {
			file := filepath.Join(dir, "f"+kind.ext)
			if err := os.WriteFile(file, c.Zip, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, door := range kind.doors {
				t.Run("SEC-F14_legal_"+door.name+kind.ext+"_"+c.Name, func(t *testing.T) {
					out := filepath.Join(t.TempDir(), "new")
					status, stdout, errs := runHere(t, door.args(file, out)...)
					if status != exitOK || !strings.Contains(errs+stdout, door.says) {
						t.Errorf("status %d: %s%s", status, stdout, errs)
					}
				})
			}
		}
	}
}

// TestHostileZipInBundle puts hostile workflow archives into valid bundles.
func TestHostileZipInBundle(t *testing.T) {
	longtest.Skip(t)
	dir := aloneForZips(t)
	file, out := filepath.Join(dir, "b.tooltable"), filepath.Join(dir, "new")
	config := besideZip(file, out, "tool_tables: [%s]")
	for _, c := range ziptest.Hostile(workflow.FileName, packedFlow) {
		if len(c.Zip) > 32<<20 {
			continue // TestHostileZipMemory opens it
		}
		t.Run("SEC-F14_"+c.Name, func(t *testing.T) {
			writeBundle(t, file, c.Zip)
			_, stdout, errs := runHere(t, "tools", "list", "-c", config, "--trust", "-o", "json")
			if strings.Contains(stdout, `"packed"`) || !strings.Contains(errs+stdout, c.Want) {
				t.Errorf("%s%s, want %s", stdout, errs, c.Want)
			}
			if _, stdout, errs = runHere(t, "config", "import", file, "--write", "-c", filepath.Join(dir, "made.yaml")); !strings.Contains(errs+stdout, c.Want) {
				t.Errorf("%s%s, want %s", stdout, errs, c.Want)
			}
			if made, _ := filepath.Glob(filepath.Join(dir, "workflows", "*")); len(made) > 0 {
				t.Errorf("import wrote %v", made)
			}
			noEvil(t, dir)
		})
	}
	t.Run("SEC-F14_legal", func(t *testing.T) {
		for _, c := range ziptest.Legal(workflow.FileName, packedFlow) {
			writeBundle(t, file, c.Zip)
			if status, stdout, errs := runHere(t, "tools", "list", "-c", config, "--trust", "-o", "json"); status != exitOK || !strings.Contains(stdout, `"packed"`) {
				t.Errorf("%s: status %d: %s%s", c.Name, status, stdout, errs)
			}
		}
	})
}

// TestHostileUploads sends hostile bundles to POST /api/v1/tables.
func TestHostileUploads(t *testing.T) {
	longtest.Skip(t)
	s := startServing(t, map[string]string{"tenon.yaml": quietFile})
	upload := func(t *testing.T, zip []byte) (int, string) {
		t.Helper()
		body, err := json.Marshal(map[string]string{"name": "t.tooltable", "data": base64.StdEncoding.EncodeToString(zip)})
		if err != nil {
			t.Fatal(err)
		}
		return s.ask("POST", "/api/v1/tables", string(body))
	}
	kept := func() []string {
		found, _ := filepath.Glob(filepath.Join(s.dir, ".tenon", "tables", "*"))
		hidden, _ := filepath.Glob(filepath.Join(s.dir, ".tenon", "tables", ".table-*"))
		return append(found, hidden...)
	}
	content := zipToolTable(t)
	for _, c := range ziptest.Hostile("table.arrow", content) {
		if c.Deep || c.Name == "before the first entry" {
			continue // as in TestHostileZips
		}
		t.Run("SEC-F14_"+c.Name, func(t *testing.T) {
			if len(c.Zip) > 12<<20 { // refused earlier, by the size limit of requests
				c.Want = "more than 16777216 bytes"
			}
			if status, text := upload(t, c.Zip); status < 400 || status >= 500 || !strings.Contains(text, c.Want) {
				t.Errorf("%d %s, want %s", status, text, c.Want)
			}
			if list := kept(); len(list) > 0 {
				t.Errorf("kept: %v", list)
			}
		})
	}
	for _, c := range ziptest.Legal("table.arrow", content) {
		t.Run("SEC-F14_legal_"+c.Name, func(t *testing.T) {
			if status, text := upload(t, c.Zip); status != 201 {
				t.Fatalf("%d %s", status, text)
			}
			if status, text := s.ask("DELETE", "/api/v1/tables?file=uploaded:t.tooltable", ""); status != 204 {
				t.Errorf("%d %s", status, text)
			}
		})
	}
}

//go:build unix

package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

type plantedStore struct {
	plant func(t *testing.T, dir, out string)
	text  string // of tenon.yaml
	found bool   // and not named
	fine  bool
}

// linkTo returns a function that plants a link to a file outside of the project.
func linkTo(target, name string) func(t *testing.T, dir, out string) {
	return func(t *testing.T, dir, out string) {
		plantLink(t, filepath.Join(out, target), filepath.Join(dir, name))
	}
}

// plantedStores are projects whose store, or a file next to it, is a link or not a regular file.
var plantedStores = map[string]plantedStore{
	"nothing there": {plant: func(*testing.T, string, string) {}, fine: true},
	"the folder is a link": {plant: func(t *testing.T, dir, out string) {
		plantLink(t, out, filepath.Join(dir, ".tenon"))
	}},
	"the folder is a relative link": {plant: func(t *testing.T, dir, out string) {
		plantLink(t, "../out", filepath.Join(dir, ".tenon"))
	}},
	"the folder is a link within": {plant: func(t *testing.T, dir, out string) {
		if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		plantLink(t, "data", filepath.Join(dir, ".tenon"))
	}},
	"the store is a link":             {plant: linkTo("victim", ".tenon/tenon.db")},
	"the store is a link to nothing":  {plant: linkTo("new", ".tenon/tenon.db")},
	"the log is a link":               {plant: linkTo("victim", ".tenon/tenon.db-wal")},
	"the index of the log is a link":  {plant: linkTo("victim", ".tenon/tenon.db-shm")},
	"the journal is a link":           {plant: linkTo("victim", ".tenon/tenon.db-journal")},
	"the locks are a link":            {plant: linkTo("victim", ".tenon/tenon.db-locks")},
	"the backup is a link":            {plant: linkTo("victim", ".tenon/tenon.db.v5.bak")},
	"the folder of servers is a link": {plant: func(t *testing.T, dir, out string) { plantLink(t, out, filepath.Join(dir, ".tenon/servers")) }},
	"the log of a server is a link":   {plant: linkTo("victim", ".tenon/servers/x.jsonl")},
	"the list of a server is a link":  {plant: linkTo("victim", ".tenon/servers/x.json")},
	"the token is a link":             {plant: linkTo("victim", ".tenon/serve.token")},
	"the store is a hard link": {plant: func(t *testing.T, dir, out string) {
		hard(t, filepath.Join(out, "victim"), filepath.Join(dir, ".tenon/tenon.db"))
	}},
	"the log is a hard link": {plant: func(t *testing.T, dir, out string) {
		hard(t, filepath.Join(out, "victim"), filepath.Join(dir, ".tenon/tenon.db-wal"))
	}},
	"the store is a pipe":   {plant: func(t *testing.T, dir, _ string) { pipe(t, filepath.Join(dir, ".tenon/tenon.db")) }},
	"the log is a pipe":     {plant: func(t *testing.T, dir, _ string) { pipe(t, filepath.Join(dir, ".tenon/tenon.db-wal")) }},
	"the store is a folder": {plant: func(t *testing.T, dir, _ string) { _ = os.MkdirAll(filepath.Join(dir, ".tenon/tenon.db"), 0o700) }},
	"the store is a device": {plant: func(t *testing.T, dir, _ string) { plantLink(t, "/dev/null", filepath.Join(dir, ".tenon/tenon.db")) }},
	"a store of another name, a link": {text: "store: {path: data/x.db}", found: true, plant: func(t *testing.T, dir, out string) {
		plantLink(t, filepath.Join(out, "victim"), filepath.Join(dir, "data/x.db-wal"))
	}},
	"a link of the project beside it": {text: "store: {path: data/x.db}", found: true, fine: true, plant: func(t *testing.T, dir, out string) {
		plantLink(t, filepath.Join(out, "victim"), filepath.Join(dir, "data/readme"))
	}},
	"the folder of a named path":    {text: "store: {path: out/x.db}", fine: true, plant: func(t *testing.T, dir, out string) { plantLink(t, out, filepath.Join(dir, "out")) }},
	"what a process left that died": {fine: true, plant: func(t *testing.T, dir, _ string) { leftOver(t, filepath.Join(dir, ".tenon/tenon.db")) }},
}

// TestStoreLinks checks that opening a project's store never leads out of the project's folder, whatever already exists
// at its path, and that nothing outside is written.
func TestStoreLinks(t *testing.T) {
	for name, c := range plantedStores {
		t.Run("SEC-F12_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { checkPlantedStore(t, name, c) })
	}
}

// checkPlantedStore opens the project. It checks that the store is refused and that nothing outside of the project has
// changed.
func checkPlantedStore(t *testing.T, name string, c plantedStore) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, out := filepath.Join(top, "project"), filepath.Join(top, "out")
	for _, d := range []string{dir, out} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const precious = "precious"
	if err := os.WriteFile(filepath.Join(out, "victim"), []byte(precious), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tenon.yaml"), []byte("version: 1\n"+c.text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.plant(t, dir, out)
	before := listOf(t, out)
	none := func(string) (string, bool) { return "", false }
	o := config.Options{Dir: dir, Home: filepath.Join(top, "home"), LookupEnv: none}
	if !c.found {
		o.File = filepath.Join(dir, "tenon.yaml")
	}
	cfg, err := config.Load(t.Context(), o)
	if err == nil {
		var h *host.Host
		if h, err = host.Open(t.Context(), host.Config{Config: cfg, LookupEnv: none}); err == nil {
			_ = h.Close()
		}
	}
	switch {
	case c.fine && err != nil:
		t.Fatal(err)
	case c.fine:
		return
	case tenon.ErrorCode(err) != tenon.CodeConfig:
		if name == "the folder is a link within" && err == nil {
			return // that is no way out
		}
		t.Errorf("%v", err)
	}
	if got, err := os.ReadFile(filepath.Join(out, "victim")); err != nil || string(got) != precious {
		t.Errorf("the file outside is %q, %v", got, err)
	}
	if after := listOf(t, out); after != before {
		t.Errorf("outside there is %s, and was %s", after, before)
	}
}

// plantLink makes a link at a path whose folders may be missing.
func plantLink(t *testing.T, target, at string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, at); err != nil {
		t.Fatal(err)
	}
}

func hard(t *testing.T, target, at string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(target, at); err != nil {
		t.Skip(err)
	}
}

func pipe(t *testing.T, at string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(at, 0o600); err != nil {
		t.Skip(err)
	}
}

// leftOver makes an empty store that has a second name. A process that creates a store gives it this name for a moment;
// here the process died before it removed the name.
func leftOver(t *testing.T, at string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(at, at+".123.new"); err != nil {
		t.Skip(err)
	}
}

func listOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

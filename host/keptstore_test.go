package host_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// TestKeepUserStore checks that a project which began without a file keeps the user's store, that nothing in the
// project's folder chooses that store, and that a store of the project or one that a person named is used as before.
func TestKeepUserStore(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	env := func(name string) (string, bool) {
		if name != "HOME" {
			return "", false
		}
		return home, true
	}
	c := host.Config{Config: &config.Config{Path: filepath.Join(dir, "tenon.yaml"), Dir: dir}, LookupEnv: env}
	own, users := filepath.Join(dir, ".tenon", "tenon.db"), filepath.Join(home, ".local", "state", "tenon", "tenon.db")
	at := func(want string, kept bool) {
		t.Helper()
		if got := host.StorePath(c); got != want || host.KeepsUserStore(c) != kept {
			t.Errorf("UX-10: the store is %s, kept %v", got, host.KeepsUserStore(c))
		}
	}
	at(own, false)
	undo, err := host.KeepUserStore(c)
	if err != nil {
		t.Fatal(err)
	}
	at(users, true)
	undo()
	at(own, false)

	named := c
	named.Home = filepath.Join(dir, "elsewhere")
	if _, err := host.KeepUserStore(named); err != nil || host.KeepsUserStore(named) {
		t.Errorf("UX-10: --home: %v", err)
	}
	at(own, false)
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := host.KeepUserStore(c); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("UX-10: the project has a store: %v", err)
	}
	at(own, false)
	c.LookupEnv = func(string) (string, bool) { return "", false }
	c.Config.Dir, c.Config.Path = home, filepath.Join(home, "tenon.yaml")
	if _, err := host.KeepUserStore(c); tenon.ErrorCode(err) != tenon.CodeStore {
		t.Errorf("UX-10: no state folder: %v", err)
	}
}

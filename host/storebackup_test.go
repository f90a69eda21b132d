//go:build unix

package host_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// keeperOf returns the keeper of the store in home, for a user whose state is in a folder.
func keeperOf(t *testing.T, home, state string, env map[string]string) *host.StoreKeeper {
	t.Helper()
	k, err := host.KeepStore(host.Config{Config: &config.Config{}, Home: home,
		LookupEnv: func(name string) (string, bool) {
			if name == "XDG_STATE_HOME" {
				return state, true
			}
			v, ok := env[name]
			return v, ok
		}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestREL_backupOfAnotherKey: a backup without the key that signed the store is an error, unless it is asked for, and a
// restore says that a backup has no key.
func TestREL_backupOfAnotherKey(t *testing.T) {
	p := newSharedStore(t)
	p.steps = "steps: [{text: done}]"
	p.as(t, "victim", func(h *host.Host) { ask(t, h, host.Question{Text: "q"}) })
	ctx, dir := context.Background(), t.TempDir()
	for name, tt := range map[string]struct {
		user string
		env  map[string]string
		want string
	}{
		"no key":       {"none", nil, "store.key is not there"},
		"another key":  {"attacker", nil, "store.key did not sign them"},
		"another text": {"victim", map[string]string{"TENON_STORE_KEY": strings.Repeat("k", 32)}, "TENON_STORE_KEY did not"},
	} {
		t.Run(name, func(t *testing.T) {
			state := p.states[tt.user]
			switch {
			case state == "":
				state = t.TempDir()
			case tt.user == "attacker":
				p.as(t, "attacker", func(*host.Host) {}) // makes the key
			}
			k, folder := keeperOf(t, p.home, state, tt.env), filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			_, err := k.Backup(ctx, folder, true, nil)
			if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), tt.want) ||
				!strings.Contains(err.Error(), "--no-keys") {
				t.Fatalf("%v", err)
			}
			if _, err := os.Stat(folder); err == nil {
				t.Error("a folder is left")
			}
			info, err := k.Backup(ctx, folder, false, nil)
			if err != nil || info.NoKey == "" || info.Files["keys/store.key"] != "" {
				t.Fatalf("without keys: %+v, %v", info, err)
			}
			info, _, err = keeperOf(t, t.TempDir(), t.TempDir(), nil).Restore(ctx, folder, nil)
			if err != nil || !strings.Contains(info.NoKey, "signed rows are foreign here") {
				t.Errorf("restored: %+v, %v", info, err)
			}
		})
	}
	info, err := keeperOf(t, p.home, p.states["victim"], nil).Backup(ctx, filepath.Join(dir, "own"), true, nil)
	if err != nil || info.NoKey != "" || info.Files["keys/store.key"] == "" {
		t.Errorf("with the key: %+v, %v", info, err)
	}
}

// TestREL_restoreAsRoot: what root restores into a folder of a service belongs to the service.
func TestREL_restoreAsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const service = 65522
	p := newSharedStore(t)
	p.steps = "steps: [{text: done}]"
	p.as(t, "victim", func(h *host.Host) { ask(t, h, host.Question{Text: "q"}) })
	ctx, copied := context.Background(), filepath.Join(t.TempDir(), "copy")
	if err := os.Chown(filepath.Join(p.states["victim"], "tenon", "store.key"), service, service); err != nil {
		t.Fatal(err)
	}
	if _, err := keeperOf(t, p.home, p.states["victim"], nil).Backup(ctx, copied, true, nil); err != nil {
		t.Fatal(err) // root reads the key of the service
	}
	lib := t.TempDir()
	if err := os.Chown(lib, service, service); err != nil {
		t.Fatal(err)
	}
	_, _, err := keeperOf(t, filepath.Join(lib, "store"), filepath.Join(lib, "state"), nil).Restore(ctx, copied, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir(lib, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		if found++; st.Sys().(*syscall.Stat_t).Uid != service {
			t.Errorf("%s belongs to another user", path)
		}
		return nil
	})
	if err != nil || found < 6 { // lib, store, tenon.db, state, state/tenon, store.key
		t.Errorf("%d files, %v", found, err)
	}
}

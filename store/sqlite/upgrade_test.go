package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

// folderContents returns all files of a folder with their texts and times.
func folderContents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = info.ModTime().String() + string(text)
	}
	return files
}

// mustPlan plans an upgrade and checks that planning changes nothing in the store's folder.
func mustPlan(t *testing.T, path string) *UpgradePlan {
	t.Helper()
	before := folderContents(t, filepath.Dir(path))
	p, err := PlanUpgrade(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, folderContents(t, filepath.Dir(path))); diff != "" {
		t.Errorf("the plan changed files (-before +after):\n%.2000s", diff)
	}
	return p
}

// TestREL_upgradePlan plans upgrades of the stores of all earlier releases, makes them, and then goes back to the
// copies.
func TestREL_upgradePlan(t *testing.T) {
	if len(migrationTexts) != len(migrations) {
		t.Fatalf("%d texts for %d migrations", len(migrationTexts), len(migrations))
	}
	for version := 1; version < len(migrations); version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			path := copyOld(t, version)
			first := mustPlan(t, path)
			if first.Schema != version || first.Known != len(migrations) || len(first.Steps) != len(migrations)-version ||
				first.Steps[0] != (Step{version + 1, migrationTexts[version]}) || len(first.Problems) > 0 || len(first.Copies) > 0 {
				t.Errorf("plan %+v", first)
			}
			s, err := Open(t.Context(), Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if p := mustPlan(t, path); len(p.Steps) > 0 || p.Copy != "" || !cmp.Equal(p.Copies, []string{first.Copy}) {
				t.Errorf("after the migration: %+v", p)
			}
			// The way back: the copy replaces the store, and the older release can open it.
			for _, name := range []string{"", "-wal", "-shm", "-locks"} {
				if err := os.RemoveAll(path + name); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Rename(first.Copy, path); err != nil {
				t.Fatal(err)
			}
			old := mustOpen(t, path, migrations[:version])
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			back := mustPlan(t, path)
			if back.Schema != version || !cmp.Equal(back.Steps, first.Steps) {
				t.Errorf("after the way back: %+v", back)
			}
			again, err := Open(t.Context(), Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			checkOld(t, again)
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestREL_upgradeObstacles plans upgrades that would fail, and checks the reasons in the plan.
func TestREL_upgradeObstacles(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		if p := mustPlan(t, filepath.Join(t.TempDir(), "tenon.db")); p.Exists || len(p.Steps) > 0 || len(p.Problems) > 0 {
			t.Errorf("plan without a store: %+v", p)
		}
	})
	t.Run("newer", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "tenon.db")
		next := append(migrations[:len(migrations):len(migrations)], "CREATE TABLE later (n INTEGER)")
		s := mustOpen(t, path, next)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		p := mustPlan(t, path)
		if len(p.Problems) != 1 || !strings.Contains(p.Problems[0], "use a newer tenon") || len(p.Steps) > 0 {
			t.Errorf("plan %+v", p)
		}
	})
	t.Run("in_use", func(t *testing.T) {
		path := copyOld(t, 8)
		s := mustOpen(t, path, migrations[:8])
		release, ok, err := s.leases.acquire("run_1")
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		p, err := PlanUpgrade(t.Context(), path)
		if err != nil || len(p.Problems) != 1 || !strings.Contains(p.Problems[0], "stop tenon serve") {
			t.Errorf("plan %+v, %v", p, err)
		}
		release()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("log", func(t *testing.T) { // the version is only in the log, not in the file yet
		path := copyOld(t, 9)
		s := mustOpen(t, path, migrations)
		if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
			t.Fatalf("no log: %v, %v", info, err)
		}
		p, err := PlanUpgrade(t.Context(), path)
		if err != nil || p.Schema != len(migrations) {
			t.Errorf("plan %+v, %v", p, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("no_space", func(t *testing.T) {
		p := &UpgradePlan{Path: copyOld(t, 9), Bytes: 1000, Free: 1999}
		p.obstacles()
		if len(p.Problems) != 1 || !strings.Contains(p.Problems[0], "has 1999 bytes left, and the migration needs up to 2000") {
			t.Errorf("problems %q", p.Problems)
		}
	})
	t.Run("another_program", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "tenon.db")
		if err := os.WriteFile(path, []byte("not a database"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := PlanUpgrade(t.Context(), path); tenon.ErrorCode(err) != tenon.CodeStore {
			t.Errorf("error %v", err)
		}
	})
}

package trust

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

// project returns a project with two files.
func project(dir string) Project {
	return Project{Path: filepath.Join(dir, "tenon.yaml"), Dir: dir, Files: map[string]File{
		"tenon.yaml": {Digest: "a", Size: 1}, "run.sh": {Digest: "b", Size: 2, Why: "servers.x"}}}
}

var items = []Item{{"command", "servers.x", "start sh run.sh"}, {"store", "store.path", "keep runs in .tenon"}}

func TestCompare(t *testing.T) {
	p := project("/p")
	same := &Record{Project: p, Items: items}
	with := func(change func(files map[string]File)) Project {
		out := project("/p")
		change(out.Files)
		return out
	}
	for name, tt := range map[string]struct {
		record *Record
		p      Project
		items  []Item
		want   Diff
		empty  bool
	}{
		"the same":               {same, p, items, Diff{}, true},
		"no record":              {nil, p, items, Diff{Added: items, New: []string{"run.sh", "tenon.yaml"}}, false},
		"changed bytes":          {same, with(func(f map[string]File) { f["run.sh"] = File{Digest: "c", Size: 2} }), items, Diff{Changed: []string{"run.sh"}}, false},
		"changed size":           {same, with(func(f map[string]File) { f["run.sh"] = File{Digest: "b", Size: 3} }), items, Diff{Changed: []string{"run.sh"}}, false},
		"another link":           {same, with(func(f map[string]File) { f["run.sh"] = File{Digest: "b", Size: 2, Link: "/x"} }), items, Diff{Changed: []string{"run.sh"}}, false},
		"named by another entry": {same, with(func(f map[string]File) { f["run.sh"] = File{Digest: "b", Size: 2, Why: "servers.y"} }), items, Diff{}, true},
		"a new file":             {same, with(func(f map[string]File) { f[".env"] = File{Digest: "d"} }), items, Diff{New: []string{".env"}}, false},
		"a file less":            {same, with(func(f map[string]File) { delete(f, "run.sh") }), items, Diff{Gone: []string{"run.sh"}}, false},
		"an item more":           {same, p, append([]Item{{"url", "servers.y", "call x"}}, items...), Diff{Added: []Item{{"url", "servers.y", "call x"}}}, false},
		"an item less":           {same, p, items[:1], Diff{Removed: items[1:]}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := Compare(tt.record, tt.p, tt.items)
			if d := cmp.Diff(tt.want, got); d != "" || got.Empty() != tt.empty {
				t.Errorf("empty %v, -want +got:\n%s", got.Empty(), d)
			}
		})
	}
}

func TestStore(t *testing.T) {
	dir := t.TempDir()
	s := NewStore(filepath.Join(dir, "state", "trust"))
	p := project("/p")
	if r, err := s.Lookup(p); r != nil || err != nil {
		t.Fatalf("a record out of nothing: %v %v", r, err)
	}
	when := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	if kept, err := s.Grant(p, items, when); !kept || err != nil {
		t.Fatalf("%v %v", kept, err)
	}
	want := &Record{Version: 1, Project: p, Items: items, When: when.Truncate(time.Second)}
	if r, err := s.Lookup(p); err != nil || !cmp.Equal(want, r) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, r))
	}
	other := p
	other.Dir = "/elsewhere" // the same file, found through a link in another folder
	if r, err := s.Lookup(other); r != nil || err != nil {
		t.Errorf("a link to a trusted file is trusted: %v %v", r, err)
	}
	for path, mode := range map[string]os.FileMode{s.Dir(): 0o700, s.file(p): 0o600} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", path, st.Mode(), err)
		}
	}
	if list, err := s.List(); err != nil || len(list) != 1 || list[0].Path != p.Path {
		t.Errorf("%v %v", list, err)
	}
	if gone, err := s.Revoke(p); !gone || err != nil {
		t.Errorf("%v %v", gone, err)
	}
	if gone, err := s.Revoke(p); gone || err != nil {
		t.Errorf("revoked twice: %v %v", gone, err)
	}
	if r, err := s.Lookup(p); r != nil || err != nil {
		t.Errorf("it is still there: %v %v", r, err)
	}
}

// TestGrantMerges checks that a new grant for the same files keeps the earlier consents, and that a grant for changed
// files drops them.
func TestGrantMerges(t *testing.T) {
	s := NewStore(filepath.Join(t.TempDir(), "trust"))
	p, one, two := project("/p"), []Item{{Kind: "url", Text: "call a"}}, []Item{{Kind: "url", Text: "call b"}}
	grant := func(p Project, items []Item) *Record {
		t.Helper()
		if _, err := s.Grant(p, items, time.Now()); err != nil {
			t.Fatal(err)
		}
		r, err := s.Lookup(p)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	grant(p, one)
	if r := grant(p, two); !Compare(r, p, one).Empty() || !Compare(r, p, two).Empty() {
		t.Errorf("what was agreed to is lost: %v", r.Items)
	}
	p.Files["run.sh"] = File{Digest: "other"}
	if r := grant(p, two); Compare(r, p, one).Empty() {
		t.Errorf("another version of the files inherits: %v", r.Items)
	}
}

// TestStoreRefuses checks that records that another user may have written are ignored.
func TestStoreRefuses(t *testing.T) {
	grant := func(t *testing.T, dir string) (*Store, Project) {
		t.Helper()
		s, p := NewStore(dir), project("/p")
		if _, err := s.Grant(p, items, time.Now()); err != nil {
			t.Fatal(err)
		}
		return s, p
	}
	for name, tt := range map[string]struct {
		do   func(t *testing.T, s *Store, p *Project) error
		code tenon.Code // "": there is no record
	}{
		"a folder that all can write":       {func(_ *testing.T, s *Store, _ *Project) error { return os.Chmod(s.Dir(), 0o777) }, tenon.CodeDenied},
		"a folder above that all can write": {func(_ *testing.T, s *Store, _ *Project) error { return os.Chmod(filepath.Dir(s.Dir()), 0o777) }, tenon.CodeDenied},
		"a record that all can write":       {func(_ *testing.T, s *Store, p *Project) error { return os.Chmod(s.file(*p), 0o666) }, tenon.CodeDenied},
		"a folder in the project": {func(_ *testing.T, s *Store, p *Project) error {
			p.Dir = filepath.Dir(s.Dir())
			return nil
		}, tenon.CodeDenied},
		"a link in place of a record": {func(_ *testing.T, s *Store, p *Project) error {
			if err := os.Rename(s.file(*p), s.file(*p)+".x"); err != nil {
				return err
			}
			return os.Symlink(s.file(*p)+".x", s.file(*p))
		}, tenon.CodeStore},
		"a record of another project": {func(_ *testing.T, s *Store, p *Project) error {
			old := s.file(*p)
			p.Path = "/q/tenon.yaml"
			return os.Rename(old, s.file(*p))
		}, ""},
		"a record of another version": {func(_ *testing.T, s *Store, p *Project) error {
			return os.WriteFile(s.file(*p), []byte(`{"version":2,"path":"/p/tenon.yaml","dir":"/p"}`), 0o600)
		}, ""},
		"a record that is no JSON":   {func(_ *testing.T, s *Store, p *Project) error { return os.WriteFile(s.file(*p), []byte("x"), 0o600) }, ""},
		"a record that is too large": {func(_ *testing.T, s *Store, p *Project) error { return os.Truncate(s.file(*p), maxRecord+1) }, tenon.CodeStore},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := grant(t, filepath.Join(t.TempDir(), "state", "trust"))
			if err := tt.do(t, s, &p); err != nil {
				t.Fatal(err)
			}
			r, err := s.Lookup(p)
			if r != nil || tt.code == "" && err != nil || tt.code != "" && tenon.ErrorCode(err) != tt.code {
				t.Errorf("record %v, %v, want %q", r, err, tt.code)
			}
		})
	}
	for _, dir := range []string{"", "state", "./state"} {
		if s := NewStore(dir); s.Dir() != "" {
			t.Errorf("%q is a store", dir)
		}
	}
}

// TestStoreTogether checks that concurrent processes do not lose each other's grants.
func TestStoreTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			p := project(fmt.Sprintf("/p%d", i))
			if _, err := NewStore(dir).Grant(p, items, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := NewStore(dir).List(); err != nil || len(list) != 20 {
		t.Errorf("%d records, %v", len(list), err)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "sub", "file")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(file, filepath.Join(dir, "missing", "file")); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path string
		mode os.FileMode
		want string
	}{
		"file":            {file, 0o666, "chmod o-w '" + file},
		"folder":          {filepath.Dir(file), 0o777, "chmod o-w '" + filepath.Dir(file)},
		"folder above":    {dir, 0o777, "chmod o-w '" + dir},
		"with sticky bit": {dir, 0o777 | os.ModeSticky, ""},
		"own group":       {file, 0o660, ""},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := os.Stat(tt.path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.Chmod(tt.path, st.Mode().Perm()) }()
			if err := os.Chmod(tt.path, tt.mode); err != nil {
				t.Fatal(err)
			}
			err = Check(file)
			if tt.want == "" && err != nil || tt.want != "" && (tenon.ErrorCode(err) != tenon.CodeDenied || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/filelock"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// Store is the folder of records in the user's state folder. It has one file for each project, so that concurrent
// processes do not overwrite each other's records.
type Store struct {
	dir string // "" if the user has no state folder
}

const (
	lockTime   = 10 * time.Second // limit of the wait for another process that writes a record
	maxRecord  = 64 << 20         // bytes of a record
	maxRecords = 10_000           // records that List reads
	suffix     = ".json"
)

// NewStore returns the store in a folder, which need not exist. If dir is not an absolute path, the store keeps
// nothing: a relative path would lead into the project.
func NewStore(dir string) *Store {
	if !filepath.IsAbs(dir) {
		return &Store{}
	}
	return &Store{dir: filepath.Clean(dir)}
}

// Dir returns the folder, or "" for a store that keeps nothing.
func (s *Store) Dir() string { return s.dir }

// File returns the path of a project's record, whether or not the record exists. It returns "" for a store that keeps
// nothing.
func (s *Store) File(p Project) string {
	if s.dir == "" {
		return ""
	}
	return s.file(p)
}

// file returns the path of a project's record.
func (s *Store) file(p Project) string {
	sum := sha256.Sum256([]byte(p.Path + "\x00" + p.Dir))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16])+suffix)
}

// Lookup returns the record of a project, or nil if there is none. It uses only Path and Dir of p. The error has code
// denied if other users can write the records or if the records are inside the project's folder, and code store if
// the record cannot be read.
func (s *Store) Lookup(p Project) (*Record, error) {
	if s.dir == "" || p.Path == "" {
		return nil, nil
	}
	if err := s.check(p); err != nil {
		return nil, err
	}
	r, err := read(s.file(p))
	if err != nil || r == nil || r.Path != p.Path || r.Dir != p.Dir {
		return nil, err
	}
	return r, nil
}

// Grant writes the record of a project and replaces an older one. It returns false for a store that keeps nothing. It
// returns the same errors as [Store.Lookup].
func (s *Store) Grant(p Project, items []Item, when time.Time) (bool, error) {
	if s.dir == "" || p.Path == "" {
		return false, nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return false, tenon.Errorf(tenon.CodeStore, "the trust in %s cannot be kept: %w", p.Path, err)
	}
	// Two processes can record consent to different items of one project at once. The lock keeps both.
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	unlock, err := filelock.Folder(ctx, s.dir)
	if err != nil {
		return false, tenon.Errorf(tenon.CodeStore, "the trust in %s cannot be kept: %s cannot be locked: %w", p.Path,
			s.dir, err)
	}
	defer unlock()
	before, err := s.Lookup(p)
	if err != nil {
		return false, err
	}
	r := Record{Version: recordVersion, Project: p, Items: Merge(before, p, items),
		When: when.UTC().Truncate(time.Second)}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return false, tenon.Errorf(tenon.CodeInternal, "the record of %s cannot be written: %w", p.Path, err)
	}
	if err := s.check(p); err != nil { // the folder may be new
		return false, err
	}
	if err := wholefile.Write(s.file(p), append(b, '\n'), 0o600); err != nil {
		return false, tenon.Errorf(tenon.CodeStore, "the trust in %s cannot be kept in %s: %w", p.Path, s.dir, err)
	}
	return true, nil
}

// List returns at most 10,000 records, sorted by path. It ignores files that are not records.
func (s *Store) List() ([]Record, error) {
	if s.dir == "" {
		return nil, nil
	}
	if err := s.check(Project{}); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "the trusted projects cannot be listed: %w", err)
	}
	var list []Record
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) || len(list) >= maxRecords {
			continue
		}
		if r, err := read(filepath.Join(s.dir, e.Name())); err == nil && r != nil &&
			filepath.Base(s.file(r.Project)) == e.Name() {
			list = append(list, *r)
		}
	}
	slices.SortFunc(list, byPath)
	return list, nil
}

// Revoke removes the record of a project. It returns false if there is none.
func (s *Store) Revoke(p Project) (bool, error) {
	if s.dir == "" {
		return false, nil
	}
	err := os.Remove(s.file(p))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, tenon.Errorf(tenon.CodeStore, "the trust in %s cannot be revoked: %w", p.Path,
			wholefile.Reason(err))
	}
	return true, nil
}

// check refuses records that users other than the owner may have written.
func (s *Store) check(p Project) error {
	if _, err := os.Stat(s.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	real, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "the records of trusted projects: %w", err)
	}
	if why := onTheWay(real, map[string]bool{}); why != "" {
		return tenon.Errorf(tenon.CodeDenied, "the records of trusted projects are not believed: %s", why)
	}
	if p.Dir != "" && within(real, p.Dir) && !s.ownsHome(p.Dir) {
		return tenon.Errorf(tenon.CodeDenied,
			"the records of trusted projects are not believed: %s lies inside the project %s; set XDG_STATE_HOME to "+
				"another folder", s.dir, p.Dir)
	}
	return nil
}

// ownsHome reports whether a project's folder is the user's home folder or a folder above it. The state folder is
// always inside such a folder.
func (s *Store) ownsHome(dir string) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	if home, err = filepath.EvalSymlinks(home); err != nil {
		return false
	}
	return within(home, dir)
}

// within reports whether a path is a folder or is inside it. Both must be clean and absolute.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && (rel == "." || filepath.IsLocal(rel))
}

// read reads one record. It returns nil if there is none, or if this version does not know the version of the record.
func read(path string) (*Record, error) {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !st.Mode().IsRegular() {
		return nil, tenon.Errorf(tenon.CodeStore, "the record of trust %s is not a file; remove it", path)
	}
	if why := writable(path); why != "" {
		return nil, tenon.Errorf(tenon.CodeDenied, "the record of trust is not believed: %s", why)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "the record of trust %s cannot be read: %w", path,
			wholefile.Reason(err))
	}
	defer f.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil || len(b) > maxRecord {
		return nil, tenon.Errorf(tenon.CodeStore, "the record of trust %s cannot be read; remove it", path)
	}
	var r Record
	if json.Unmarshal(b, &r) != nil || r.Version != recordVersion {
		return nil, nil // tenon asks the person again
	}
	return &r, nil
}

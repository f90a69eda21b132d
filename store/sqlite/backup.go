package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/privatefile"
)

// A backup is a folder: the store as one file without a log, and backup.json, which is written last. Keys that belong
// to the store may be in it, too.
const (
	backupFile     = "tenon.db"
	backupManifest = "backup.json"
	backupFormat   = 1
	// maxManifest bounds the size of backup.json.
	maxManifest = 1 << 20
)

// BackupInfo is the contents of backup.json.
type BackupInfo struct {
	Format  int               `json:"format"`
	Created time.Time         `json:"created"`
	Schema  int               `json:"schema"`
	Runs    int64             `json:"runs"`
	Bytes   int64             `json:"bytes"`
	Files   map[string]string `json:"files"` // path in the folder → SHA-256 in hex
	// NoKey says why the key that signs the store is not in the backup; "" if it is. The caller of [Backup] sets it.
	NoKey string `json:"-"`
}

// Progress receives the name of a step, and how much of it is done. Of may be 0.
type Progress func(step string, done, of int64)

func (p Progress) report(step string, done, of int64) {
	if p != nil {
		p(step, done, of)
	}
}

// Backup copies a store into a new folder. Other processes may work on the store meanwhile: the copy is one snapshot
// that contains every write which ended before. keys are further files to copy: name in the backup → path. Backup
// checks the copy. Errors: not_found (no store), conflict (the folder exists), store (also if the copy has damage),
// cancelled.
func Backup(ctx context.Context, path, folder string, keys map[string]string, progress Progress) (info *BackupInfo,
	err error) {
	if path, err = existing(path); err != nil {
		return nil, err
	}
	// The folder is made, never reused, so that no link in it leads elsewhere.
	if err := os.Mkdir(folder, 0o700); errors.Is(err, fs.ErrExist) {
		return nil, tenon.Errorf(tenon.CodeConflict, "backup: %s exists; name a new folder", folder)
	} else if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "backup: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(folder) // it is incomplete
		}
	}()
	info = &BackupInfo{Format: backupFormat, Created: time.Now().UTC(), Files: map[string]string{}}
	copied := filepath.Join(folder, backupFile)
	if err := vacuumInto(ctx, path, copied, progress); err != nil {
		return nil, err
	}
	report, err := Check(ctx, CheckConfig{Path: copied, alone: true, Progress: func(step string, n, of int) {
		progress.report("check: "+step, int64(n), int64(of))
	}})
	switch {
	case err != nil:
		return nil, err
	case !report.OK():
		return nil, tenon.Errorf(tenon.CodeStore,
			"store %s: it is damaged, so there is no backup: %s; %s", path, report.Problems[0], remedyDamaged)
	}
	info.Schema, info.Runs, info.Bytes = report.Version, report.Runs, report.Bytes
	if info.Files[backupFile], err = sumFile(copied); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "backup: %w", err)
	}
	for name, from := range keys {
		if info.Files[name], err = copyNew(from, filepath.Join(folder, name)); err != nil {
			return nil, tenon.Errorf(tenon.CodeStore, "backup: %w", err)
		}
	}
	text, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "backup: %w", err)
	}
	if err := writeNew(filepath.Join(folder, backupManifest), append(text, '\n')); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "backup: %w", err)
	}
	return info, nil
}

// existing returns the absolute path of a store that exists.
func existing(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", tenon.Errorf(tenon.CodeStore, "store: %w", err)
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return "", missing(path)
	case err != nil:
		return "", tenon.Errorf(tenon.CodeStore, "store %s: %w", path, err)
	case !info.Mode().IsRegular():
		return "", tenon.Errorf(tenon.CodeStore, "store %s: it is not a regular file (%s)", path, info.Mode().Type())
	}
	return path, checkRemains(path)
}

// vacuumInto copies one snapshot of a store into a new file, and syncs it.
func vacuumInto(ctx context.Context, path, to string, progress Progress) error {
	db, err := connectWith(path, 2, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}})
	if err != nil {
		return storeError(path, "open", err)
	}
	defer func() { _ = db.Close() }() // it was only read
	var pages, app int64
	err = db.QueryRowContext(ctx, "SELECT page_count, application_id FROM pragma_page_count, pragma_application_id").
		Scan(&pages, &app)
	switch {
	case err != nil:
		return storeError(path, "back up", err)
	case app != applicationID:
		return tenon.Errorf(tenon.CodeStore, "store %s: the file is a database of another program", path)
	}
	if err := writeNew(to, nil); err != nil { // VACUUM INTO takes an empty file and keeps its mode
		return tenon.Errorf(tenon.CodeStore, "backup: %w", err)
	}
	stop := watchSize(to, func(size int64) { progress.report("copy", size, pages*storePageSize) })
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	stop()
	if ctx.Err() != nil {
		return tenon.Errorf(tenon.CodeCancelled, "store %s: no backup: %w", path, ctx.Err())
	}
	if err != nil {
		return storeError(path, "back up", err)
	}
	if err := syncFile(to); err != nil {
		return tenon.Errorf(tenon.CodeStore, "backup: %w", err)
	}
	return nil
}

// watchEvery is how often progress is reported.
const watchEvery = 500 * time.Millisecond

// watchSize reports the size of a file until stop is called.
func watchSize(path string, report func(int64)) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-time.After(watchEvery):
				if info, err := os.Stat(path); err == nil {
					report(info.Size())
				}
			}
		}
	}()
	return func() { close(quit); <-done }
}

// writeNew writes a file that must not exist, mode 0600, and syncs it.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// copyNew copies a file to one that must not exist, and returns its SHA-256. Folders are made.
func copyNew(from, to string) (sum string, err error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }() // it was only read
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, h), in)
	if err == nil {
		err = privatefile.HandOver(out)
	}
	if err == nil {
		err = out.Sync()
	}
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, out.Close())
}

func sumFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// ReadBackup reads backup.json of a folder and compares its files with it. Errors: not_found (no backup), store (a file
// has changed, or the format is newer).
func ReadBackup(folder string) (*BackupInfo, error) {
	f, err := os.Open(filepath.Join(folder, backupManifest))
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeNotFound,
			"%s is no backup of a store: %w; 'tenon store backup FOLDER' makes one", folder, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxManifest))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "backup %s: %w", folder, err)
	}
	info := &BackupInfo{}
	switch err := json.Unmarshal(text, info); {
	case err != nil || info.Files[backupFile] == "":
		return nil, tenon.Errorf(tenon.CodeStore, "backup %s: %s is damaged; use another backup", folder,
			backupManifest)
	case info.Format != backupFormat || info.Schema > len(migrations):
		return nil, tenon.Errorf(tenon.CodeStore, "backup %s: a newer tenon made it; use that one", folder)
	}
	for name, want := range info.Files {
		if !filepath.IsLocal(name) {
			return nil, tenon.Errorf(tenon.CodeStore, "backup %s: its file %q is elsewhere", folder, name)
		}
		got, err := sumFile(filepath.Join(folder, name))
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeStore, "backup %s: %w", folder, err)
		}
		if got != want {
			return nil, tenon.Errorf(tenon.CodeStore, "backup %s: %s has changed since the backup; use another backup",
				folder, name)
		}
	}
	return info, nil
}

// Restore copies the store of a backup to a path where no store is. Errors: the errors of [ReadBackup]; conflict
// (there is a store, or files of one), store. If root restores, what is new belongs to the owner of the folder.
func Restore(ctx context.Context, folder, path string, progress Progress) (info *BackupInfo, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "store: %w", err)
	}
	if err := vacant(path); err != nil {
		return nil, err
	}
	progress.report("compare with backup.json", 0, 0)
	if info, err = ReadBackup(folder); err != nil {
		return nil, err
	}
	part, err := partBeside(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(part) }() // linked, or incomplete
	progress.report("copy", 0, info.Bytes)
	if _, err := copyNew(filepath.Join(folder, backupFile), part); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "restore: %w", err)
	}
	report, err := Check(ctx, CheckConfig{Path: part, alone: true, Progress: func(step string, n, of int) {
		progress.report("check: "+step, int64(n), int64(of))
	}})
	if err != nil {
		return nil, err
	}
	if !report.OK() {
		return nil, tenon.Errorf(tenon.CodeStore, "backup %s: it is damaged: %s; use another backup", folder,
			report.Problems[0])
	}
	return info, install(part, path)
}

// partBeside returns a name for a temporary file next to the store. It creates a missing folder.
func partBeside(path string) (string, error) {
	if err := privatefile.MakeFolders(filepath.Dir(path)); err != nil {
		return "", tenon.Errorf(tenon.CodeStore, "store %s: %w", path, err)
	}
	return fmt.Sprintf("%s.%d.new", path, time.Now().UnixNano()), nil
}

// vacant returns an error if there is a store at a path, or a file that SQLite would treat as its log.
func vacant(path string) error {
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		if _, err := os.Lstat(path + end); err == nil {
			return tenon.Errorf(tenon.CodeConflict,
				"%s exists, and nothing is overwritten: move it and the other files of the store (%s-*) away first",
				path+end, filepath.Base(path))
		}
	}
	if busy, err := inUse(path); err != nil || busy {
		return busyError(path, err)
	}
	return nil
}

// install gives a finished file its name, unless somebody else has made a store there.
func install(part, path string) error {
	err := os.Link(part, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Lstat(path); errors.Is(there, fs.ErrNotExist) { // a file system without links
			err = os.Rename(part, path)
		}
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeConflict, "store %s: %w; nothing is overwritten", path, err)
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder syncs a folder so that a new file name survives a power failure, if the system supports that.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "store: %w", err)
	}
	_ = f.Sync() // not all systems sync folders
	return f.Close()
}

// inUse reports whether a process works on a run of the store, or serves it.
func inUse(path string) (bool, error) {
	if _, err := os.Lstat(path + locksEnd); err != nil {
		return false, nil
	}
	l, err := openLeases(path + locksEnd)
	if err != nil {
		return false, err
	}
	busy, err := l.busy()
	return busy, errors.Join(err, l.close())
}

func busyError(path string, err error) error {
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "store %s: its leases cannot be read: %w", path, err)
	}
	return tenon.Errorf(tenon.CodeConflict,
		"store %s: a process works on it; stop tenon serve, let its runs end, and try again", path)
}

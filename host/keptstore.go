package host

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// A person may work in a folder without a configuration file, and later write one with tenon. The runs of that folder
// are then in the user's store, and the project's store would be another file. A note in the user's state folder says
// that the project keeps the user's store. Only the user can write the note, so no project can choose that store.

// keptDir is the folder of the notes, in the user's state folder. The name of a note is a digest of the path of the
// project's file.
const keptDir = "kept-stores"

// keptNote returns the path of the note about a project, or "" if there is no state folder or no project.
func (c Config) keptNote() string {
	dir := c.stateDir()
	if dir == "" || c.Config == nil || c.Config.Path == "" {
		return ""
	}
	path := c.Config.Path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(dir, keptDir, hex.EncodeToString(sum[:16]))
}

// KeepsUserStore reports whether the project of a config keeps its runs in the user's store, because [KeepUserStore]
// was called for it.
func KeepsUserStore(c Config) bool {
	if c.Home != "" || c.Config == nil || c.Config.Store.Path != "" {
		return false
	}
	note := c.keptNote()
	if note == "" {
		return false
	}
	st, err := os.Lstat(note)
	return err == nil && st.Mode().IsRegular()
}

// KeepUserStore makes the project of a config keep its runs in the user's store, from now on and in all processes. It
// is for a project whose file a person has just written, and whose runs so far are in that store. With --home, or with
// store.path in a file, it changes nothing, because these name the store. undo removes the note. Errors: conflict if
// the project already has a store, store if the note cannot be written.
func KeepUserStore(c Config) (undo func(), err error) {
	nothing := func() {}
	if c.Home != "" || c.Config == nil || c.Config.Store.Path != "" || KeepsUserStore(c) {
		return nothing, nil
	}
	own, _ := c.storePath()
	if _, err := os.Lstat(own); err == nil {
		return nothing, tenon.Errorf(tenon.CodeConflict, "the runs of this process are in your own store, and %s is "+
			"the store of the project; start tenon again to use the project's store", own)
	}
	note := c.keptNote()
	if note == "" {
		return nothing, tenon.Errorf(tenon.CodeStore, "there is no place to remember where the runs of %s are: set "+
			"HOME or XDG_STATE_HOME", c.Config.Path)
	}
	if err = os.MkdirAll(filepath.Dir(note), 0o700); err == nil {
		err = wholefile.Write(note, []byte(c.Config.Path+"\n"), 0o600)
	}
	if err != nil {
		return nothing, tenon.Errorf(tenon.CodeStore, "cannot remember where the runs of %s are: %w", c.Config.Path,
			err)
	}
	return func() { _ = os.Remove(note) }, nil
}

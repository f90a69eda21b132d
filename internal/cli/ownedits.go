package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/filelock"
	"github.com/tenonhq/tenon/internal/privatefile"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// If the owner edits a configuration file with a tenon command, the owner agrees to that edit. The command records the
// edit in the user's state folder, with the digests of the file before and after it. A running tenon serve that uses
// the earlier file then accepts the later one. It accepts nothing else, because edits by other programs have no record.

// notedEdit is one change of a file by the owner's command.
type notedEdit struct {
	From string    `json:"from"` // digest in hex; for a new file, the digest of zero bytes
	To   string    `json:"to"`
	When time.Time `json:"when"`
}

// editNotes is the file that records the edits of one configuration file.
type editNotes struct {
	Path  string      `json:"path"`
	Edits []notedEdit `json:"edits"`
}

const (
	maxOwnEdits = 32      // records for one file; older ones are dropped
	maxNote     = 1 << 20 // maximum size of a file of records, and of a file that is compared with them
	// noteGrace is how much older an edit's record may be than the configuration in use. The file is written shortly
	// after the record.
	noteGrace = 2 * time.Second
)

// writePlan records a change of a file as its owner's and writes it.
func (a *app) writePlan(ctx context.Context, p *config.Plan) error {
	for i := range p.Texts {
		a.noteOwnEdit(p.Texts[i].Path(), p.Texts[i].Before, p.Texts[i].After)
	}
	a.noteOwnEdit(p.Path(), p.Before, p.After)
	return p.Write(ctx)
}

// noteOwnEdit is noteEdit for a verb that writes the file even if the edit cannot be recorded.
func (a *app) noteOwnEdit(path string, before, after []byte) {
	if err := a.noteEdit(path, before, after); err != nil {
		a.note("%s; a running tenon serve will ask you to agree to the change: tenon proposals", err)
	}
}

// editsFile returns the file that records the edits of a configuration file. It is empty if the user has no state
// folder.
func (a *app) editsFile(path string) string {
	dir := a.trustStore().Dir()
	if dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(filepath.Dir(dir), "edits", hex.EncodeToString(sum[:16])+".json")
}

// noteEdit records that the owner changes a file. It is called before the file is written.
func (a *app) noteEdit(path string, before, after []byte) error {
	path = realPath(path)
	file := a.editsFile(path)
	if file == "" {
		return tenon.Errorf(tenon.CodeStore, "the change of %s cannot be recorded: set HOME or XDG_STATE_HOME", path)
	}
	unlock, err := lockFolder(filepath.Dir(file))
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "the change of %s cannot be recorded: %w", path, err)
	}
	defer unlock()
	list, err := readEdits(file, path)
	if err != nil {
		return err
	}
	list = append(list, notedEdit{digestOf(before), digestOf(after), time.Now().UTC()})
	if n := len(list) - maxOwnEdits; n > 0 {
		list = list[n:]
	}
	b, err := json.Marshal(editNotes{path, list})
	if err == nil {
		err = wholefile.Write(file, append(b, '\n'), 0o600)
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "the change of %s cannot be recorded: %w", path, err)
	}
	return nil
}

// lockFolder creates a folder of records and locks it for a change, which takes milliseconds.
func lockFolder(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return filelock.Folder(ctx, dir)
}

// readEdits reads the recorded edits of a configuration file. If other users can write the records, the error has code
// denied.
func readEdits(file, path string) ([]notedEdit, error) {
	b, err := privatefile.Read(file, maxNote)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeDenied, "the records of your own changes are not trusted: %w", err)
	}
	var e editNotes
	if json.Unmarshal(b, &e) != nil || e.Path != path {
		return nil, nil // another format, or the records of another file
	}
	return e.Edits, nil
}

// isOwnEdit reports whether the owner's commands changed a file from one version to another since a time. from and to
// are digests; an empty digest means that the file did not exist.
func (a *app) isOwnEdit(path, from, to string, since time.Time) bool {
	path = realPath(path)
	file := a.editsFile(path)
	if file == "" {
		return false
	}
	list, err := readEdits(file, path)
	if err != nil {
		return false
	}
	at := from
	if at == "" {
		at = digestOf(nil)
	}
	for _, e := range list {
		if e.From == at && e.When.After(since.Add(-noteGrace)) {
			at = e.To
		}
	}
	return at == to && at != from
}

// realPath returns the path of a file without links. The file need not exist.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

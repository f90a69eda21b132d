package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon"
)

// remains returns the files of a store, if its own file is missing or empty, "" if there are none. Such a store was
// damaged or moved without them: a new one in its place would hide the loss.
func remains(path string) string {
	var found []string
	for _, end := range []string{"-wal", "-shm", "-journal", locksEnd} {
		if _, err := os.Lstat(path + end); err == nil {
			found = append(found, filepath.Base(path)+end)
		}
	}
	entries, _ := os.ReadDir(filepath.Dir(path)) // an error of the folder comes when the store is made
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)+".v") && strings.HasSuffix(e.Name(), ".bak") {
			found = append(found, e.Name())
		}
	}
	return strings.Join(found, ", ")
}

// checkRemains refuses a store that would be made, or whose file is empty, next to the remains of one. Errors: store.
func checkRemains(path string) error {
	left := ""
	for range 2 { // another process may be making the store: its file comes first
		info, err := os.Lstat(path)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil // its opening returns the error
		case err == nil && (info.Size() > 0 || !info.Mode().IsRegular()):
			return nil
		}
		if left = remains(path); left == "" {
			return nil
		}
	}
	return remainsError(path, left)
}

func remainsError(path, left string) error {
	state := "is missing"
	if _, err := os.Lstat(path); err == nil {
		state = "is empty"
	}
	return tenon.Errorf(tenon.CodeStore,
		"store %s: the file %s, but other files of a store are next to it: %s; put back a backup with "+
			"'tenon store restore', or remove them all to begin with an empty store", path, state, left)
}

package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon"
)

// remains returns the other files of a store if the store's own file is missing or empty, or "" if there are none.
// Such a store was damaged, or moved without these files. A new store at this path would hide the loss.
func remains(path string) string {
	var found []string
	for _, end := range []string{"-wal", "-shm", "-journal", locksEnd} {
		if _, err := os.Lstat(path + end); err == nil {
			found = append(found, filepath.Base(path)+end)
		}
	}
	entries, _ := os.ReadDir(filepath.Dir(path)) // an error of the folder is reported when the store is created
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)+".v") && strings.HasSuffix(e.Name(), ".bak") {
			found = append(found, e.Name())
		}
	}
	return strings.Join(found, ", ")
}

// checkRemains returns an error if a store is about to be created, or has an empty file, while other files of a store
// are next to it. Errors: store.
func checkRemains(path string) error {
	left := ""
	for range 2 { // another process may be creating the store, and its file comes first
		info, err := os.Lstat(path)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil // opening it returns the error
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

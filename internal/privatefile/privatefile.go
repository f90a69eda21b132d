// Package privatefile reads files that hold a secret of the user, such as the token of
// tenon serve.
//
// A secret that another user can read is no secret, and neither is one that another user
// can replace. So Read refuses a file when
//
//   - its mode lets the group or others read or write it,
//   - it belongs to a user other than root and the caller,
//   - a folder on the way to it lets other users exchange the file: the folder is writable
//     by others, or by a group that is not the caller's own, and has no sticky bit; or it
//     belongs to a user other than root and the caller, unless the caller is root.
//
// Symbolic links are resolved: the rules hold for the file that the path leads to, and for
// the folders of the path and of the target. The mode is read from the open file, so
// that nobody can exchange the file between the check and the read. Windows keeps access
// lists in place of modes; there only the size is checked.
//
// The package is below config and internal/cli, which name the file in their own errors.
package privatefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Writer describes the users, besides root and the caller, that can write a file or a folder.
type Writer int

// The values of [Writer].
const (
	Nobody      Writer = iota
	AnotherUser        // the owner of the file
	AllUsers
	AGroup
)

// Refused is the error for a file that other users can read or replace.
type Refused struct {
	Path string // the file or folder with the wrong mode or owner
	Why  string // such as "other users can read it (mode 0644)"
	Do   string // such as "chmod 600 PATH"
}

// Error implements error.
func (r *Refused) Error() string { return r.Path + ": " + r.Why + "; " + r.Do }

// Read returns the content of a file that only the caller can read. The file may have at most limit bytes. Errors:
// *Refused, *fs.PathError, and an error for a file that is too large.
func Read(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("is a folder")}
	}
	if err := check(path, st); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return b, err
}

// Check returns the error that Read would return for a file that is to contain a secret. It returns nil if the file
// does not exist.
func Check(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return nil //nolint:nilerr // reading the file reports this
	}
	return check(path, st)
}

// check applies the rules to a file and to the folders that lead to it.
func check(path string, st fs.FileInfo) error {
	if err := checkFile(path, st); err != nil || !st.Mode().IsRegular() {
		return err // the folder of a pipe, such as /dev/fd, is not checked
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	chains := []string{filepath.Dir(full)}
	if target, err := filepath.EvalSymlinks(full); err == nil && target != full {
		chains = append(chains, filepath.Dir(target))
	}
	for _, dir := range chains {
		for {
			if st, err := os.Stat(dir); err == nil {
				if err := checkFolder(dir, st); err != nil {
					return err
				}
			}
			up := filepath.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return nil
}

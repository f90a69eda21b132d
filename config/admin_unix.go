//go:build unix

package config

import (
	"fmt"
	"io/fs"
	"syscall"
)

// onlyRootWrites returns an error unless a file or folder is owned by root and nobody
// else can write to it.
func onlyRootWrites(path string, st fs.FileInfo) error {
	owner, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return fmt.Errorf("the owner of %s is not known", path)
	case owner.Uid != 0:
		return fmt.Errorf("%s is not owned by root; chown root %s", path, path)
	case st.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written by others than root (mode %04o); chmod go-w %s", path, st.Mode().Perm(),
			path)
	}
	return nil
}

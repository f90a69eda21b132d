//go:build unix

package host

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

func spareName() string { return "tenon-" + strconv.Itoa(os.Getuid()) }

// isOnlyOurs reports whether nobody else can reach into a folder.
func isOnlyOurs(st fs.FileInfo) bool {
	s, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid() && st.Mode().Perm()&0o077 == 0
}

//go:build unix

package host

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

func fallbackName() string { return "tenon-" + strconv.Itoa(os.Getuid()) }

// isOnlyOurs reports whether only the user can access a folder.
func isOnlyOurs(st fs.FileInfo) bool {
	s, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid() && st.Mode().Perm()&0o077 == 0
}

// linksOf returns the number of hard links of a file.
func linksOf(st fs.FileInfo) int {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(s.Nlink)
	}
	return 1
}

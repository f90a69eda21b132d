//go:build unix

package privatefile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	othersAny   = 0o077
	groupWrite  = 0o020
	othersWrite = 0o002
)

func checkFile(path string, st fs.FileInfo) error {
	perm := st.Mode().Perm()
	if perm&othersAny != 0 {
		return &Refused{path, fmt.Sprintf("other users can read or write it (mode %04o)", perm), "chmod 600 " + path}
	}
	if s, ok := st.Sys().(*syscall.Stat_t); ok && !isTrusted(s.Uid) {
		return &Refused{path, fmt.Sprintf("it belongs to another user (uid %d)", s.Uid), "use a file of your own"}
	}
	return nil
}

// Others returns who, besides root and the current user, can write a file or folder. The number is the id of the user
// or group. A folder with the sticky bit, such as /tmp, counts as not writable: users can replace only their own files
// in it. The primary group of the process counts as the current user, because on most systems the user is its only
// member. If owner is false, the owner of the file is ignored.
func Others(st fs.FileInfo, owner bool) (Writer, uint32) {
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return Nobody, 0
	}
	mode := st.Mode()
	sticky := st.IsDir() && mode&fs.ModeSticky != 0
	switch {
	case owner && !isTrusted(s.Uid):
		return AnotherUser, s.Uid
	case mode.Perm()&othersWrite != 0 && !sticky:
		return AllUsers, 0
	case mode.Perm()&groupWrite != 0 && !sticky && int(s.Gid) != os.Getegid():
		return AGroup, s.Gid
	}
	return Nobody, 0
}

func checkFolder(path string, st fs.FileInfo) error {
	perm := st.Mode().Perm()
	who, id := Others(st, os.Geteuid() != 0) // root also works in the folders of users, as in a container
	switch who {
	case AnotherUser:
		return &Refused{path, fmt.Sprintf("the folder belongs to another user (uid %d), who can replace the file",
			id), "use a folder of your own"}
	case AllUsers:
		return &Refused{path, fmt.Sprintf("other users can replace files in the folder (mode %04o)", perm),
			"chmod o-w " + path}
	case AGroup:
		return &Refused{path, fmt.Sprintf("the group %d can replace files in the folder (mode %04o)", id, perm),
			"chmod g-w " + path}
	}
	return nil
}

// isTrusted reports whether a user may own the files that are read. The user may be the current user, or root, who can
// read all files anyway.
func isTrusted(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

//go:build unix

package privatefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// AsOwner returns advice to run a command as the owner of a file, or "" if that is the current user. The
// user of a machine's service exists only while a unit of systemd runs, so that command is one, too.
func AsOwner(path string) string {
	st, err := os.Stat(path)
	if err != nil {
		return ""
	}
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok || int(s.Uid) == os.Geteuid() {
		return ""
	}
	for _, folder := range []string{"/var/lib/tenon/", "/var/lib/private/tenon/"} {
		if strings.HasPrefix(filepath.Clean(path)+"/", folder) {
			return "it is of the service of this machine; run the command as the service: sudo systemd-run " +
				"--pipe --wait -p DynamicUser=yes -p User=tenon -p StateDirectory=tenon " +
				"-p EnvironmentFile=-/etc/tenon/environment -E HOME=/var/lib/tenon " +
				"-E XDG_STATE_HOME=/var/lib/tenon/state tenon …"
		}
	}
	as := fmt.Sprintf("sudo setpriv --reuid=%d --regid=%d --clear-groups", s.Uid, s.Gid)
	if u, err := user.LookupId(strconv.Itoa(int(s.Uid))); err == nil {
		as = "sudo -u " + u.Username
	}
	return fmt.Sprintf("run the command as that user, with the HOME and XDG_STATE_HOME that its tenon serve has: "+
		"%s env HOME=… XDG_STATE_HOME=… tenon …", as)
}

// SameOwner reports whether one user has both files.
func SameOwner(a, b fs.FileInfo) bool {
	first, ok := a.Sys().(*syscall.Stat_t)
	second, both := b.Sys().(*syscall.Stat_t)
	return ok && both && first.Uid == second.Uid
}

// HandOver gives a new file of root the owner of the folder in which it is, so that the service that uses the folder
// can use the file. For other users it does nothing. The file is open, so nobody can
// exchange it for another.
func HandOver(f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	st, err := os.Stat(filepath.Dir(f.Name()))
	if err != nil {
		return err
	}
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok || s.Uid == 0 {
		return nil
	}
	return f.Chown(int(s.Uid), int(s.Gid))
}

// MakeFolders is os.MkdirAll with mode 0700, and gives the folders that it makes to the owner of the folder in which
// they are; see [HandOver].
func MakeFolders(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err = MakeFolders(filepath.Dir(path)); err == nil {
			err = os.Mkdir(path, 0o700)
		}
	}
	if err != nil {
		if st, statErr := os.Stat(path); statErr == nil && st.IsDir() {
			return nil
		}
		return err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(HandOver(f), f.Close())
}

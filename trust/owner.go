package trust

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/privatefile"
)

// Check refuses files that other users can write: the files themselves, and the folders
// on the way to them. Paths are absolute; a link counts with both ends. A path that does
// not exist is checked by its folders. The error has code denied and names the command
// that helps.
func Check(paths ...string) error {
	seen := map[string]bool{}
	for _, p := range paths {
		real, err := filepath.EvalSymlinks(p)
		if err != nil {
			real = p
		}
		for _, way := range []string{p, real} {
			if why := onTheWay(filepath.Clean(way), seen); why != "" {
				return tenon.Errorf(tenon.CodeDenied,
					"%s is not used: %s; TENON_TRUST=all in the environment allows it, as in a container with a "+
						"mounted folder", p, why)
			}
		}
	}
	return nil
}

// onTheWay checks a path and its folders up to the root. seen contains the folders that were checked already.
func onTheWay(path string, seen map[string]bool) string {
	for {
		if !seen[path] {
			seen[path] = true
			if why := writable(path); why != "" {
				return why
			}
		}
		up := filepath.Dir(path)
		if up == path {
			return ""
		}
		path = up
	}
}

// writable says how users other than this one and root can write a file or a folder, and
// which command ends that; "" where they cannot, and where nothing is there.
func writable(path string) string {
	st, err := os.Lstat(path)
	if err != nil || st.Mode()&fs.ModeSymlink != 0 { // the folder of a link protects it
		return ""
	}
	kind := "the file"
	if st.IsDir() {
		kind = "the folder"
	}
	switch who, id := privatefile.Others(st, true); who {
	case privatefile.AnotherUser:
		return fmt.Sprintf("%s %s belongs to user %d; %s", kind, path, id, remedy("chown $(id -u)", path))
	case privatefile.AllUsers:
		return fmt.Sprintf("all users can write %s %s; %s", kind, path, remedy("chmod o-w", path))
	case privatefile.AGroup:
		return fmt.Sprintf("group %d can write %s %s; %s", id, kind, path, remedy("chmod g-w", path))
	}
	return ""
}

// remedy names a command that helps. A person may paste it, and the path may be a
// stranger's.
func remedy(command, path string) string {
	return fmt.Sprintf("run %s '%s'", command, strings.ReplaceAll(path, "'", `'\''`))
}

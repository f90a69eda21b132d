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

// Check returns an error if users other than the current one and root can write one of the files, or a folder on the
// way to it. Paths are absolute. Of a link, both the link and its target are checked. If a path does not exist, its
// folders are checked. The error has code denied and names a command that removes the cause.
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

// writable returns an error text if other users, except root, can write a file or a folder. The text names a command
// that removes the cause. writable returns "" if they cannot, or if nothing exists at the path.
func writable(path string) string {
	st, err := os.Lstat(path)
	if err != nil || st.Mode()&fs.ModeSymlink != 0 { // a link is protected by its folder
		return ""
	}
	kind := "the file"
	if st.IsDir() {
		kind = "the folder"
	}
	switch who, id := privatefile.Others(st, true); who {
	case privatefile.AnotherUser:
		return fmt.Sprintf("%s %s belongs to user %d; %s", kind, path, id, remedyOwner(path, st))
	case privatefile.AllUsers:
		return fmt.Sprintf("all users can write %s %s; %s", kind, path, remedy("chmod o-w", path))
	case privatefile.AGroup:
		return fmt.Sprintf("group %d can write %s %s; %s", id, kind, path, remedy("chmod g-w", path))
	}
	return ""
}

// remedyOwner returns the hint about a path of another user. Root can take everything, and what is in a folder of that
// user is the user's: then chown would only take it away from the service or person who works with it.
func remedyOwner(path string, st fs.FileInfo) string {
	above, err := os.Stat(filepath.Dir(path))
	if os.Geteuid() == 0 || err == nil && privatefile.SameOwner(st, above) {
		return privatefile.AsOwner(path)
	}
	return remedy("chown $(id -u)", path)
}

// remedy returns the hint to run a command on a path. A person may copy the command into a shell, so the path, which
// may come from someone else, is quoted.
func remedy(command, path string) string {
	return fmt.Sprintf("run %s '%s'", command, strings.ReplaceAll(path, "'", `'\''`))
}

package config

import (
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon"
)

// Link is a file whose path contains a link that leads out of the project, so that an edit would write outside.
type Link struct {
	File string // its name in errors
	Real string // absolute path of the file behind the link
	Own  bool   // Real is the user's own file or the administrator's
}

// LinkOf returns the link through which an edit would leave the project, or nil if it stays inside. A cloned folder
// may contain such a link, so the person has to approve the real path. LinkOf returns the errors of [PlanEdit].
func LinkOf(o Options, e Edits) (*Link, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	path, err := o.editable(e)
	if err != nil {
		return nil, err
	}
	return o.linkAt(path, e), nil
}

// linkAt is [LinkOf] for the path of the file.
func (o Options) linkAt(path string, e Edits) *Link {
	if e.User {
		return nil // a project cannot choose where the user's own file is
	}
	real, out := LeadsOut(o.Dir, path)
	own := false
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSymlink != 0 {
		for _, file := range []string{o.userFile(), o.Admin} {
			own = own || file != "" && filepath.Clean(path) != file && sameFile(path, file)
		}
	}
	if !out && !own {
		return nil
	}
	return &Link{File: o.label(path), Real: real, Own: own}
}

// refused returns the error for a link that nobody has approved.
func (l *Link) refused() error {
	if l.Own {
		return tenon.Errorf(tenon.CodeDenied, "%s is not changed: it is a link to your own file %s, which holds for "+
			"all projects; to change that file, add --scope user, or name it: -c %s", l.File, l.Real, l.Real)
	}
	return tenon.Errorf(tenon.CodeDenied, "%s is not changed: it is a link to %s, outside of this project; to "+
		"change that file, name it: -c %s", l.File, l.Real, l.Real)
}

// LeadsOut returns the real path of a file, and reports whether links lead it out of its project. The project is dir
// for a path below dir, or else the folder of the path. The file need not exist.
func LeadsOut(dir, path string) (real string, out bool) {
	base := filepath.Dir(path)
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		base = dir
	}
	real = withoutLinks(path)
	rel, err := filepath.Rel(withoutLinks(base), real)
	return real, err != nil || !filepath.IsLocal(rel)
}

// withoutLinks resolves the links of a path. If the path does not exist, it resolves the part that exists. A link
// without a target counts as a plain file, because writing replaces the link.
func withoutLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	up := filepath.Dir(path)
	if up == path {
		return path
	}
	if _, err := os.Stat(path); err != nil && !os.IsNotExist(err) {
		return path
	}
	return filepath.Join(withoutLinks(up), filepath.Base(path))
}

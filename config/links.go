package config

import (
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon"
)

// Link is a file that would be written through a link which leads out of its project.
type Link struct {
	File string // as errors name it
	Real string // absolute path of the file behind the link
	Own  bool   // Real is the user's own file or the administrator's
}

// LinkOf returns the link through which an edit would leave the project, nil if it stays inside. A cloned folder may
// contain such a link, so the person has to approve the real path. Its errors are the errors of [PlanEdit].
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
		return nil // no project decides where the user's own file is
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

// refused is the error for a link that nobody agreed to.
func (l *Link) refused() error {
	if l.Own {
		return tenon.Errorf(tenon.CodeDenied, "%s is not changed: it is a link to your own file %s, which holds for "+
			"all projects; to change that file, add --scope user, or name it: -c %s", l.File, l.Real, l.Real)
	}
	return tenon.Errorf(tenon.CodeDenied, "%s is not changed: it is a link to %s, outside of this project; to "+
		"change that file, name it: -c %s", l.File, l.Real, l.Real)
}

// LeadsOut returns the real path of a file, and whether links lead it out of its project: out of dir
// for a path below dir, else out of the folder of the path. The file need not exist.
func LeadsOut(dir, path string) (real string, out bool) {
	base := filepath.Dir(path)
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		base = dir
	}
	real = withoutLinks(path)
	rel, err := filepath.Rel(withoutLinks(base), real)
	return real, err != nil || !filepath.IsLocal(rel)
}

// withoutLinks resolves the links of a path. A path that does not exist is resolved as far as it does;
// a link to nothing is replaced by the writers, so it leads nowhere.
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

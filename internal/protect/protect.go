// Package protect finds texts that lead to tenon's own files: the configuration, the store
// and the state folder.
//
// An agent that writes tenon.yaml or the store next to it could change its own rules. The real protection is elsewhere:
// such a change has no effect until a person agrees to it. This package is an additional barrier. With it, config
// refuses servers whose command line, environment or folders name such files, and host denies tool calls whose
// arguments do.
//
//	New    the protected files and folders
//	Find   one text of a command line or of an environment
//	Value  one argument of a tool call
//	JSON   all texts and keys of a tool call's arguments
//
// A text is found if a program could turn it into the path of a protected file. So URLs are decoded, ~ and $HOME are
// expanded, and ., .. and symbolic links are resolved. A relative path is tried from each folder that the server may
// start in. Case is ignored, because some file systems ignore it. The file need not exist. A hard link to a protected
// file is found, too.
//
// A text with a line break, a text longer than a path can be, and a sentence that mentions a file are prose and are
// never found. The parent folders of protected files are not protected: a server may work in the project's folder.
package protect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// maxPath is the length of the longest path, in bytes (PATH_MAX of Linux).
const maxPath = 4096

// Config lists what is protected. All paths are absolute; a file or folder need not exist.
type Config struct {
	// Files are single files.
	Files []string
	// Families are files, together with all files that have the same name followed by a suffix after - or a dot, such
	// as tenon.db-wal of SQLite for tenon.db.
	Families []string
	// Folders are folders with everything below them.
	Folders []string
	// Names are names that are protected in every folder, with everything below them.
	Names []string
	// Except are folders within protected ones that calls may use, such as the data of workflows.
	Except []string
	// LookupEnv replaces os.LookupEnv. It is used for ~ and $HOME.
	LookupEnv func(string) (string, bool)
}

// Paths are the protected files and folders. The zero value and nil protect nothing. Paths is
// safe for concurrent use.
type Paths struct {
	files    map[string]string // lower case → as configured
	families []target
	folders  []target
	except   []target
	names    map[string]bool
	same     []os.FileInfo // of the files that exist
	lookup   func(string) (string, bool)
	bases    sync.Map // folder → the folder without links
}

// target is one spelling of a protected path: folded is its form for comparisons, and path is the path as configured.
type target struct{ folded, path string }

// New returns the paths of a Config. It resolves links once. The unresolved forms are protected, too.
func New(c Config) *Paths {
	p := &Paths{files: map[string]string{}, names: map[string]bool{}, lookup: c.LookupEnv}
	if p.lookup == nil {
		p.lookup = os.LookupEnv
	}
	forms := func(path string) []string {
		w := walker{}
		return []string{filepath.Clean(path), w.resolve(path)}
	}
	for _, f := range c.Files {
		for _, form := range forms(f) {
			p.files[fold(form)] = f
		}
		if st, err := os.Stat(f); err == nil && st.Mode().IsRegular() {
			p.same = append(p.same, st)
		}
	}
	for _, f := range c.Families {
		for _, form := range forms(f) {
			p.families = append(p.families, target{fold(form), f})
		}
	}
	for _, f := range c.Folders {
		for _, form := range forms(f) {
			p.folders = append(p.folders, target{fold(form), f})
		}
	}
	for _, f := range c.Except {
		for _, form := range forms(f) {
			p.except = append(p.except, target{fold(form), f})
		}
	}
	for _, n := range c.Names {
		p.names[fold(n)] = true
	}
	return p
}

// fold returns the same text for paths that differ only in case.
func fold(path string) string { return strings.ToLower(path) }

// below returns the folder that contains, or is, a path in lower case.
func below(folders []target, low string) (string, bool) {
	for _, f := range folders {
		if rest, ok := strings.CutPrefix(low, f.folded); ok && (rest == "" || rest[0] == filepath.Separator) {
			return f.path, true
		}
	}
	return "", false
}

// hit returns the protected path that contains, or is, an absolute and clean path. It returns "" if there is none.
// byName sets whether protected names are checked, too.
func (p *Paths) hit(path string, byName bool) string {
	low := fold(path)
	if f, ok := p.files[low]; ok {
		return f
	}
	if _, ok := below(p.except, low); ok {
		return ""
	}
	if f, ok := below(p.folders, low); ok {
		return f
	}
	for _, f := range p.families {
		if rest, ok := strings.CutPrefix(low, f.folded); ok &&
			(rest == "" || strings.ContainsRune("-."+string(filepath.Separator), rune(rest[0]))) {
			return f.path
		}
	}
	if len(p.names) == 0 || !byName {
		return ""
	}
	at := 0
	for part := range strings.SplitSeq(low, string(filepath.Separator)) {
		at += len(part)
		if p.names[part] {
			return path[:min(at, len(path))]
		}
		at++
	}
	return ""
}

// sameFile reports whether a file is a protected one.
func (p *Paths) sameFile(st os.FileInfo) bool {
	return slices.ContainsFunc(p.same, func(f os.FileInfo) bool { return os.SameFile(st, f) })
}

// base returns a folder with its links resolved. It resolves each folder only once, because a server keeps the
// working folder in which it was started.
func (p *Paths) base(folder string) string {
	if b, ok := p.bases.Load(folder); ok {
		return b.(string)
	}
	w := walker{}
	b := w.resolve(folder)
	p.bases.Store(folder, b)
	return b
}

// maxLinks bounds the links on the way to one file, like the limit of the kernel.
const maxLinks = 40

// walker resolves paths as the kernel does, and remembers the paths that it has seen.
type walker struct{ seen map[string]os.FileInfo }

// resolve returns an absolute path without links, . and .., in which a link before .. is followed first. Parts that
// do not exist are kept unchanged.
func (w *walker) resolve(path string) string {
	volume := filepath.VolumeName(path)
	return w.from(volume+string(filepath.Separator), path[len(volume):])
}

// from is resolve for a path relative to a folder without links.
func (w *walker) from(done, path string) string {
	const sep = string(filepath.Separator)
	todo, left := strings.Split(path, sep), maxLinks
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, part)
		if left == 0 || !w.isLink(next) {
			done = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil { // removed in the meantime
			done = next
			continue
		}
		left--
		if filepath.IsAbs(target) {
			volume := filepath.VolumeName(target)
			done, target = volume+sep, target[len(volume):]
		}
		todo = append(strings.Split(target, sep), todo...)
	}
	return done
}

// isLink reports whether a path is a symbolic link.
func (w *walker) isLink(path string) bool {
	st := w.stat(path)
	return st != nil && st.Mode()&os.ModeSymlink != 0
}

// stat returns the information of a path without following links, or nil if it does not exist.
func (w *walker) stat(path string) os.FileInfo {
	if st, ok := w.seen[path]; ok {
		return st
	}
	st, err := os.Lstat(path)
	if err != nil {
		st = nil
	}
	if w.seen == nil {
		w.seen = map[string]os.FileInfo{}
	}
	if len(w.seen) < maxSeen {
		w.seen[path] = st
	}
	return st
}

// maxSeen limits the paths that a walker remembers.
const maxSeen = 10_000

package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/policy"
)

// confined reports whether the store must be inside the project folder. This holds if only the project names the place.
// A person may name any place: with --home, with store.path in a file for -c, or in the user's configuration.
func (c Config) confined() bool {
	cfg := c.Config
	if c.Store != nil || c.Home != "" || cfg == nil || cfg.Path == "" || KeepsUserStore(c) {
		return false
	}
	return cfg.Store.Path == "" || cfg.Found && cfg.Layer("store.path") == config.LayerProject
}

// checkPlace refuses a store outside its project folder. A link may lead there: the store itself, a folder on its path,
// or a file next to it, where SQLite and servers write. A store that is not a regular file is always refused. Errors:
// config.
func (h *Host) checkPlace(path string) error {
	bad := func(format string, args ...any) error {
		return tenon.Errorf(tenon.CodeConfig, "store %s: "+format+"; remove it, or name another place with "+
			"--home or -c", append([]any{path}, args...)...)
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return bad("it is not a regular file (%s)", st.Mode().Type())
	}
	if !h.cfg.confined() {
		return nil
	}
	inside, err := policy.Within(path, h.config.Dir)
	switch {
	case err != nil:
		return bad("its place cannot be compared with the project folder: %w", err)
	case !inside:
		return bad("a link leads out of the project folder %s", h.config.Dir)
	}
	for _, dir := range []string{filepath.Dir(path), h.cfg.serversPath()} {
		if st, err := os.Lstat(dir); err == nil && !st.IsDir() {
			return bad("%s is not a folder (%s)", dir, st.Mode().Type())
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // the folder does not exist yet, or its user reports the error
		}
		for _, e := range entries {
			if isStoreFile(path, dir, e.Name()) && e.Type()&^(fs.ModeDir|fs.ModeSocket) != 0 {
				return bad("%s next to it is not a regular file (%s)", e.Name(), e.Type())
			}
		}
	}
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		if n := linksBeside(path + end); n > 1 {
			return bad("%s has %d names (hard links)", filepath.Base(path)+end, n)
		}
	}
	return nil
}

// isStoreFile reports whether a file in the folder of a store, or in its folder of servers, belongs to tenon. A store
// with another name than the default may share its folder with other files.
func isStoreFile(path, dir, name string) bool {
	base := filepath.Base(path)
	return base == storeFile || dir != filepath.Dir(path) || strings.HasPrefix(name, base)
}

// The bounds of linksBeside.
const (
	linkTries = 5
	linkPause = 10 * time.Millisecond
)

// linksBeside returns the number of hard links of a file. It excludes the names given by a process that is creating the
// store, or died while creating it.
func linksBeside(path string) int {
	n := 1
	for range linkTries {
		st, err := os.Lstat(path)
		if err != nil {
			return 1
		}
		if n = linksOf(st); n <= 1 {
			return n
		}
		made, err := filepath.Glob(escapeGlob(path) + ".*.new")
		if err != nil {
			return n
		}
		for _, m := range made {
			if other, err := os.Lstat(m); err == nil && os.SameFile(st, other) {
				n--
			}
		}
		if n <= 1 {
			return n
		}
		time.Sleep(linkPause) // wait until the other process has removed its name
	}
	return n
}

// escapeGlob returns a pattern that matches only a path.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

package host

import (
	"context"
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
)

// openStore opens the store's file, unless the caller brought a store.
func (h *Host) openStore(ctx context.Context) (store.Store, error) {
	if h.cfg.Store != nil {
		return h.cfg.Store, nil
	}
	if h.cfg.spare != "" {
		h.log.Warn("runs are kept in a temporary folder: the user's state folder cannot be used", "folder", h.cfg.spare)
	}
	path, _ := h.cfg.storePath()
	s, err := sqlite.Open(ctx, sqlite.Config{Path: path, Logger: h.log, Brief: h.cfg.Brief, Reading: h.cfg.Reading})
	if err != nil {
		return nil, err // not s: a nil *sqlite.Store is no nil store.Store
	}
	return s, nil
}

// Stored reports whether there is a store where a host of this config would have its.
func Stored(c Config) bool {
	if c.Store != nil {
		return true
	}
	if _, err := os.Lstat(filepath.Join(os.TempDir(), spareName(), storeFile)); err == nil && c.place() != nil {
		return false
	}
	path, _ := c.storePath()
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// storePath is where the store lies. Users says that this is in the user's state folder,
// if there is one, or in what stands in for it.
func (c Config) storePath() (path string, users bool) {
	cfg := c.Config
	if cfg == nil {
		cfg = &config.Config{}
	}
	switch {
	case c.Home != "":
		return filepath.Join(c.Home, storeFile), false
	case cfg.Store.Path != "":
		return cfg.Store.Path, false
	case cfg.Path != "":
		return filepath.Join(cfg.Dir, ".tenon", storeFile), false
	}
	if c.spare != "" {
		return filepath.Join(c.spare, storeFile), true
	}
	lookup := c.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	dir, _ := lookup("XDG_STATE_HOME")
	if home, ok := lookup("HOME"); dir == "" && ok && home != "" {
		dir = filepath.Join(home, ".local", "state")
	}
	if dir == "" {
		return "", true
	}
	return filepath.Join(dir, "tenon", storeFile), true
}

// shared is the path of the store where it has one that others know, for what lies beside it;
// else "": in memory, or a store of the program's own.
func (c Config) shared() string {
	if c.Store != nil {
		return ""
	}
	path, _ := c.storePath()
	return path
}

// serversPath is the folder, beside the store, of what is kept of servers: what
// they offered the last time, and what they said. "": there is none.
func (c Config) serversPath() string {
	path := c.shared()
	switch {
	case path == "":
		return ""
	case filepath.Base(path) == storeFile:
		return filepath.Join(filepath.Dir(path), "servers")
	}
	return path + ".servers" // the folder is not ours
}

// Socket is the path of the socket on which the process that serves a store
// listens, beside the store; "" where the store has no place that others could
// know.
func Socket(c Config) string {
	path := c.shared()
	if path == "" {
		return ""
	}
	name := "serve.sock"
	if base := filepath.Base(path); base != storeFile {
		name = base + "." + name // a folder may hold several stores
	}
	return filepath.Join(filepath.Dir(path), name)
}

// storeFile is the name of the store within its folder.
const storeFile = "tenon.db"

// Socket is the path of the socket of the process that serves the host's store;
// see [Socket].
func (h *Host) Socket() string { return Socket(h.cfg) }

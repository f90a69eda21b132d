package host

import (
	"context"
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
)

// openStore opens the store's file, unless the program provides a store.
func (h *Host) openStore(ctx context.Context) (store.Store, error) {
	if h.cfg.Store != nil {
		return guarded(h.cfg.Store, h.log), nil
	}
	if h.cfg.fallbackDir != "" {
		h.log.Warn("runs are kept in a temporary folder: the user's state folder cannot be used", "folder",
			h.cfg.fallbackDir)
	}
	key, err := h.storeKey(ctx)
	if err != nil {
		return nil, err
	}
	h.serverPool.key.Store(key)
	path, _ := h.cfg.storePath()
	if h.cfg.Untrusted {
		dir, err := os.MkdirTemp("", "tenon-look-")
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeStore, "there is no place for a temporary store: %w", err)
		}
		h.scratch, path = dir, filepath.Join(dir, storeFile)
	} else if err := h.checkPlace(path); err != nil {
		return nil, err
	} else if h.cfg.isPostgres() {
		return h.openPostgres(ctx, path, key)
	}
	s, err := sqlite.Open(ctx, sqlite.Config{Path: path, Logger: h.log, Key: key, Ledger: h.ledger(),
		ShortLived: h.cfg.ShortLived,
		ReadOnly:   h.cfg.ReadOnly && !h.cfg.Untrusted})
	if err != nil {
		h.dropScratch()
		return nil, err // not s: a nil *sqlite.Store is not a nil store.Store
	}
	return s, nil
}

// Stored reports whether the store of a host with this config exists.
func Stored(c Config) bool {
	if c.Store != nil || c.isPostgres() {
		return true
	}
	if _, err := os.Lstat(filepath.Join(os.TempDir(), fallbackName(), storeFile)); err == nil && c.place() != nil {
		return false
	}
	path, _ := c.storePath()
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// dropScratch removes the temporary store of an untrusted host.
func (h *Host) dropScratch() {
	if h.scratch != "" {
		_ = os.RemoveAll(h.scratch) // a temporary folder
	}
}

// errUntrusted is the error of all operations that a host refuses before the user trusts its configuration.
func errUntrusted() error {
	return tenon.Errorf(tenon.CodeWaiting, "nothing is started: this project is not trusted yet; tenon trust shows "+
		"what it would do and asks")
}

// StorePath returns the path of the store that a host with this config would open, or "" for a store in memory or a
// store of the program.
func StorePath(c Config) string { return c.shared() }

// storePath returns the path of the store. Users says that it is in the user's state folder, or in the folder that
// replaces it.
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
	case cfg.Path != "" && !KeepsUserStore(c):
		return filepath.Join(cfg.Dir, ".tenon", storeFile), false
	}
	if c.fallbackDir != "" {
		return filepath.Join(c.fallbackDir, storeFile), true
	}
	dir := c.stateDir()
	if dir == "" {
		return "", true
	}
	return filepath.Join(dir, storeFile), true
}

// shared returns the path of the store if other processes can find it, for files next to it. It returns "" for a store
// in memory or a store of the program.
func (c Config) shared() string {
	if c.Store != nil || c.Untrusted {
		return ""
	}
	path, _ := c.storePath()
	return path
}

// serversPath returns the folder, next to the store, of the files about servers: their last tool lists and their
// output. It returns "" if there is no such folder.
func (c Config) serversPath() string {
	path := c.shared()
	switch {
	case path == "":
		return ""
	case filepath.Base(path) == storeFile:
		return filepath.Join(filepath.Dir(path), "servers")
	}
	return path + ".servers" // the folder may contain other files
}

// Socket returns the path, next to the store, of the socket of the process that serves the store. It returns "" if
// other processes cannot find the store.
func Socket(c Config) string {
	path := c.shared()
	if path == "" {
		return ""
	}
	name := "serve.sock"
	if base := filepath.Base(path); base != storeFile {
		name = base + "." + name // a folder may contain several stores
	}
	return filepath.Join(filepath.Dir(path), name)
}

// socketPath returns [Socket] of the host, whose place never changes.
func (h *Host) socketPath() string {
	h.socket.Do(func() { h.socketAt = Socket(h.cfg) })
	return h.socketAt
}

// storeFile is the default name of the store in its folder.
const storeFile = "tenon.db"

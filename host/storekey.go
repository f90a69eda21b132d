package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/privatefile"
	"github.com/tenonhq/tenon/store/signed"
	"github.com/tenonhq/tenon/store/sqlite"
)

const (
	// keyFile is the file of the store's key in the user's state folder.
	keyFile = "store.key"
	// ledgerFile is a database next to the key. It records operations that must not happen twice, even if the store is
	// replaced by an older copy.
	ledgerFile = "ledger.db"
	// keyVariable is the variable with the key of stores, for systems without such a file, such as containers.
	keyVariable = "TENON_STORE_KEY"
)

// storeKey returns the key that signs the rows of the store. It uses the first one that exists of: TENON_STORE_KEY,
// store.key in the user's or the administrator's configuration, and the file in the user's state folder, which is
// created at first use. The key never comes from the folder of the store or of the project. Errors: config (it is too
// short), store (the file is readable by others, or damaged), and errors of reading a secret.
func (h *Host) storeKey(ctx context.Context) (*signed.Key, error) {
	if h.cfg.Untrusted { // the key that the configuration names is ignored
		return signed.RandomKey(), nil
	}
	if text, ok := h.cfg.LookupEnv(keyVariable); ok && text != "" {
		h.redactor.Add(tenon.NewSecret(text))
		return namedKey(keyVariable, text)
	}
	secret, err := h.config.StoreKey(ctx)
	if err != nil {
		return nil, err
	}
	if !secret.IsZero() {
		h.redactor.Add(secret)
		return namedKey("store.key", secret.Reveal())
	}
	path := h.cfg.keyPath()
	if path == "" {
		h.log.Warn("there is no folder for the key of the store, so other processes ignore what this process stores; " +
			"set HOME, or " + keyVariable)
		return signed.RandomKey(), nil
	}
	key, err := signed.ReadKeyFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := signed.CreateKeyFile(path); err != nil {
			h.log.Warn("the key of the store cannot be saved, so other processes ignore what this process stores; "+
				"set "+keyVariable+", or make the folder writable", "path", path, "error", err)
			return signed.RandomKey(), nil
		}
		key, err = signed.ReadKeyFile(path)
	}
	return key, err
}

func namedKey(name, text string) (*signed.Key, error) {
	k, err := signed.NewKey([]byte(text))
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "%s: %w; 'openssl rand -hex 32' makes one", name, err)
	}
	return k, nil
}

// keyPath returns the path of the key of the user's stores, or "" without a state folder.
func (c Config) keyPath() string {
	dir := c.stateDir()
	if dir == "" || privatefile.MakeFolders(dir) != nil {
		fallbackDir, err := makeFallbackDir(os.TempDir())
		if err != nil {
			return ""
		}
		dir = fallbackDir
	}
	return filepath.Join(dir, keyFile)
}

// ledger returns the record, in the user's state folder, of events that must not happen twice. It is nil without a
// state folder; then an old row that is copied back into the store has effect again.
func (h *Host) ledger() *sqlite.Ledger {
	path := h.cfg.keyPath()
	if path == "" || h.cfg.Untrusted {
		return nil
	}
	return sqlite.NewLedger(filepath.Join(filepath.Dir(path), ledgerFile), h.log)
}

// stateDir returns the user's state folder, or "" if there is none. [Config.Home] does not replace it, because the
// store in that folder may come from somebody else.
func (c Config) stateDir() string {
	lookup := c.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	if dir, _ := lookup("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tenon")
	}
	if home, _ := lookup("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "tenon")
	}
	return ""
}

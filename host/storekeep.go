package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store/sqlite"
)

// StoreProgress receives the name of a step, and how much of it is done; of may be 0.
type StoreProgress = sqlite.Progress

// Results of the methods of [StoreKeeper].
type (
	StoreReport  = sqlite.Report
	StoreProblem = sqlite.Problem
	StoreBackup  = sqlite.BackupInfo
	StoreCompact = sqlite.Compacted
	StoreRepair  = sqlite.Repaired
	StoreUpgrade = sqlite.UpgradePlan
)

// The keys in a backup. Rows that another key signed are foreign, and encrypted values need the key of the sign-ins.
const (
	backupStoreKey = "keys/store.key"
	backupVaultKey = "keys/auth.key"
	vaultKeyFile   = "key"
)

// StoreKeeper looks after the file of a store, without opening a host on it. Other processes may work on the store
// meanwhile, except during Repair.
type StoreKeeper struct {
	cfg  Config
	path string
}

// KeepStore returns the keeper of the store that a host with this config would open. Errors: waiting (the project is
// not trusted), config (the place of the store), invalid (the program has another store).
func KeepStore(c Config) (*StoreKeeper, error) {
	switch {
	case c.Untrusted:
		return nil, errUntrusted()
	case c.Store != nil:
		return nil, tenon.Errorf(tenon.CodeInvalid, "the store of this program is no file")
	}
	if c.isPostgres() {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the store is in PostgreSQL, and this command works on the file "+
			"of a store: use pg_dump and pg_restore for backups, and the server's own checks")
	}
	if err := c.place(); err != nil {
		return nil, err
	}
	path, _ := c.storePath()
	h := &Host{cfg: c, config: c.Config}
	if err := h.checkPlace(path); err != nil {
		return nil, err
	}
	return &StoreKeeper{c, path}, nil
}

// Path returns the path of the store.
func (k *StoreKeeper) Path() string { return k.path }

// Check looks for damage in the store and, unless quick, in the user's ledger. See [sqlite.Check].
func (k *StoreKeeper) Check(ctx context.Context, quick bool, progress StoreProgress) (*StoreReport, error) {
	c := sqlite.CheckConfig{Path: k.path, Quick: quick, Ledger: k.ledger()}
	if progress != nil {
		c.Progress = func(step string, n, of int) { progress(step, int64(n), int64(of)) }
	}
	return sqlite.Check(ctx, c)
}

// ledger returns the path of the user's ledger, or "" without a state folder. The file need not exist.
func (k *StoreKeeper) ledger() string {
	dir := k.cfg.stateDir()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, ledgerFile)
}

// PlanUpgrade says what this program would change in the store before it uses it, and changes nothing. See
// [sqlite.PlanUpgrade].
func (k *StoreKeeper) PlanUpgrade(ctx context.Context) (*StoreUpgrade, error) {
	return sqlite.PlanUpgrade(ctx, k.path)
}

// PlanLedger reports whether this program would migrate the user's ledger, which older programs can use after that,
// too. See [sqlite.PlanLedger].
func (k *StoreKeeper) PlanLedger(ctx context.Context) (migrates bool, err error) {
	path := k.ledger()
	if path == "" {
		return false, nil
	}
	return sqlite.PlanLedger(ctx, path)
}

// RepairLedger corrects the damaged rows of the user's ledger in its file, and returns what it did. See
// [sqlite.RepairLedger].
func (k *StoreKeeper) RepairLedger(ctx context.Context) (done []string, err error) {
	return sqlite.RepairLedger(ctx, k.ledger())
}

// keyFiles returns the files of the keys that belong to the store: name in a backup → path.
func (k *StoreKeeper) keyFiles() map[string]string {
	files := map[string]string{}
	if path := k.cfg.keyPath(); path != "" {
		files[backupStoreKey] = path
	}
	if dir := k.cfg.vaultDir(); dir != "" {
		files[backupVaultKey] = filepath.Join(dir, vaultKeyFile)
	}
	return files
}

// Backup copies the store, and with keys the files of its keys, into a new folder. Keys in the system's keyring, in
// variables or in the configuration are not copied. See [sqlite.Backup].
func (k *StoreKeeper) Backup(ctx context.Context, folder string, keys bool, progress StoreProgress) (*StoreBackup,
	error) {
	files := map[string]string{}
	if keys {
		for name, path := range k.keyFiles() {
			if _, err := os.Stat(path); err == nil {
				files[name] = path
			}
		}
	}
	return sqlite.Backup(ctx, k.path, folder, files, progress)
}

// Restore puts the store of a backup in the place of this store, where no store may be. It puts keys in the places
// where none are. Kept names the keys of the backup that differ from existing ones, which stay. See [sqlite.Restore].
func (k *StoreKeeper) Restore(ctx context.Context, folder string, progress StoreProgress) (info *StoreBackup,
	kept []string, err error) {
	if info, err = sqlite.Restore(ctx, folder, k.path, progress); err != nil {
		return nil, nil, err
	}
	for name, path := range k.keyFiles() {
		if info.Files[name] == "" {
			continue
		}
		same, err := restoreKey(filepath.Join(folder, name), path)
		if err != nil {
			return info, nil, tenon.Errorf(tenon.CodeStore, "the store is restored, but not its key %s: %w", path, err)
		}
		if !same {
			kept = append(kept, path)
		}
	}
	sort.Strings(kept)
	return info, kept, nil
}

// restoreKey puts a key in its place. It keeps another key that is there, and then returns false.
func restoreKey(from, to string) (same bool, err error) {
	text, err := os.ReadFile(from)
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return false, err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		old, err := os.ReadFile(to)
		return string(old) == string(text), err
	}
	if err != nil {
		return false, err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return true, errors.Join(err, f.Close())
}

// Repair recovers the store into a new file. See [sqlite.Repair].
func (k *StoreKeeper) Repair(ctx context.Context, out string, progress StoreProgress) (*StoreRepair, error) {
	return sqlite.Repair(ctx, k.path, out, progress)
}

// Compact gives unused space back. See [sqlite.Compact].
func (k *StoreKeeper) Compact(ctx context.Context, progress StoreProgress) (*StoreCompact, error) {
	return sqlite.Compact(ctx, k.path, progress)
}

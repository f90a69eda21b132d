package host

import (
	"context"
	"path/filepath"

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

// Repair recovers the store into a new file. See [sqlite.Repair].
func (k *StoreKeeper) Repair(ctx context.Context, out string, progress StoreProgress) (*StoreRepair, error) {
	return sqlite.Repair(ctx, k.path, out, progress)
}

// Compact gives unused space back. See [sqlite.Compact].
func (k *StoreKeeper) Compact(ctx context.Context, progress StoreProgress) (*StoreCompact, error) {
	return sqlite.Compact(ctx, k.path, progress)
}

package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/filelock"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/postgres"
	"github.com/tenonhq/tenon/store/signed"
)

// isPostgres reports whether a host with this config keeps its runs in PostgreSQL. An untrusted host keeps them in a
// temporary file.
func (c *Config) isPostgres() bool {
	return c.Store == nil && !c.Untrusted && c.Config != nil && c.Config.HasPostgres()
}

// openPostgres opens the store in the database of the configuration. The file path is not used; its folder holds the
// socket and the files of servers. Nothing outside of the database records what must not happen twice, unlike the
// ledger of a store in a file, because no file is shared by all replicas. Errors: config (the DSN), store (the
// database, with a remedy), and errors of reading a secret.
func (h *Host) openPostgres(ctx context.Context, path string, key *signed.Key) (store.Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "the folder of the socket and of the servers' files cannot be made: "+
			"%w; name another one with --home", err)
	}
	conf, err := h.postgresConfig(ctx, key)
	if err != nil {
		return nil, err
	}
	s, err := postgres.Open(ctx, conf)
	if err != nil {
		return nil, h.postgresError(err) // not s: a nil *postgres.Store is not a nil store.Store
	}
	return s, nil
}

// postgresConfig reads the DSNs of the configuration. Errors: config (the DSN is empty), and errors of reading a
// secret.
func (h *Host) postgresConfig(ctx context.Context, key *signed.Key) (postgres.Config, error) {
	dsn, direct, err := h.config.PostgresDSN(ctx)
	if err != nil {
		return postgres.Config{}, err
	}
	h.redactor.Add(dsn)
	if !direct.IsZero() {
		h.redactor.Add(direct)
	}
	if dsn.Reveal() == "" {
		return postgres.Config{}, tenon.Errorf(tenon.CodeConfig, "store.postgres.dsn (%s) is empty; set it to a "+
			"connection such as postgres://user:password@host:5432/db", h.config.Origin("store.postgres.dsn"))
	}
	c := h.config.Store.Postgres
	return postgres.Config{DSN: dsn.Reveal(), Direct: direct.Reveal(), Schema: c.Schema, Lease: c.Lease,
		Conns: c.Connections, Logger: h.log, Key: key}, nil
}

// postgresError makes an invalid DSN an error of the configuration.
func (h *Host) postgresError(err error) error {
	if tenon.ErrorCode(err) != tenon.CodeInvalid {
		return err
	}
	return &tenon.Error{Code: tenon.CodeConfig, Message: "store.postgres (" +
		h.config.Origin("store.postgres.dsn") + "): " + err.Error(), Err: err}
}

// lockTime is how long the lock of a folder is tried.
const lockTime = 200 * time.Millisecond

// claimReplica claims the work of the one process that serves a folder of this machine, by a lock of a file, which the
// system frees when the process dies. Processes in other folders and on other machines serve the same database. One of
// them holds [ServeClaim], so that short commands find that the store is served.
func (h storageHandle) claimReplica() (release func(), ok bool, err error) {
	path, _ := h.host.cfg.storePath()
	path = filepath.Join(filepath.Dir(path), "serve.lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	var unlock func()
	if err == nil {
		limited, done := context.WithTimeout(context.Background(), lockTime)
		defer done()
		unlock, err = filelock.File(limited, f)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, false, nil
	case err != nil:
		return nil, false, tenon.Errorf(tenon.CodeStore,
			"the folder of the socket cannot be locked: %w; name one on a local disk with --home", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { h.holdServe(ctx) })
	return func() {
		stop()
		work.Wait()
		unlock()
	}, true, nil
}

// holdServe holds [ServeClaim] until ctx ends. While another replica has it, it waits for the end of that claim.
func (h storageHandle) holdServe(ctx context.Context) {
	for {
		release, ok, err := h.host.store.Acquire(claims + ServeClaim)
		switch {
		case ok:
			<-ctx.Done()
			release()
			return
		case err != nil && ctx.Err() == nil:
			h.host.log.Debug("the claim to serve the store is not taken; it is tried again", "error", err)
		}
		select {
		case <-time.After(superviseEvery):
		case <-ctx.Done():
			return
		}
	}
}

// StoreFinding is a property of the database of a store; see [ExamineStore].
type StoreFinding = store.Finding

// ExamineStore returns what an operator should know about the database of an open host: version, TLS, rights, clock,
// key. A store in a file has no findings.
func ExamineStore(ctx context.Context, h *Host) []StoreFinding {
	if e, ok := h.store.Store.(store.Examiner); ok {
		return e.Examine(ctx)
	}
	return nil
}

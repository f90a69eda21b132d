package host

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/copying"
	"github.com/tenonhq/tenon/store/postgres"
	"github.com/tenonhq/tenon/store/signed"
	"github.com/tenonhq/tenon/store/sqlite"
)

// The names of stores in a [StoreCopy].
const (
	CopySQLite   = "sqlite"   // the file that a configuration without store.postgres uses
	CopyPostgres = "postgres" // the database of store.postgres
)

// StoreCopy names the stores of a copy: [CopySQLite], [CopyPostgres], or the path of a file.
type StoreCopy struct {
	From, To string
	Undo     bool // undo the move of From to To, if it is not complete
	Progress StoreProgress
}

// StoreCopied is the result of a copy.
type StoreCopied = copying.Report

// movable is a store that takes part in a copy.
type movable interface {
	store.Store
	store.Movable
}

// copied is one side of a copy that is open.
type copied struct {
	side    copying.Side
	store   movable
	release []func()
}

// CopyStore copies a store into an empty one of another kind or place, or resumes an interrupted copy. The source is
// marked first: from then on nothing is written to it. It opens no host, and sets the store of no configuration. See
// package store/copying. Errors: waiting (the project is not trusted), invalid (the names), config (the place of the
// store, the DSN), not_found (no source), conflict (a process works on one of the stores, the target is not empty),
// store.
func CopyStore(ctx context.Context, c Config, m StoreCopy) (r StoreCopied, err error) {
	if c.Untrusted {
		return r, errUntrusted()
	}
	if err := checkCopy(&m); err != nil {
		return r, err
	}
	if err := c.place(); err != nil {
		return r, err
	}
	h := &Host{cfg: c, config: c.Config, log: cmp.Or(c.Logger, slog.New(slog.DiscardHandler)),
		serverPool: new(serverPool)}
	h.redactor = &h.serverPool.redactor
	h.log = slog.New(h.redactor.Handler(h.log.Handler()))
	if h.config == nil {
		h.config = &config.Config{}
	}
	if h.cfg.LookupEnv == nil {
		h.cfg.LookupEnv = os.LookupEnv
	}
	key, err := h.storeKey(ctx)
	if err != nil {
		return r, err
	}
	from, err := h.openCopied(ctx, m.From, key, false)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	to, err := h.openCopied(ctx, m.To, key, !m.Undo)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, to.close()) }()
	if from.side.Name == to.side.Name {
		return r, tenon.Errorf(tenon.CodeInvalid, "the two are the same store: %s", from.side.Name)
	}
	if err := from.claim(ctx); err != nil {
		return r, err
	}
	if err := to.claim(ctx); err != nil {
		return r, err
	}
	conf := copying.Config{From: from.side, To: to.side, Progress: m.Progress}
	if m.Undo {
		return copying.Report{From: from.side.Name, To: to.side.Name}, copying.Undo(ctx, conf)
	}
	return copying.Copy(ctx, conf)
}

// checkCopy checks the names of the stores.
func checkCopy(m *StoreCopy) error {
	for _, side := range [][2]string{{"--from", m.From}, {"--to", m.To}} {
		flag, name := side[0], side[1]
		switch {
		case name == "":
			return tenon.Errorf(tenon.CodeInvalid, "%s is missing: sqlite, postgres, or the path of a store's file",
				flag)
		case strings.Contains(name, "://"), strings.Contains(name, "host="), strings.Contains(name, "dbname="):
			return tenon.Errorf(tenon.CodeInvalid, "%s is a connection, and others can read a command line; put it "+
				"into store.postgres.dsn of tenon.yaml, and write %s postgres", flag, flag)
		}
	}
	return nil
}

// openCopied opens one side of a copy. A new file is only made if create is set.
func (h *Host) openCopied(ctx context.Context, name string, key *signed.Key, create bool) (*copied, error) {
	if name == CopyPostgres {
		if !h.config.HasPostgres() {
			return nil, tenon.Errorf(tenon.CodeConfig, "store.postgres is not configured; add store: {postgres: {dsn: "+
				"{env: TENON_POSTGRES_DSN}}} to tenon.yaml")
		}
		conf, err := h.postgresConfig(ctx, key)
		if err != nil {
			return nil, err
		}
		conf.Moving = true
		s, err := postgres.Open(ctx, conf)
		if err != nil {
			return nil, h.postgresError(err)
		}
		return &copied{side: copying.Side{Name: s.Place(), Store: s}, store: s}, nil
	}
	path := name
	if name == CopySQLite {
		path, _ = h.cfg.storePath()
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "store %s: %w", tenon.Visible(name), err)
	}
	if err := h.checkPlace(path); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !create {
		return nil, tenon.Errorf(tenon.CodeNotFound, "store %s: there is no such file", path)
	}
	s, err := sqlite.Open(ctx, sqlite.Config{Path: path, Logger: h.log, Key: key, Moving: true})
	if err != nil {
		return nil, err
	}
	return &copied{side: copying.Side{Name: path, Store: s}, store: s}, nil
}

// claim takes the claims of the process that serves the store and of the one that copies it, and checks that no process
// works on a run.
func (c *copied) claim(ctx context.Context) error {
	for _, what := range []string{ServeClaim, "copy"} {
		release, ok, err := c.store.Acquire(claims + what)
		if err != nil {
			return err
		}
		if !ok && what == ServeClaim {
			return tenon.Errorf(tenon.CodeConflict, "store %s: a tenon serve works on it; stop it first, and all its "+
				"replicas", c.side.Name)
		}
		if !ok {
			return tenon.Errorf(tenon.CodeConflict, "store %s: another process copies it; wait for its end",
				c.side.Name)
		}
		c.release = append(c.release, release)
	}
	for before := ""; ; {
		runs, err := c.store.Runs(ctx, store.RunFilter{State: tenon.RunWorking, Before: before, Limit: 500})
		if err != nil || len(runs) == 0 {
			return err
		}
		for _, r := range runs {
			held, err := c.store.Held(r.ID)
			if err != nil {
				return err
			}
			if held {
				return tenon.Errorf(tenon.CodeConflict, "store %s: a process works on run %s; wait for its end, or "+
					"end the process", c.side.Name, r.ID)
			}
		}
		before = runs[len(runs)-1].ID
	}
}

func (c *copied) close() error {
	for _, release := range c.release {
		release()
	}
	return c.store.Close()
}

var (
	_ movable = (*sqlite.Store)(nil)
	_ movable = (*postgres.Store)(nil)
)

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon"
)

// migrationTexts describes the migrations for people.
var migrationTexts = []string{
	"the first schema",
	"runs and sessions belong to principals; permanent approvals and budgets are stored",
	"runs and sessions from files are marked",
	"kept results, rates and pins are stored",
	"journals are divided into chapters",
	"rows are signed: runs of before are foreign until tenon store adopt; their approvals never apply again",
	"uses of approvals, reservations and owners are signed",
	"continued sessions are found through an index",
	"rows get checksums",
	"runs get summaries for statistics, computed in the background",
	"approvals of sessions can be withdrawn; tools that a session allowed before ask once more",
}

// UpgradePlan describes the migrations that a store needs before this program can use it. It has no steps if the
// schema is current.
type UpgradePlan struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	Schema int    `json:"schema"` // schema version of the store; 0 if there is no store
	Known  int    `json:"known"`  // of this program
	Steps  []Step `json:"steps"`  // the migrations to come, in their order
	// Copy is the file to which the store is copied before its migration.
	Copy string `json:"copy,omitempty"`
	// Copies are the copies that earlier migrations made. An older program can use them.
	Copies   []string `json:"copies"`
	Bytes    int64    `json:"bytes"`              // size of the store with its log
	Free     int64    `json:"free"`               // of the disk; -1: unknown
	Problems []string `json:"problems,omitempty"` // why the migration would fail, with what to do
}

// Step is one migration.
type Step struct {
	Schema int    `json:"schema"` // the version after the step
	Text   string `json:"text"`
}

// PlanUpgrade returns the changes that Open would make to a store, without making them. Other processes may use the
// store meanwhile. Problems contains the reasons why the migration would fail. Errors: store (the file cannot be
// read, or is not a store).
func PlanUpgrade(ctx context.Context, path string) (*UpgradePlan, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "store %s: %w", path, err)
	}
	path = abs
	p := &UpgradePlan{Path: path, Known: len(migrations), Steps: []Step{}, Copies: []string{}, Free: -1}
	if _, err := existing(path); tenon.ErrorCode(err) == tenon.CodeNotFound {
		return p, nil
	} else if err != nil {
		return nil, err
	}
	p.Exists, p.Free = true, freeSpace(filepath.Dir(path))
	for _, end := range []string{"", "-wal"} {
		if info, err := os.Stat(path + end); err == nil {
			p.Bytes += info.Size()
		}
	}
	if p.Schema, err = schemaOfFile(ctx, path); err != nil {
		return nil, err
	}
	for v := 1; v < len(migrations); v++ {
		switch _, err := os.Stat(backupPath(path, v)); {
		case err == nil:
			p.Copies = append(p.Copies, backupPath(path, v))
		case !errors.Is(err, fs.ErrNotExist):
			return nil, tenon.Errorf(tenon.CodeStore, "store %s: %w", path, err)
		}
	}
	if p.Schema > p.Known {
		p.Problems = append(p.Problems, newerError(path, p.Schema, p.Known).Error())
		return p, nil
	}
	for v := p.Schema; v < len(migrations); v++ {
		p.Steps = append(p.Steps, Step{v + 1, migrationTexts[v]})
	}
	if len(p.Steps) == 0 {
		return p, nil
	}
	p.Copy = backupPath(path, p.Schema)
	p.obstacles()
	return p, nil
}

// obstacles finds reasons why a migration would fail.
func (p *UpgradePlan) obstacles() {
	busy, err := inUse(p.Path)
	if err != nil || busy {
		p.Problems = append(p.Problems, busyError(p.Path, err).Error())
	}
	for _, path := range []string{p.Path, filepath.Dir(p.Path)} {
		if err := writable(path); err != nil {
			p.Problems = append(p.Problems, fmt.Sprintf("%s cannot be written: %v", path, err))
		}
	}
	// The copy is as large as the store, and the log of the migration may be, too.
	if need := 2 * p.Bytes; p.Free >= 0 && p.Free < need {
		p.Problems = append(p.Problems, fmt.Sprintf("%s has %d bytes left, and the migration needs up to %d: a copy "+
			"of the store and its own log; free some space", filepath.Dir(p.Path), p.Free, need))
	}
}

// schemaOfFile reads the version of a store's schema. Without a log, SQLite makes no file next to the store.
func schemaOfFile(ctx context.Context, path string) (version int, err error) {
	q := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "query_only(1)"}}
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		q.Set("immutable", "1")
	}
	db, err := connectWith(path, 1, q)
	if err != nil {
		return 0, storeError(path, "open", err)
	}
	defer func() { _ = db.Close() }() // it was only read
	conn, err := db.Conn(ctx)
	if err != nil {
		return 0, storeError(path, "open", err)
	}
	defer func() { _ = conn.Close() }() // it was only read
	version, app, _, err := identify(ctx, conn, path)
	switch {
	case err != nil:
		return 0, storeError(path, "read", err)
	case app != applicationID:
		return 0, tenon.Errorf(tenon.CodeStore,
			"store %s: the file is a database of another program; name another path", path)
	}
	return version, nil
}

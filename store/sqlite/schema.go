package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tenonhq/tenon"
)

// applicationID is in the header of the file ("teno"). It distinguishes a store from the databases of other programs.
const applicationID = 0x74656e6f

// migrate applies the missing migrations to the store. It first makes a copy of an older store. The migration is one
// transaction, so that the store has either version after a crash.
//
// A lease ensures that only one process migrates; the others find the new version.
func migrate(ctx context.Context, conn *sql.Conn, path string, steps []string, l *leases) error {
	// Usually there is nothing to migrate. Watching ctx would then take longer than reading the version.
	version, app, tables, err := identify(context.WithoutCancel(ctx), conn, path)
	switch {
	case err != nil:
		return storeError(path, "read", err)
	case version > len(steps):
		return newerError(path, version, len(steps))
	case app != applicationID && tables > 0:
		return tenon.Errorf(tenon.CodeStore, "store %s: the file is a database of another program; name another path",
			path)
	case version == len(steps):
		return nil
	}
	if version > 0 {
		// A process of an older release would write rows without checksums.
		if busy, err := l.busy(); version < 9 && (err != nil || busy) {
			return busyError(path, err)
		}
		release, err := migrationLease(ctx, l)
		if err != nil {
			return tenon.Errorf(tenon.CodeStore, "store %s: it has to be migrated: %w", path, err)
		}
		defer release()
		if version, _, _, err = identify(ctx, conn, path); err != nil {
			return storeError(path, "read", err)
		}
		if version == len(steps) {
			return nil
		}
		if err := backup(ctx, conn, path, version); err != nil {
			return err
		}
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return storeError(path, "migrate", err)
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // an error after COMMIT
	// Another process may have migrated the store meanwhile.
	if version, _, _, err = identify(ctx, conn, path); err != nil {
		return storeError(path, "read", err)
	}
	if version > len(steps) {
		return newerError(path, version, len(steps))
	}
	for v := version; v < len(steps); v++ {
		if _, err := conn.ExecContext(ctx, steps[v]); err != nil {
			return storeError(path, fmt.Sprintf("migrate to version %d", v+1), err)
		}
		if v+1 == 9 {
			if err := migrateTexts9(ctx, conn); err != nil {
				return storeError(path, "migrate the index of texts to version 9", err)
			}
		}
	}
	if version > 0 && version < 9 && len(steps) >= 9 {
		if err := fillMigrated(ctx, conn); err != nil {
			return storeError(path, "compute checksums", err)
		}
	}
	pragmas := fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", len(steps), applicationID)
	if _, err := conn.ExecContext(ctx, pragmas); err != nil {
		return storeError(path, "migrate", err)
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		return storeError(path, "migrate", err)
	}
	return nil
}

// migrationLease waits for the right to migrate the store.
func migrationLease(ctx context.Context, l *leases) (release func(), err error) {
	for deadline := time.Now().Add(migrationPatience); ; {
		release, ok, err := l.acquire(migrationName)
		if ok || err != nil {
			return release, err
		}
		if time.Now().After(deadline) {
			return nil, errors.New("another process has been at it for long; wait for it, or end it")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// migrationName is the name of the lease of a migration. It cannot be the id of a run.
const migrationName = "the migration"

// migrationPatience is how long a process waits for a migration by another process, which may have to copy a large
// store.
const migrationPatience = 5 * time.Minute

func newerError(path string, version, known int) error {
	return tenon.Errorf(tenon.CodeStore,
		"store %s: its schema has version %d, this tenon knows versions up to %d; use a newer tenon, or the backup "+
			"%s if there is one",
		path, version, known, backupPath(path, known))
}

// identify reads the schema version and application id of the file. Errors: store (the file has a trigger, a view or
// a virtual table that is not tenon's, so that foreign statements would run with every write).
func identify(ctx context.Context, conn *sql.Conn, path string) (version, app, tables int, err error) {
	var strange int
	for _, q := range []struct {
		sql  string
		dest []any
	}{
		{"PRAGMA user_version", []any{&version}},
		{"PRAGMA application_id", []any{&app}},
		{`SELECT count(*), count(CASE WHEN type IN ('trigger', 'view') OR rootpage = 0 AND type = 'table'
			AND name <> 'texts_index' THEN 1 END)
			FROM sqlite_schema`, []any{&tables, &strange}},
	} {
		if err := conn.QueryRowContext(ctx, q.sql).Scan(q.dest...); err != nil {
			return 0, 0, 0, err
		}
	}
	if app == applicationID && strange > 0 {
		return 0, 0, 0, tenon.Errorf(tenon.CodeStore,
			"store %s: it has a trigger, a view or a virtual table that tenon did not make, "+
				"so somebody else's statements could run with every write; do not use it: name another store with "+
				"--home, or move this one away", path)
	}
	return version, app, tables, nil
}

func backupPath(path string, version int) string { return fmt.Sprintf("%s.v%d.bak", path, version) }

// backup copies the store unchanged. If a crash has left an unfinished copy, it is made again: only a finished copy
// gets the final name.
func backup(ctx context.Context, conn *sql.Conn, path string, version int) error {
	final := backupPath(path, version)
	part := final + ".part"
	for _, end := range []string{"", "-journal"} { // of a process that died
		_ = os.Remove(part + end)
	}
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "store %s: no backup before the migration: %w", path, err)
	}
	_ = f.Close() // empty: VACUUM INTO takes an empty file, and keeps its mode
	if _, err := conn.ExecContext(ctx, "VACUUM INTO ?", part); err != nil {
		_ = os.Remove(part)
		return storeError(path, "back up before the migration", err)
	}
	if err := syncFile(part); err != nil {
		return tenon.Errorf(tenon.CodeStore, "store %s: no backup before the migration: %w", path, err)
	}
	if err := os.Rename(part, final); err != nil {
		return tenon.Errorf(tenon.CodeStore, "store %s: no backup before the migration: %w", path, err)
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

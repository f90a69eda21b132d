package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store/forms"
)

// CheckConfig says what to check.
type CheckConfig struct {
	Path string // of the store
	// Quick checks the log, the header, the schema, the newest rows and, of a small store, the structure.
	Quick bool
	// Ledger is the path of the user's ledger, which a full check reads, too. If empty, no ledger is checked. The
	// file need not exist.
	Ledger string
	// Progress may be nil; it receives the current step and its number.
	Progress func(step string, n, of int)
	// alone says that no process writes the file and that there is no log. SQLite then creates no further files.
	alone bool
}

const (
	// quickPages is the number of pages up to which a quick check reads the structure.
	quickPages = 20_000
	// quickRows is the number of rows of each table whose checksums a quick check compares: the newest ones.
	quickRows = 1000
	// logTries is how often a log is read that looks damaged, because another process may be writing it.
	logTries = 4
	logPause = 30 * time.Millisecond
)

// Check looks for damage in a store and its log. It changes nothing, and other processes may work on the store
// meanwhile: it reads one snapshot. Errors: not_found (there is no store), store (it cannot be read at all),
// cancelled. Damage is part of the report and not an error.
func Check(ctx context.Context, c CheckConfig) (*Report, error) {
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "store %s: %w", c.Path, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing(path)
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeStore, "store %s: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, tenon.Errorf(tenon.CodeStore, "store %s: it is not a regular file (%s)", path, info.Mode().Type())
	}
	k := &checker{CheckConfig: c, path: path,
		report: &Report{Path: path, Quick: c.Quick, Bytes: info.Size(), Problems: []Problem{}}}
	begun := time.Now()
	err = k.all(ctx)
	k.report.Took = time.Since(begun)
	if ctx.Err() != nil {
		return k.report, tenon.Errorf(tenon.CodeCancelled, "store %s: not checked: %w", path, ctx.Err())
	}
	return k.report, err
}

// missing returns the error for a store that does not exist.
func missing(path string) error {
	if left := remains(path); left != "" {
		return remainsError(path, left)
	}
	return tenon.Errorf(tenon.CodeNotFound, "there is no store %s; the first run makes one", path)
}

// checker is one check.
type checker struct {
	CheckConfig
	path    string
	report  *Report
	conn    *sql.Conn
	pending []summed // tables whose rows do not all have checksums yet
	texts   bool     // there is an index of texts
}

// checkStep is a part of a check.
type checkStep struct {
	name string
	do   func(context.Context) error
	full bool // not part of a quick check
}

func (k *checker) all(ctx context.Context) error {
	return k.run(ctx, []checkStep{
		{"log", k.log, false}, {"header and schema", k.file, false}, {"structure", k.structure, false},
		{"rows", k.rows, false}, {"blobs", k.blobs, true}, {"journals", k.journals, true},
		{"search index", k.search, true}, {"ledger", k.ledger, true},
	})
}

// run executes steps. The first one reads no file through SQLite; the others read one snapshot.
func (k *checker) run(ctx context.Context, steps []checkStep) error {
	defer func() {
		if k.conn != nil {
			_ = k.conn.Close() // it was only read
		}
	}()
	q := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "query_only(1)", "cell_size_check(1)",
		"trusted_schema(0)"}}
	if k.alone {
		q.Set("immutable", "1")
	}
	db, err := connectWith(k.path, 1, q)
	if err != nil {
		return storeError(k.path, "open", err)
	}
	defer func() { _ = db.Close() }() // it was only read
	for i, s := range steps {
		if s.full && k.Quick {
			continue
		}
		if k.Progress != nil {
			k.Progress(s.name, i+1, len(steps))
		}
		if i == 1 {
			if k.conn, err = db.Conn(ctx); err == nil {
				_, err = k.conn.ExecContext(ctx, "BEGIN")
			}
			if err != nil {
				return k.unreadable(ctx, err)
			}
		}
		if err := s.do(ctx); err != nil {
			return k.unreadable(ctx, err)
		}
	}
	return nil
}

// unreadable reports damage that stops SQLite from reading. It returns other errors.
func (k *checker) unreadable(ctx context.Context, err error) error {
	if ctx.Err() == nil && isDamage(err) {
		k.report.add(ProblemFile, "it cannot be read further: %v", err)
		return nil
	}
	var known *tenon.Error
	if errors.As(err, &known) {
		return err
	}
	return storeError(k.path, "check", err)
}

// log checks the log. A process that writes it meanwhile can make it look torn for a moment.
func (k *checker) log(context.Context) error {
	path, before := k.path+"-wal", ""
	for try := 1; ; try++ {
		l, err := readLog(path)
		if err != nil {
			return tenon.Errorf(tenon.CodeStore, "store %s: its log: %w", k.path, err)
		}
		text := l.damaged()
		if text == "" {
			return nil
		}
		info, err := os.Stat(path)
		idle := err == nil && time.Since(info.ModTime()) > time.Second
		if idle || try >= logTries && text == before || try >= 10*logTries {
			k.report.add(ProblemLog, "%s", text)
			return nil
		}
		before = text
		time.Sleep(logPause)
	}
}

// each reads rows of the snapshot.
func (k *checker) each(ctx context.Context, query string, row func(*sql.Rows) error) error {
	return eachOf(ctx, k.conn, query, row)
}

// structure makes SQLite check all pages, and compare all indexes with their tables.
func (k *checker) structure(ctx context.Context) error {
	var pages, free int64
	if err := k.conn.QueryRowContext(ctx, "SELECT page_count, freelist_count FROM pragma_page_count, "+
		"pragma_freelist_count").Scan(&pages, &free); err != nil {
		return err
	}
	k.report.Free = free * storePageSize
	if k.Quick && pages > quickPages {
		return nil
	}
	query := fmt.Sprintf("PRAGMA integrity_check(%d)", maxProblems)
	err := k.each(ctx, query, func(rows *sql.Rows) error {
		var text string
		if err := rows.Scan(&text); err != nil || text == "ok" {
			return err
		}
		kind := ProblemPage
		if strings.Contains(text, "texts_index") {
			kind = ProblemSearch
		}
		k.report.add(kind, "%s", strings.TrimSpace(strings.TrimPrefix(text, "*** in database main ***")))
		return nil
	})
	return k.damage(ctx, ProblemPage, "structure", err)
}

// damage reports err if it shows damage, and returns any other error.
func (k *checker) damage(ctx context.Context, kind, what string, err error) error {
	if err == nil || ctx.Err() != nil || !isDamage(err) {
		return err
	}
	k.report.add(kind, "%s cannot be read: %v", what, err)
	return nil
}

// rows compares the checksums of rows.
func (k *checker) rows(ctx context.Context) error {
	if k.report.Version < 9 {
		return nil // in this version, rows have no checksums
	}
	err := k.each(ctx, "SELECT name FROM unsummed", func(rows *sql.Rows) error {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		tables := summedTables()
		i := slices.IndexFunc(tables, func(t summed) bool { return t.table == name })
		if i < 0 {
			k.report.problem(Problem{ProblemRow, "unsummed", name, "no table has this name"})
			return nil
		}
		k.pending = append(k.pending, tables[i])
		return nil
	})
	if err := k.damage(ctx, ProblemRow, "table unsummed", err); err != nil {
		return err
	}
	for _, t := range summedTables() {
		if strings.HasPrefix(t.table, "texts") && !k.texts || t.since() > k.report.Version {
			continue
		}
		if err := k.damage(ctx, ProblemRow, "table "+t.table, k.table(ctx, t)); err != nil {
			return err
		}
	}
	return nil
}

// table compares the checksums of a table.
func (k *checker) table(ctx context.Context, t summed) error {
	from := t.table
	if k.Quick {
		from = "(SELECT * FROM " + t.table
		if !t.withoutRowid() {
			from += " ORDER BY rowid DESC"
		}
		from += fmt.Sprintf(" LIMIT %d) AS %s", quickRows, t.table)
	}
	var n, without int64
	if err := k.conn.QueryRowContext(ctx, "SELECT count(*), count(*) - count(sum) FROM "+from).Scan(&n,
		&without); err != nil {
		return err
	}
	if slices.ContainsFunc(k.pending, func(p summed) bool { return p.table == t.table }) {
		k.report.Unsummed += without
		n -= without
		from += " WHERE sum IS NOT NULL AND "
	} else {
		from += " WHERE "
	}
	k.report.Rows += n
	return k.each(ctx, "SELECT sum IS NULL, "+t.key+" FROM "+from+"sum IS NOT "+t.sum(), func(rows *sql.Rows) error {
		var none bool
		var key sql.RawBytes
		if err := rows.Scan(&none, &key); err != nil {
			return err
		}
		text := "its checksum does not match"
		if none {
			text = "its checksum is missing"
		}
		k.report.problem(Problem{ProblemRow, t.table, string(key), text})
		return nil
	})
}

// blobs compares blobs with their digests.
func (k *checker) blobs(ctx context.Context) error {
	err := k.each(ctx, "SELECT digest, data FROM blobs", func(rows *sql.Rows) error {
		var digest, data sql.RawBytes
		if err := rows.Scan(&digest, &data); err != nil {
			return err
		}
		k.report.Blobs++
		if sum := sha256.Sum256(data); string(sum[:]) != string(digest) {
			k.report.problem(Problem{ProblemBlob, "blobs",
				forms.DigestName(digest), "its data does not match its digest"})
		}
		return nil
	})
	return k.damage(ctx, ProblemBlob, "table blobs", err)
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/tenonhq/tenon"
)

// ledgerTables contains the conditions that rows of a ledger must fulfil. Names and ids are in indexes, which SQLite
// compares with the tables; the rows of tables with further values have checksums (ledgersums.go).
var ledgerTables = []struct{ table, key, valid string }{
	{"revoked", "id", "typeof(id) = 'text' AND why IN ('" + whyRevoked + "', '" + whyExpired + "')"},
	{"uses", "id || ' in ' || step", "typeof(id) = 'text' AND typeof(step) = 'text'"},
	{"spent", "key || ' of ' || store",
		"typeof(store) = 'text' AND typeof(key) = 'text' AND typeof(used) = 'integer' AND used > 0"},
	{"rates", "key || ' of ' || store", "typeof(store) = 'text' AND typeof(key) = 'text' AND typeof(turns) = 'blob' " +
		"AND length(turns) > 0 AND length(turns) % 8 = 0 AND typeof(past) = 'integer' AND past > 0"},
	{"calls", "step", "typeof(step) = 'text' AND typeof(attempt) = 'integer' AND attempt > 0"},
}

// ledger checks the user's ledger, which is another file.
func (k *checker) ledger(ctx context.Context) error {
	if k.Ledger == "" {
		return nil
	}
	if _, err := os.Stat(k.Ledger); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	l := &checker{path: k.Ledger, report: &Report{}} // its version is the ledger's
	err := l.run(ctx, []checkStep{{"log", l.log, false}, {"schema", l.ledgerSchema, false},
		{"structure", l.structure, false}, {"rows", l.ledgerRows, false}})
	for _, p := range l.report.Problems {
		p.Kind = ProblemLedger
		if p.Table == "" {
			p.Text = k.Ledger + ": " + p.Text
		}
		k.report.problem(p)
	}
	k.report.More += l.report.More
	k.report.Ledger, k.report.LedgerUnsummed = l.report.Ledger, l.report.LedgerUnsummed
	return err
}

// ledgerSchema compares the header and the tables with the expected ones.
func (k *checker) ledgerSchema(ctx context.Context) error {
	if err := k.header(ctx); err != nil {
		return err
	}
	got, err := schemaTexts(ctx, k.conn)
	if err != nil {
		return err
	}
	var version int
	if err := k.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	k.report.Version = version
	if version > ledgerVersion {
		k.report.add(ProblemFile, "its format has version %d, and this tenon knows versions up to %d", version,
			ledgerVersion)
	}
	want, err := schemaInMemory(ctx, ledgerSteps(version)...)
	if err != nil {
		return tenon.Errorf(tenon.CodeInternal, "the schema of the ledger: %w", err)
	}
	if !maps.Equal(got, want) {
		names := slices.Sorted(maps.Keys(got))
		k.report.add(ProblemFile, "its schema is not the one that tenon made: it has %q", names)
	}
	return nil
}

// ledgerRows looks for values that no ledger has.
func (k *checker) ledgerRows(ctx context.Context) error {
	for _, t := range ledgerTables {
		whole, older := "1", "0"
		if s := ledgerSum(t.table); s.table != "" && k.report.Version > 0 {
			whole, older = "coalesce("+s.sound()+", 0)", fmt.Sprint("sum IS ", unsummedRow)
		} else if s.table != "" {
			older = "1" // the next tenon that uses the ledger adds the checksums
		}
		query := fmt.Sprintf("SELECT coalesce(%s, '?'), coalesce(%s, 0), %s, %s FROM %s NOT INDEXED", t.key, t.valid,
			whole, older, t.table)
		err := k.each(ctx, query, func(rows *sql.Rows) error {
			var key sql.RawBytes
			var ok, whole, older bool
			if err := rows.Scan(&key, &ok, &whole, &older); err != nil {
				return err
			}
			k.report.Ledger++
			if older {
				k.report.LedgerUnsummed++
			}
			switch {
			case !ok:
				k.report.problem(Problem{ProblemRow, t.table, string(key), "its values are impossible"})
			case !whole:
				k.report.problem(Problem{ProblemRow, t.table, string(key), "its checksum does not match"})
			}
			return nil
		})
		if err := k.damage(ctx, ProblemRow, "table "+t.table, err); err != nil {
			return err
		}
	}
	return nil
}

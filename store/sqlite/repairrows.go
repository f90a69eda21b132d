package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// maxSplits bounds the attempts to read parts of a damaged table.
const maxSplits = 20_000

// repairTables are the tables in the order in which they are copied. The index of texts is built again by a search, and
// unsummed stays empty, because each copied row has a checksum.
var repairTables = []string{"blobs", "runs", "chapters", "events", "run_blobs", "signals", "sessions", "grants",
	"grant_uses", "session_grants", "budgets", "reservations", "results", "rates", "pins", "marks"}

// copyTables copies the whole rows of all tables, and then cuts incomplete journals.
func (r *repairer) copyTables(ctx context.Context) error {
	if r.version < 6 {
		return fmt.Errorf("its schema has version %d, and only versions from 6 on can be repaired", r.version)
	}
	closing, err := r.attach(ctx)
	if err != nil {
		return err
	}
	defer closing()
	lost := map[string]int{}
	for i, table := range repairTables {
		if table == "session_grants" && r.version < sumsOf(table).since() {
			continue
		}
		r.progress.report("recover "+table, int64(i), int64(len(repairTables)))
		c := &tableCopy{r: r, table: table}
		if err := c.all(ctx); err != nil {
			return err
		}
		lost[table] = c.lost
		if c.lost > 0 {
			r.result.lose("%s: %d places of the table cannot be read", table, c.lost)
		}
	}
	for _, p := range r.result.Problems {
		if p.Table != "" {
			r.result.lose("%s %s: %s", p.Table, p.Row, p.Text)
			lost[p.Table]++
		}
		if p.Kind == ProblemLog {
			lost["events"]++
		}
	}
	r.progress.report("follow the journals", 0, 0)
	return r.cutJournals(ctx, lost["events"]+lost["chapters"]+lost["blobs"] > 0)
}

// tableCopy copies a table.
type tableCopy struct {
	r      *repairer
	table  string
	insert string // INSERT … SELECT … WHERE, without the range of rows
	from   string
	lost   int
	splits int
}

// columns returns the columns of a table that both stores have.
func (c *tableCopy) columns(ctx context.Context) (cols []string, summed bool, err error) {
	err = eachOf(ctx, c.r.conn, `SELECT n.name FROM pragma_table_info(?1, 'main') n
		JOIN pragma_table_info(?1, 'old') o ON o.name = n.name ORDER BY n.cid`, func(rows *sql.Rows) error {
		var name string
		switch err := rows.Scan(&name); {
		case err != nil:
			return err
		case name == "sum":
			summed = true
		default:
			cols = append(cols, name)
		}
		return nil
	}, c.table)
	return cols, summed, err
}

// all copies all rows that can be read and are undamaged. Rows of runs and sessions are copied even if they are
// damaged, because other rows depend on them.
func (c *tableCopy) all(ctx context.Context) error {
	cols, hasSum, err := c.columns(ctx)
	if err != nil && !isDamage(err) {
		return err
	}
	if len(cols) == 0 {
		c.lost++
		return nil
	}
	list := strings.Join(cols, ", ")
	into, values, whole := list, list, "1"
	tables := summedTables()
	if i := slices.IndexFunc(tables, func(t summed) bool { return t.table == c.table }); i >= 0 {
		t := tables[i]
		into, values = list+", sum", list+", "+t.sum()
		if hasSum && c.table != "runs" && c.table != "sessions" {
			whole = "(sum IS NULL OR sum IS " + t.sum() + ")"
		}
	} else if c.table == "blobs" {
		whole = "digest = " + digestFunction + "(data)"
	}
	c.insert = fmt.Sprintf("INSERT OR IGNORE INTO main.%s (%s) ", c.table, into)
	c.from = fmt.Sprintf("SELECT %s FROM old.%s AS %s WHERE %s", values, c.table, c.table, whole)
	_, err = c.r.conn.ExecContext(ctx, c.insert+c.from)
	if err == nil || !isDamage(err) || ctx.Err() != nil {
		return err
	}
	if c.table == "run_blobs" || slices.ContainsFunc(tables, func(t summed) bool {
		return t.table == c.table && t.withoutRowid()
	}) {
		return c.rowByRow(ctx, len(cols)+strings.Count(into, ", sum"))
	}
	lo, hi := int64(0), int64(1)<<40
	for query, n := range map[string]*int64{"SELECT min(rowid) FROM old.": &lo, "SELECT max(rowid) FROM old.": &hi} {
		var got sql.NullInt64
		if err := c.r.conn.QueryRowContext(ctx, query+c.table).Scan(&got); err == nil && got.Valid {
			*n = got.Int64
		}
	}
	return c.split(ctx, lo, hi)
}

// split copies the rows of a range. Around damaged pages, it splits the range into smaller ones.
func (c *tableCopy) split(ctx context.Context, lo, hi int64) error {
	if c.splits++; c.splits > maxSplits {
		if c.splits == maxSplits+1 {
			c.lost++
		}
		return nil
	}
	_, err := c.r.conn.ExecContext(ctx, c.insert+c.from+" AND rowid BETWEEN ? AND ?", lo, hi)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || !isDamage(err):
		return err
	case lo >= hi:
		c.lost++
		return nil
	}
	mid := lo + (hi-lo)/2
	if err := c.split(ctx, lo, mid); err != nil {
		return err
	}
	return c.split(ctx, mid+1, hi)
}

// rowByRow copies the rows of a table without rowids, from both ends up to the damage.
func (c *tableCopy) rowByRow(ctx context.Context, columns int) error {
	c.lost++
	params := strings.TrimSuffix(strings.Repeat("?,", columns), ",")
	for _, order := range []string{" ORDER BY 1", " ORDER BY 1 DESC"} {
		rows, err := c.read(ctx, c.from+order, columns)
		if err != nil {
			return err
		}
		for _, values := range rows {
			if _, err := c.r.conn.ExecContext(ctx, c.insert+"VALUES ("+params+")", values...); err != nil {
				return err
			}
		}
	}
	return nil
}

// read returns the rows of a query up to the first damage.
func (c *tableCopy) read(ctx context.Context, query string, columns int) (list [][]any, err error) {
	rows, err := c.r.conn.QueryContext(ctx, query)
	if err != nil {
		return nil, ignoreDamage(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err says what went wrong
	for rows.Next() {
		values, dest := make([]any, columns), make([]any, columns)
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		list = append(list, values)
	}
	return list, ignoreDamage(rows.Err())
}

func ignoreDamage(err error) error {
	if err != nil && isDamage(err) {
		return nil
	}
	return err
}

package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestExpand brings a schema from each version to the next. A program of the version before may still be at work:
// unless the step raises readers, tables and columns stay as they are, a new column of an old table has a default, and
// an old table gets no new constraint.
func TestExpand(t *testing.T) {
	if readers != 1 {
		t.Fatal("a step has raised readers: compare from that version on")
	}
	c := place(t)
	conn, err := pgx.Connect(t.Context(), c.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	s := newStore(&c, conn.Config()) // only for its statements
	t.Cleanup(s.stop)
	read := func(query string) (list []string) {
		t.Helper()
		rows, err := conn.Query(t.Context(), query, c.Schema)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatal(err)
			}
			list = append(list, text)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return list
	}
	isOld := func(before layout, name string) bool {
		return slices.ContainsFunc(before.tables, func(table string) bool {
			rest, ok := strings.CutPrefix(name, table)
			return ok && strings.ContainsAny(rest[:1], ".:")
		})
	}
	var before layout
	for i, step := range append([]string{makeVersion}, migrations...) {
		for _, q := range statements(step) {
			if _, err := conn.Exec(t.Context(), s.sql(q)); err != nil {
				t.Fatalf("step %d: %v: %s", i, err, q)
			}
		}
		after := readLayout(read)
		for what, list := range map[string][2][]string{"table": {before.tables, after.tables},
			"column": {before.columns, after.columns}} {
			for _, name := range list[0] {
				if !slices.Contains(list[1], name) {
					t.Errorf("version %d takes away or changes %s %s", i, what, name)
				}
			}
		}
		for what, list := range map[string][2][]string{"a column that programs before do not fill": {before.needed, after.needed},
			"a constraint that programs before do not know": {before.constraints, after.constraints}} {
			for _, name := range list[1] {
				if isOld(before, name) && !slices.Contains(list[0], name) {
					t.Errorf("version %d adds %s: %s", i, what, name)
				}
			}
		}
		before = after
	}
	if len(before.columns) < 50 {
		t.Fatal(fmt.Sprint("the test sees only the columns ", before.columns))
	}
}

// layout is what a schema has, as texts.
type layout struct{ tables, columns, needed, constraints []string }

func readLayout(read func(query string) []string) layout {
	return layout{
		tables: read(`SELECT table_name::text FROM information_schema.tables WHERE table_schema = $1`),
		columns: read(`SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable
			FROM information_schema.columns WHERE table_schema = $1`),
		needed: read(`SELECT table_name::text || '.' || column_name FROM information_schema.columns
			WHERE table_schema = $1 AND is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO'`),
		constraints: read(`SELECT c.relname || ': ' || pg_get_constraintdef(k.oid) FROM pg_constraint k
			JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1
			UNION SELECT c.relname || ': ' || pg_get_indexdef(i.indexrelid) FROM pg_index i
			JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = $1 AND i.indisunique`),
	}
}

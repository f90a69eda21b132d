package sqlite

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// rawly opens the file of a store with plain SQL, without tenon's checks.
func rawly(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := connect(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// checkSums checks the checksums of all rows of a store.
func checkSums(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		return // the test made no store
	}
	db := rawly(t, path)
	defer func() { _ = db.Close() }()
	var there bool
	if err := db.QueryRow(textsThere).Scan(&there); err != nil {
		t.Fatal(err)
	}
	for _, s := range summedTables() {
		if !there && strings.HasPrefix(s.table, "texts") {
			continue
		}
		var n int
		if err := db.QueryRow("SELECT count(*) FROM " + s.table + " WHERE sum IS NOT " + s.sum()).Scan(&n); err != nil || n > 0 {
			t.Errorf("table %s: %d rows have the wrong checksum, %v", s.table, n, err)
		}
	}
}

// unsummedColumns lists the columns that no checksum covers, with the reason.
var unsummedColumns = map[string]string{
	"blobs.digest":       "is the checksum of data, and in an index",
	"blobs.data":         "digest is its checksum",
	"run_blobs.run":      "an index has the whole row",
	"run_blobs.blob":     "an index has the whole row",
	"runs.n":             "the number of the row, which the indexes have",
	"signals.n":          "the number of the row, which the indexes have",
	"texts.n":            "the number of the row, which the indexes have",
	"probe.n":            "the contents do not matter",
	"probe.time":         "the contents do not matter",
	"probe.data":         "the contents do not matter",
	"unsummed.name":      "check knows all names",
	"pending.run":        "derived: damage leaves a run out of statistics and searches, or reads it once more",
	"pending.todo":       "derived: damage leaves a run out of statistics and searches, or reads it once more",
	"texts_index.":       "compared with texts",
	"texts_index_data.":  "compared with texts",
	"texts_index_idx.":   "compared with texts",
	"texts_index_docs":   "compared with texts",
	"texts_index_config": "compared with texts",
}

// TestSummedColumns checks that each column of each table is covered by a checksum, or is in the list of exceptions.
func TestSummedColumns(t *testing.T) {
	t.Run("RP-25_all_columns", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "tenon.db")
		if err := mustOpen(t, path, migrations).Close(); err != nil {
			t.Fatal(err)
		}
		db := rawly(t, path)
		if _, err := db.Exec(makeTexts); err != nil {
			t.Fatal(err)
		}
		rows, err := db.Query(`SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'
			AND t.name NOT LIKE 'texts\_index%' ESCAPE '\'`)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		count := map[string]int{}
		for rows.Next() {
			var table, column string
			if err := rows.Scan(&table, &column); err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(summedTables(), func(s summed) bool { return s.table == table })
			switch {
			case unsummedColumns[table+"."+column] != "" || column == "sum" && at >= 0:
			case at < 0:
				t.Errorf("table %s has no checksums: give it one (sums.go), or name its guard here", table)
			case !slices.Contains(summedTables()[at].cols, column):
				t.Errorf("column %s.%s is not part of the checksum", table, column)
			default:
				count[table]++
			}
		}
		for _, s := range summedTables() {
			if count[s.table] != len(s.cols) {
				t.Errorf("table %s has %d of the %d columns of its checksum", s.table, count[s.table], len(s.cols))
			}
		}
	})
	t.Run("RP-25_events", func(t *testing.T) {
		db := rawly(t, filepath.Join(t.TempDir(), "x.db"))
		for _, c := range []struct{ packed, blob, mac []byte }{
			{[]byte("packed"), nil, nil}, {[]byte{}, []byte("digest"), []byte("mac")}, {[]byte("\x00"), []byte{}, nil},
		} {
			var want int64
			err := db.QueryRow("SELECT tenon_sum('events', ?, ?, ?, ?, ?, ?, ?)", 7, 1<<40, 3, -5, c.packed, c.blob, c.mac).Scan(&want)
			if got := eventsSum(7, 1<<40, 3, -5, c.packed, c.blob, c.mac); err != nil || got != want {
				t.Errorf("%v: %d in Go, %d in SQL, %v", c, got, want, err)
			}
		}
	})
}

// TestDamageStays changes a value of a row with plain SQL. Reading the row is an error, and writing other values of the
// row later does not hide the damage.
func TestDamageStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenon.db")
	s := mustOpen(t, path, migrations)
	ctx := t.Context()
	run := &tenon.Run{ID: "r", Session: "s", Title: "title", Principal: "p"}
	if err := s.Append(ctx, store.Append{Create: run, Run: "r", Events: numbered(1, 2, 10)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutSignal(ctx, store.Signal{ID: "g", Run: "r", Kind: "k", Step: "1"}); err != nil {
		t.Fatal(err)
	}
	db := rawly(t, path)
	for name, c := range map[string]struct {
		damage string
		read   func() error
		write  func() error
	}{
		"run": {"UPDATE runs SET title = 'tjtle'",
			func() error { _, err := s.Run(ctx, "r"); return err },
			func() error { return s.Append(ctx, store.Append{Run: "r", State: tenon.RunInputRequired}) }},
		"session": {"UPDATE sessions SET agent = 'x'",
			func() error { _, err := s.Session(ctx, "s"); return err },
			func() error {
				return s.Append(ctx, store.Append{Create: &tenon.Run{ID: "r2", Session: "s", Agent: "", Created: time.Unix(9, 0)}, Run: "r2"})
			}},
		"signal": {"UPDATE signals SET step = '2'",
			func() error { _, err := s.Signal(ctx, "g"); return err },
			func() error { return s.SettleSignal(ctx, "g", 1) }},
		"events": {"UPDATE events SET events = CAST(replace(CAST(events AS TEXT), '\"n\":1', '\"n\":3') AS BLOB)",
			func() error { _, err := s.Events(ctx, "r", 0, 0); return err },
			func() error { return s.Append(ctx, store.Append{Run: "r", Events: numbered(3, 1, 10)}) }},
	} {
		t.Run("RP-25_"+name, func(t *testing.T) {
			if _, err := db.Exec(c.damage); err != nil {
				t.Fatal(err)
			}
			for _, when := range []string{"at once", "after a write"} {
				if err := c.read(); tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "tenon store repair") {
					t.Errorf("%s: %v", when, err)
				}
				if when == "at once" {
					if err := c.write(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// TestFillSums adds checksums to the rows of older stores, during the migration or in batches.
func TestFillSums(t *testing.T) {
	for version := 1; version < 9; version++ {
		t.Run(fmt.Sprint("RP-25_v", version), func(t *testing.T) {
			path := copyOld(t, version)
			s := mustOpen(t, path, migrations)
			checkOld(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			checkSums(t, path)
		})
	}
	t.Run("RP-25_batches", func(t *testing.T) {
		path := copyOld(t, 8)
		s := mustOpen(t, path, migrations[:8])
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		db := rawly(t, path)
		for _, q := range []string{
			`WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 30000) INSERT INTO events (chapter, seq, n, last, events)
				SELECT 1000000 + x, 1, 1, 1, x'00' FROM c`,
			"DELETE FROM events WHERE rowid % 7 = 0 AND chapter > 1000000",
		} {
			if _, err := db.Exec(q); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		brief, err := Open(t.Context(), Config{Path: path, ShortLived: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = brief.closeDBs() })
		var names []string
		if err := brief.each(t.Context(), "SELECT name FROM unsummed", nil, func(rows *sql.Rows) error {
			var n string
			err := rows.Scan(&n)
			names = append(names, n)
			return err
		}); err != nil || !slices.Contains(names, "events") {
			t.Fatalf("a large store is filled in its migration: %v, %v", names, err)
		}
		checkOld(t, brief) // rows of older stores can be read without a checksum
		if err := brief.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, path, migrations)
		if err := s.fillSums(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		checkSums(t, path)
		names = nil
		rows, err := rawly(t, path).Query("SELECT name FROM unsummed")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		if rows.Next() {
			t.Error("tables are listed as unsummed")
		}
	})
}

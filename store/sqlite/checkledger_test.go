package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/store/forms"
)

// fullLedger makes a ledger with rows in all tables. A part of them is only in the write-ahead log.
func fullLedger(t *testing.T, path string) {
	t.Helper()
	l := NewLedger(path, nil)
	t.Cleanup(func() { _ = l.Close() })
	now := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	for i := range 200 {
		id := fmt.Sprintf("gr_%03d", i)
		must(t, l.revoke([]string{whyRevoked, whyExpired}[i%2], "old_"+id))
		for j := range 3 {
			if ok, err := l.use(id, fmt.Sprintf("run_%03d/%d", i, j), 5); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
		must(t, l.spend("/home/x/.tenon/tenon.db", "day/"+id, int64(1+i*1000)))
		must(t, l.take("/home/x/.tenon/tenon.db", "rate "+id, forms.PackTurns([]time.Time{now}), now.Add(time.Hour), now))
		if fresh, err := l.attempt("run/"+id, 1+i%3); err != nil || !fresh {
			t.Fatal(fresh, err)
		}
	}
}

// ledgerText reads a ledger as text. names has the values that are also in an index; counts has all others.
func ledgerText(ctx context.Context, path string) (names, counts string, err error) {
	db, err := connect(path, 1, "query_only(1)")
	if err != nil {
		return "", "", err
	}
	defer db.Close()
	var list [2][]string
	for i, query := range []string{
		"SELECT id || why FROM revoked NOT INDEXED UNION ALL SELECT id || step FROM uses NOT INDEXED UNION ALL " +
			"SELECT store || key FROM spent NOT INDEXED UNION ALL SELECT store || key FROM rates NOT INDEXED " +
			"UNION ALL SELECT step FROM calls NOT INDEXED",
		"SELECT used FROM spent NOT INDEXED UNION ALL SELECT hex(turns) || ' ' || past FROM rates NOT INDEXED " +
			"UNION ALL SELECT attempt FROM calls NOT INDEXED",
	} {
		rows, err := db.QueryContext(ctx, query)
		if err != nil {
			return "", "", err
		}
		for rows.Next() {
			var text *string
			if err := rows.Scan(&text); err != nil {
				return "", "", err
			}
			raw, _ := json.Marshal(text)
			list[i] = append(list[i], string(raw))
		}
		if err := rows.Err(); err != nil {
			return "", "", err
		}
		slices.Sort(list[i])
	}
	return strings.Join(list[0], "\n"), strings.Join(list[1], "\n"), nil
}

// TestLedgerFlips flips random bits of a ledger and its log, one at a time. Whatever changes what the ledger says, or
// prevents reading, is found by check.
func TestLedgerFlips(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	t.Run("RP-25", func(t *testing.T) {
		ctx, dir := t.Context(), t.TempDir()
		store, whole := filepath.Join(dir, "tenon.db"), filepath.Join(dir, "ledger.db")
		s, err := Open(ctx, Config{Path: store})
		must(t, err)
		must(t, s.Close())
		fullLedger(t, whole)
		files := map[string][]byte{}
		for _, end := range []string{"", "-wal"} {
			b, err := os.ReadFile(whole + end)
			if err != nil || len(b) == 0 {
				t.Fatal(end, err)
			}
			files[end] = b
		}
		copied := filepath.Join(t.TempDir(), "ledger.db")
		put := func(change func(end string, b []byte)) {
			_ = os.Remove(copied + "-shm")
			for end, b := range files {
				b = slices.Clone(b)
				change(end, b)
				must(t, os.WriteFile(copied+end, b, 0o600))
				must(t, os.Chtimes(copied+end, time.Time{}, time.Now().Add(-time.Hour))) // nobody writes it
			}
		}
		check := func() *Report {
			r, err := Check(ctx, CheckConfig{Path: store, Ledger: copied})
			must(t, err)
			return r
		}
		put(func(string, []byte) {})
		if r := check(); !r.OK() || r.Ledger != 200*7 {
			t.Fatalf("a ledger without damage: %+v", r)
		}
		names, counts, err := ledgerText(ctx, copied)
		must(t, err)
		random := rand.New(rand.NewPCG(25, 2))
		found, changed := 0, 0
		for range min(times(t, 100), 500) {
			end := []string{"", "", "-wal"}[random.IntN(3)]
			at := random.IntN(8 * len(files[end]))
			flip := func(e string, b []byte) {
				if e == end {
					b[at/8] ^= 1 << (at % 8)
				}
			}
			put(flip)
			r := check()
			if !r.OK() {
				found++
			}
			put(flip)
			gotNames, gotCounts, err := ledgerText(ctx, copied)
			switch {
			case err == nil && gotNames == names && gotCounts == counts:
			case !r.OK():
				changed++
			default:
				t.Errorf("ledger.db%s, byte %d, bit %d: not found, and the ledger changes: %v", end, at/8, at%8, err)
			}
			if !r.OK() && !r.LedgerOnly() {
				t.Errorf("the store has no damage: %+v", r.Problems)
			}
		}
		t.Logf("%d flips found; %d changed what the ledger says", found, changed)
	})
}

// TestCheckLedger checks that damage to single rows of a ledger is found, and that a missing ledger is not an error.
func TestCheckLedger(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	store := filepath.Join(dir, "tenon.db")
	s, err := Open(t.Context(), Config{Path: store})
	must(t, err)
	must(t, s.Close())
	for name, damage := range map[string]string{
		"RP-25_none":   "",
		"RP-25_why":    "UPDATE revoked SET why = 'revokee' WHERE id = 'old_gr_007'",
		"RP-25_spent":  "UPDATE spent SET used = -1 WHERE key = 'day/gr_007'",
		"RP-25_turns":  "UPDATE rates SET turns = x'01' WHERE key = 'rate gr_007'",
		"RP-25_calls":  "UPDATE calls SET attempt = 0 WHERE step = 'run/gr_007'",
		"RP-25_sum":    "UPDATE calls SET attempt = attempt + 1, sum = sum + 1 WHERE step = 'run/gr_007'",
		"RP-25_past":   "UPDATE rates SET past = past - 1, sum = sum - 1 WHERE key = 'rate gr_007'",
		"RP-25_uses":   "UPDATE uses SET step = x'00' WHERE id = 'gr_007' AND step LIKE '%/0'",
		"RP-25_schema": "DROP TABLE revoked",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			r, err := Check(t.Context(), CheckConfig{Path: store, Ledger: path})
			if err != nil || !r.OK() || r.Ledger != 0 {
				t.Fatalf("without a ledger: %+v, %v", r, err)
			}
			fullLedger(t, path)
			db, err := connect(path, 1)
			must(t, err)
			_, err = db.ExecContext(t.Context(), damage)
			must(t, err)
			must(t, db.Close())
			r, err = Check(t.Context(), CheckConfig{Path: store, Ledger: path})
			if err != nil || r.OK() != (damage == "") || r.OK() == r.LedgerOnly() {
				t.Errorf("%+v, %v", r, err)
			}
			r, err = Check(t.Context(), CheckConfig{Path: store, Ledger: path, Quick: true})
			if err != nil || !r.OK() || r.Ledger != 0 {
				t.Errorf("quick: %+v, %v", r, err)
			}
		})
	}
}

package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
	"github.com/tenonhq/tenon/store/signed"
)

// fullStore makes a store with rows in all tables: finished and waiting runs, long and large journals, and a search
// index. A part of the data is only in the write-ahead log.
func fullStore(t *testing.T, path string, key *signed.Key) {
	t.Helper()
	ctx := t.Context()
	s, err := Open(ctx, Config{Path: path, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	now := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		if i == 9 { // the remaining data stays in the log
			_, err := s.read.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
			do(err)
		}
		id := fmt.Sprintf("run_%02d", i)
		snapshot := []byte(fmt.Sprintf(`{"tools":[%q]}`, strings.Repeat(fmt.Sprint("tool ", i%3), 200)))
		do(s.Append(ctx, store.Append{Run: id, Create: &tenon.Run{ID: id, Session: fmt.Sprintf("ses_%d", i/2), Title: "Question " + id,
			Principal: "local", Core: "agent@1", Agent: "default", Model: "m", Created: now}, Blobs: [][]byte{snapshot}, Events: numbered(1, 2, 100)}))
		for j := range 10 {
			do(s.Append(ctx, store.Append{Run: id, Events: numbered(3+4*j, 4, 50+40*j)}))
		}
		do(s.Append(ctx, store.Append{Run: id, Events: numbered(43, 1, forms.BlobFrom+i), State: tenon.RunCompleted, Stop: "done"}))
		_, err := s.PutSignal(ctx, store.Signal{ID: "sig_" + id, Run: id, Kind: "decision", Step: "1.0", By: "me", Data: []byte(`{"allow":true}`), Time: now})
		do(err)
		do(s.PutTexts(ctx, []store.RunTexts{{Run: id, UpTo: 43, Texts: []store.Text{{Seq: 1, Role: "user", Text: "What is the weather in town " + id}, {Seq: 2, Role: "assistant",
			Text: strings.Repeat("It rains cats and dogs. ", 20+i)}}}}))
		_, err = s.Reserve(ctx, id, "1", []store.Charge{{Key: "day/" + id, Amount: 5, Limit: 100}})
		do(err)
		do(s.Settle(ctx, id, "1", []int64{int64(i)}))
		do(s.PutResult(ctx, store.KeptResult{Key: "key " + id, Run: id, Step: "1", Expires: time.Now().Add(time.Hour), Data: []byte(`{"content":[]}`)}))
		do(s.PutGrant(ctx, store.Grant{ID: "gr_" + id, Principal: "local", Server: "server", Name: "server", Remote: "tool " + id, Uses: 3, Created: now}))
		_, err = s.UseGrant(ctx, "gr_"+id, id, "1", now)
		do(err)
		do(s.PutSessionGrant(ctx, store.SessionGrant{ID: "gs_" + id, Session: "ses_1", Key: "key " + id, Principal: "local",
			Server: "server", Remote: "tool", By: "me", Created: now}))
		do(s.PutPins(ctx, []store.Pin{{Server: "server", Remote: "tool " + id, Raw: "raw", Digest: "digest", Definition: []byte(`{"name":"tool"}`), Created: now}}, false))
		_, _, err = s.Admit(ctx, "rate "+id, 5, time.Hour, time.Minute, time.Now())
		do(err)
	}
	do(s.PutSession(ctx, tenon.Session{ID: "ses_last", Title: "the end", Created: now}))
}

// outputOf reads everything that a store shows, as one text.
func outputOf(ctx context.Context, path string, key *signed.Key) (out string, err error) {
	s, err := openReading(ctx, Config{Path: path, Key: key})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var all []any
	var errs []error
	add := func(v any, err error) {
		if err != nil {
			errs = append(errs, err)
		}
		all = append(all, v)
	}
	runs, err := s.Runs(ctx, store.RunFilter{Limit: 1000})
	add(runs, err)
	for _, f := range []store.RunFilter{{State: tenon.RunCompleted}, {Principal: "local"}, {Session: "ses_1"}} {
		add(s.Runs(ctx, f))
	}
	for i := range 12 {
		id := fmt.Sprintf("run_%02d", i)
		add(s.Run(ctx, id))
		add(s.Events(ctx, id, 0, 0))
		add(s.Signal(ctx, "sig_"+id))
		add(s.Signals(ctx, id))
		add(s.Pin(ctx, "server", "tool "+id))
		add(s.Result(ctx, "key "+id, time.Now()))
		add(s.Blob(ctx, store.Digest([]byte(fmt.Sprintf(`{"tools":[%q]}`, strings.Repeat(fmt.Sprint("tool ", i%3), 200))))))
	}
	add(s.Sessions(ctx, store.SessionFilter{Limit: 100}))
	add(s.Sessions(ctx, store.SessionFilter{Principal: "local"}))
	add(s.Grants(ctx, "local"))
	add(s.SessionGrants(ctx, "local"))
	add(s.Balances(ctx, ""))
	add(s.Pins(ctx, ""))
	for _, q := range []string{"weather", "cats dogs", "run_03", "rains"} {
		add(s.Search(ctx, store.SearchFilter{Query: q, Principal: "local", Limit: 100}))
	}
	add(s.Foreign(ctx))
	b, err := json.Marshal(all)
	return string(b), errors.Join(append(errs, err)...)
}

// TestFlips flips random bits of a store and its log, one at a time. The check must find every flip that changes the
// visible data, and almost all others.
func TestFlips(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	key, err := signed.NewKey(make([]byte, signed.MinSecret))
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]*signed.Key{"signed": key, "unsigned": nil} {
		t.Run("RP-25_"+name, func(t *testing.T) {
			ctx := t.Context()
			dir := t.TempDir()
			path := filepath.Join(dir, "tenon.db")
			fullStore(t, path, key)
			files := map[string][]byte{}
			for _, end := range []string{"", "-wal"} {
				b, err := os.ReadFile(path + end)
				if err != nil || len(b) == 0 {
					t.Fatal(end, err)
				}
				files[end] = b
			}
			put := func(dir string, change func(end string, b []byte)) string {
				copied := filepath.Join(dir, "tenon.db")
				_ = os.Remove(copied + "-shm")
				for end, b := range files {
					b = append([]byte(nil), b...)
					change(end, b)
					err := os.WriteFile(copied+end, b, 0o600)
					if err == nil {
						err = os.Chtimes(copied+end, time.Time{}, time.Now().Add(-time.Hour)) // nobody writes it
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				return copied
			}
			whole := put(filepath.Join(t.TempDir()), func(string, []byte) {})
			if r, err := Check(ctx, CheckConfig{Path: whole}); err != nil || !r.OK() || r.Rows < 100 || r.Blobs < 10 || r.Runs != 12 {
				t.Fatalf("a store without damage: %+v, %v", r, err)
			}
			want, err := outputOf(ctx, whole, key)
			if err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(25, 1))
			found, changed, silent, where := 0, 0, 0, t.TempDir()
			flips := min(times(t, 40), 250)
			for range flips {
				end := []string{"", "", "-wal"}[random.IntN(3)]
				at := random.IntN(8 * len(files[end]))
				flip := func(e string, b []byte) {
					if e == end {
						b[at/8] ^= 1 << (at % 8)
					}
				}
				r, err := Check(ctx, CheckConfig{Path: put(where, flip)})
				isFound := err != nil || !r.OK()
				got, rerr := outputOf(ctx, put(where, flip), key)
				if isFound {
					found++
				}
				if got != want || rerr != nil {
					changed++
					if rerr == nil {
						silent++
					}
					if !isFound {
						t.Errorf("tenon.db%s, byte %d (page %d), bit %d: not found, and the output changes: %v", end, at/8, at/8/storePageSize+1, at%8, rerr)
					}
				}
			}
			t.Logf("%d flips: %d found; %d changed the output, %d of them without an error", flips, found, changed, silent)
		})
	}
}

package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/store"
)

// TestDeletedIsGone writes a unique word everywhere in each of many sessions, deletes the sessions in random order, and
// looks for the words in all files of the store.
func TestDeletedIsGone(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	for _, brief := range []bool{false, true} {
		t.Run(fmt.Sprintf("brief_%v", brief), func(t *testing.T) {
			sessions := 15
			if os.Getenv("TENON_KILLS") != "" { // a long test run
				sessions = 150
			}
			random := rand.New(rand.NewPCG(1, 2))
			dir := t.TempDir()
			s, err := Open(t.Context(), Config{Path: filepath.Join(dir, "tenon.db"), ShortLived: brief})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = s.Close()
				_ = s.closeDBs() // with a short-lived store, the process would end here
			})
			seqs := map[string]uint64{}
			for range 6 { // adds to all sessions alternately, so that their rows are mixed
				for i := range sessions {
					plant(t, s, random, i, seqs)
				}
			}
			for i, n := range random.Perm(sessions) {
				if got := inFiles(t, dir, canary(n)); i == 0 && len(got) == 0 {
					t.Fatal("the word was not planted")
				}
				if err := s.DeleteSession(t.Context(), fmt.Sprint("ses_", n)); err != nil {
					t.Fatal(err)
				}
				if got := inFiles(t, dir, canary(n)); len(got) > 0 {
					t.Errorf("session %d, deleted as number %d, is still in %v", n, i, got)
				}
			}
			var sound string
			err = s.each(t.Context(), "PRAGMA integrity_check", nil, func(rows *sql.Rows) error { return rows.Scan(&sound) })
			if err != nil || sound != "ok" {
				t.Errorf("the file is %s, %v", sound, err)
			}
		})
	}
}

func canary(i int) string { return fmt.Sprintf("canary<%03d>bird", i) }

// plant adds more data to a session.
func plant(t *testing.T, s *Store, random *rand.Rand, i int, seqs map[string]uint64) {
	t.Helper()
	ctx, word := t.Context(), canary(i)
	data := func(n int) json.RawMessage { return json.RawMessage(strings.Repeat(word+" ", n)) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	run := fmt.Sprintf("run_%d_%d", random.IntN(10), i) // a run of the session, with a random id in the index
	a := store.Append{Run: run}
	if seqs[run] == 0 {
		a.Create = &tenon.Run{ID: run, Session: fmt.Sprint("ses_", i), Title: word, Agent: word}
		a.Blobs = [][]byte{data(1 + random.IntN(1000))}
	}
	for range 1 + random.IntN(4) {
		seqs[run]++
		a.Events = append(a.Events, tenon.Event{Seq: seqs[run], Kind: "k", Step: word, Data: data([]int{1, 10, 100, 300, 3000}[random.IntN(5)])})
	}
	must(s.Append(ctx, a))
	for range 2 {
		waiting := []tenon.Waiting{{Step: "1", Data: json.RawMessage(`"` + string(data(random.IntN(300))) + `"`)}}
		must(s.Append(ctx, store.Append{Run: run, State: tenon.RunInputRequired, Waiting: waiting}))
	}
	_, err := s.PutSignal(ctx, store.Signal{ID: tenon.NewID("sig", s.now()), Run: run, Kind: "message", By: word, Data: data(random.IntN(200))})
	must(err)
	must(s.PutTallies(ctx, []store.Tally{{Run: run, Seq: seqs[run], Data: data(100)}}))
	must(s.PutTexts(ctx, []store.RunTexts{{Run: run, UpTo: seqs[run], Texts: []store.Text{{Seq: seqs[run], Role: "user", Text: string(data(1 + random.IntN(200)))}}}}))
	_, err = s.Reserve(ctx, run, word, []store.Charge{{Key: fmt.Sprintf("session/ses_%d/%s", i, word), Amount: 1}})
	must(err)
	session, err := s.Session(ctx, fmt.Sprint("ses_", i))
	must(err)
	session.Title = word + fmt.Sprint(random.IntN(1e6))
	must(s.PutSession(ctx, session))
}

// inFiles returns the names of the files in a directory that contain one of the words.
func inFiles(t *testing.T, dir string, words ...string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.IsDir() {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			if n := bytes.Count(b, []byte(word)); n > 0 {
				names = append(names, fmt.Sprintf("%s (%s %d times)", filepath.Base(f), word, n))
			}
		}
	}
	return names
}

// FuzzWipePage wipes pages that may be damaged. Wiping a page twice is the same as wiping it once, and the cells of an
// undamaged page stay the same.
func FuzzWipePage(f *testing.F) {
	page := make([]byte, 512)
	copy(page, []byte{13, 0, 20, 0, 1, 1, 0xf0, 0, 1, 0xf0}) // one cell at 496
	copy(page[20:], []byte{0, 0, 0, 12, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(page, false)
	f.Add([]byte{5, 0xff, 0xff, 0xff, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff}, false)
	f.Add(emptyStore()[:4096], true)
	f.Fuzz(func(t *testing.T, page []byte, first bool) {
		wipePage(page, first)
		once := bytes.Clone(page)
		if wipePage(page, first) || !bytes.Equal(page, once) {
			t.Error("the second time changes something")
		}
	})
}

// TestEmptyLogBesideClose closes a short-lived store before the log of a deletion could be emptied. A message is
// logged, and the call does not wait.
func TestEmptyLogBesideClose(t *testing.T) {
	var told bytes.Buffer
	s, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "tenon.db"), ShortLived: true, Logger: slog.New(slog.NewTextHandler(&told, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.closeDBs() }) // otherwise the end of the process does this
	s.emptyLog(context.WithoutCancel(t.Context()))
	if !strings.Contains(told.String(), "it was closed") {
		t.Errorf("told: %s", told.String())
	}
}

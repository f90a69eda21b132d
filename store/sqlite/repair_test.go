package sqlite

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/store"
)

// journalsOf reads all journals of a store. It leaves out truncated ones.
func journalsOf(t *testing.T, path string) (journals map[string][]tenon.Event, cut int) {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }() // it was only read
	runs, err := s.Runs(t.Context(), store.RunFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	journals = map[string][]tenon.Event{}
	for _, r := range runs {
		events, err := s.Events(t.Context(), r.ID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if r.Imported != nil {
			cut++
			continue
		}
		journals[r.ID] = events
	}
	return journals, cut
}

// TestRepair damages stores at random, some of them by whole pages, and repairs them. The result is consistent. Each
// journal in it is complete or marked as truncated, missing data is listed, and the damaged files are not changed.
func TestRepair(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "tenon.db")
	fullStore(t, path, nil)
	files := map[string][]byte{}
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + end)
		if err != nil {
			t.Fatal(err)
		}
		files[end] = b
	}
	random := rand.New(rand.NewPCG(25, 3))
	var want map[string][]tenon.Event
	for i := range 1 + times(t, 6) {
		copies := map[string][]byte{}
		for _, end := range []string{"", "-wal"} {
			b := bytes.Clone(files[end])
			if at := random.IntN(len(b)); i > 0 && end == []string{"", "-wal"}[i%2] {
				if b[at] ^= 1 << random.IntN(8); i%3 == 0 && end == "" { // a lost page
					page := 1 + at/storePageSize%(len(b)/storePageSize-1)
					clear(b[page*storePageSize : (page+1)*storePageSize])
				}
			}
			copies[end] = b
		}
		t.Run(fmt.Sprint("RP-25_", i), func(t *testing.T) {
			dir := t.TempDir()
			damaged := filepath.Join(dir, "tenon.db")
			for e, b := range copies {
				if err := os.WriteFile(damaged+e, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out := filepath.Join(dir, "repaired.db")
			r, err := Repair(t.Context(), damaged, out, nil)
			if err != nil {
				t.Fatal(err)
			}
			for e, b := range copies {
				if got, err := os.ReadFile(damaged + e); err != nil || !bytes.Equal(got, b) {
					t.Errorf("the damaged file tenon.db%s has changed, %v", e, err)
				}
			}
			if _, err := Repair(t.Context(), damaged, out, nil); tenon.ErrorCode(err) != tenon.CodeConflict {
				t.Errorf("the new file is overwritten: %v", err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, ".tenon-repair*")); err != nil || len(left) > 0 {
				t.Errorf("left: %v %v", left, err)
			}
			got, cut := journalsOf(t, out)
			if i == 0 {
				want = got
				if len(got) != 12 || cut > 0 || len(r.Lost) > 0 || len(r.Problems) > 0 {
					t.Errorf("a whole store: %d runs, %d cut, %+v", len(got), cut, r)
				}
				return
			}
			lost := strings.Join(r.Lost, "\n")
			for id, events := range got {
				whole := want[id]
				if strings.Contains(lost, "of the log") { // this message says that the last events may be missing
					whole = whole[:min(len(whole), len(events))]
				}
				if diff := cmp.Diff(whole, events); diff != "" {
					t.Errorf("run %s: %s", id, diff)
				}
			}
			if len(got) < 12 && lost == "" {
				t.Errorf("only %d runs are whole, and nothing is named", len(got))
			}
			t.Logf("%d runs whole, %d cut, problems %v, lost:\n%s", len(got), cut, r.Problems, lost)
		})
	}
}

// TestRepairLog damages a frame of the write-ahead log. If the checksum shows which bit was flipped, the bit is
// corrected and the repaired store has everything. Other damage is reported.
func TestRepairLog(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "tenon.db")
	fullStore(t, path, nil)
	want, _ := journalsOf(t, path)
	store, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const frame = walFrameSize + storePageSize
	for _, tt := range []struct {
		name  string
		flips []int // bytes of frame 3
		named bool
	}{
		{"RP-25_page_number", []int{0}, false},
		{"RP-25_commit", []int{4}, false},
		{"RP-25_upper_bit", []int{3}, true},
		{"RP-25_salt", []int{9}, false},
		{"RP-25_checksum", []int{17}, false},
		{"RP-25_first_word", []int{walFrameSize}, false},
		{"RP-25_last_word", []int{frame - 4}, false},
		{"RP-25_two_bits", []int{3, walFrameSize + 500}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			damaged, b := filepath.Join(dir, "tenon.db"), bytes.Clone(log)
			for _, at := range tt.flips {
				b[walHeaderSize+2*frame+at] ^= 4
			}
			for end, b := range map[string][]byte{"": store, "-wal": b} {
				if err := os.WriteFile(damaged+end, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out := filepath.Join(dir, "repaired.db")
			r, err := Repair(t.Context(), damaged, out, nil)
			if err != nil {
				t.Fatal(err)
			}
			if named := strings.Contains(strings.Join(r.Lost, "\n"), "frame 3 of the log"); named != tt.named {
				t.Errorf("frame 3 is named: %v; lost: %q, problems: %v", named, r.Lost, r.Problems)
			}
			got, _ := journalsOf(t, out)
			for id, events := range want {
				if !tt.named && !cmp.Equal(events, got[id]) {
					t.Errorf("run %s has %d events of %d; lost: %q, problems: %v", id, len(got[id]), len(events), r.Lost,
						r.Problems)
				}
			}
		})
	}
}

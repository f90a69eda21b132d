package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/internal/longtest"
)

// long starts a server with a host whose model makes one call in each of the given number of turns.
func long(t *testing.T, turns int) *httptest.Server {
	t.Helper()
	dir := t.TempDir()
	var steps strings.Builder
	steps.WriteString("steps:\n")
	for n := range turns {
		fmt.Fprintf(&steps, "  - {text: 'This is turn %d', calls: [{name: pass, arguments: {}}]}\n", n)
	}
	steps.WriteString("  - text: That is all.\n")
	file := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(file, []byte(steps.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &door{open: make(chan struct{})}
	close(d.open)
	h, err := host.Open(t.Context(), host.Config{Home: dir, Model: "script:" + file, Toolsets: map[string]tenon.Toolset{"house": d}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(httpapi.Handler(h))
	t.Cleanup(func() {
		s.Close()
		_ = h.Close() // says what was under way
	})
	return s
}

// beginLong starts a run and permits all its calls.
func beginLong(ctx context.Context, s *httptest.Server, turns int) (string, error) {
	body := fmt.Sprintf(`{"question":"tell me","yes":"the test","max_turns":%d}`, turns)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/api/v1/runs", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := s.Client().Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var r httpapi.StartResponse
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil || res.StatusCode != http.StatusAccepted {
		return "", fmt.Errorf("status %d: %w", res.StatusCode, err)
	}
	return r.Run.ID, nil
}

// followFor follows a run from the event after the given one. It disconnects after most stored events, or, if most is
// 0, at the end of the run. It returns the numbers of the events.
func followFor(ctx context.Context, s *httptest.Server, run string, after uint64, most int) (seqs []uint64, ended bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/runs/"+run+"/events", nil)
	if err != nil {
		return nil, false, err
	}
	if after > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(after, 10))
	}
	res, err := s.Client().Do(req)
	if err != nil {
		return nil, false, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNoContent {
		return nil, true, nil
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		id, ok := strings.CutPrefix(lines.Text(), "id: ")
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return seqs, false, err
		}
		if seqs = append(seqs, n); most > 0 && len(seqs) >= most {
			return seqs, false, nil
		}
	}
	return seqs, false, lines.Err()
}

// TestFollowersComeAgain lets many clients follow one run. Each of them disconnects and reconnects repeatedly, at
// different events. Each client must get each stored event once and in order.
func TestFollowersComeAgain(t *testing.T) {
	const turns = 40
	followers := longtest.Times(60, 200)
	s := long(t, turns)
	run, err := beginLong(t.Context(), s, turns+1)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]uint64, followers)
	var wg sync.WaitGroup
	for i := range followers {
		wg.Go(func() {
			for last, times := uint64(0), 0; ; times++ {
				seqs, ended, err := followFor(t.Context(), s, run, last, 1+(i+times)%23)
				if err != nil {
					t.Errorf("follower %d after %d: %v", i, last, err)
					return
				}
				for _, seq := range seqs {
					if seq != last+1 {
						t.Errorf("follower %d has %d after %d", i, seq, last)
						return
					}
					last = seq
				}
				if ended {
					got[i] = last
					return
				}
			}
		})
	}
	wg.Wait()
	for i, last := range got {
		if last != got[0] || last < turns*4 {
			t.Errorf("follower %d has %d events, the first one %d", i, last, got[0])
		}
	}
}

// TestManyRunsAtOnce starts and follows a thousand concurrent runs over HTTP. All of them end, and their streams are
// complete.
func TestManyRunsAtOnce(t *testing.T) {
	runs := longtest.Times(100, 1000)
	s := long(t, 2)
	s.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = runs
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			run, err := beginLong(t.Context(), s, 5)
			if err != nil {
				t.Errorf("run %d: %v", i, err)
				return
			}
			seqs, _, err := followFor(t.Context(), s, run, 0, 0)
			for n, seq := range seqs {
				if seq != uint64(n+1) {
					t.Errorf("run %d: event %d has the number %d", i, n, seq)
					break
				}
			}
			if err != nil || len(seqs) < 8 {
				t.Errorf("run %d had %d events: %v", i, len(seqs), err)
				return
			}
			if _, ended, err := followFor(t.Context(), s, run, seqs[len(seqs)-1], 0); err != nil || !ended {
				t.Errorf("run %d has not ended: %v", i, err)
			}
		})
	}
	wg.Wait()
}

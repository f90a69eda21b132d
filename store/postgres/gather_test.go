package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
)

// TestGather_PG_takeover checks the calls that share statements: the first is made at once, those that arrive meanwhile
// share the next one, and each gets its own answer or error.
func TestGather_PG_takeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := gatherStore(t)
		var mu sync.Mutex
		var sizes []int
		gate := make(chan struct{})
		g := &gather[int, string]{most: 1, many: func(_ context.Context, keys []int) ([]answer[string], error) {
			mu.Lock()
			sizes = append(sizes, len(keys))
			mu.Unlock()
			<-gate
			answers := make([]answer[string], len(keys))
			for i, k := range keys {
				answers[i].value = fmt.Sprint(k)
				if k == 7 {
					answers[i].err = errors.New("seven")
				}
			}
			return answers, nil
		}}
		var calls sync.WaitGroup
		ask := func(ctx context.Context, k int, want string, failed bool) {
			calls.Go(func() {
				got, err := g.get(ctx, s, k)
				if got != want || (err != nil) != failed {
					t.Errorf("call %d: %q, %v", k, got, err)
				}
			})
		}
		ask(t.Context(), 0, "0", false)
		synctest.Wait() // its statement is under way
		for k := 1; k <= maxGathered+1; k++ {
			want := fmt.Sprint(k)
			ask(t.Context(), k, want, k == 7)
		}
		gone, leave := context.WithCancel(t.Context())
		ask(gone, 1000, "", true)
		synctest.Wait()
		leave()
		synctest.Wait() // the caller has given up, so nobody asks for it
		close(gate)
		calls.Wait()
		mu.Lock()
		defer mu.Unlock()
		if got, want := fmt.Sprint(sizes), fmt.Sprint([]int{1, maxGathered, 1}); got != want {
			t.Errorf("calls of each statement: %s, want %s", got, want)
		}
		g.shut()
		if _, err := g.get(t.Context(), s, 1); tenon.ErrorCode(err) != tenon.CodeStore {
			t.Errorf("after the store was closed: %v", err)
		}
	})
}

// TestGather_PG_fails checks calls that share a statement that fails. A faulty key fails alone, a statement without an
// answer ends after patience, and one without callers ends at once.
func TestGather_PG_fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := gatherStore(t)
		gate := make(chan struct{})
		g := &gather[int, int]{most: 1, size: func(k int) int { return 1 + k/100*(maxGathered/8-1) },
			many: func(ctx context.Context, keys []int) ([]answer[int], error) {
				answers := make([]answer[int], len(keys))
				big := 0
				for i, k := range keys {
					answers[i].value = k
					switch {
					case k == 0:
						<-gate
					case k == 7:
						return nil, s.damaged("seven")
					case k == 8:
						<-ctx.Done()
						return nil, s.readError(ctx, ctx.Err())
					case k >= 100:
						big++
					}
				}
				if big > 8 {
					t.Errorf("%d big keys in a statement", big)
				}
				return answers, nil
			}}
		ask := func(ctx context.Context, keys ...int) func() []tenon.Code {
			codes := make([]tenon.Code, len(keys))
			var calls sync.WaitGroup
			for i, k := range keys {
				calls.Go(func() {
					_, err := g.get(ctx, s, k)
					codes[i] = tenon.ErrorCode(err)
				})
			}
			synctest.Wait()
			return func() []tenon.Code {
				calls.Wait()
				return codes
			}
		}
		first := ask(t.Context(), 0)
		rest := ask(t.Context(), 1, 7, 2, 100, 101, 102, 103, 104, 105, 106, 107, 108)
		close(gate)
		first()
		for i, code := range rest() {
			if want := map[int]tenon.Code{1: tenon.CodeStore}[i]; code != want {
				t.Errorf("call %d: %q, want %q", i, code, want)
			}
		}
		began := time.Now()
		if codes := ask(t.Context(), 8)(); codes[0] != tenon.CodeStore || time.Since(began) != patience {
			t.Errorf("no answer: %q after %s", codes[0], time.Since(began))
		}
		began = time.Now()
		gone, leave := context.WithCancel(t.Context())
		left := ask(gone, 8)
		after := ask(t.Context(), 1)
		leave()
		if l, a := left()[0], after()[0]; l != tenon.CodeCancelled || a != "" || time.Since(began) != 0 {
			t.Errorf("a caller that gives up: %q, and then %q, after %s", l, a, time.Since(began))
		}
	})
}

// gatherStore returns a store without a database.
func gatherStore(t *testing.T) *Store {
	conf, err := connConfig("host=nowhere", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(&Config{}, conf)
	t.Cleanup(func() {
		s.stop()
		s.owned.Wait()
	})
	return s
}

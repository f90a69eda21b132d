package host

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sealed"
)

// keyStore is a store that only knows keys of results, and counts how often it is asked.
type keyStore struct {
	store.Store
	keys  []string
	asked int
	err   error
	while func() // called during a question
}

func (s *keyStore) ResultKeys(_ context.Context, prefix string, _ time.Time, limit int) ([]string, error) {
	s.asked++
	var list []string
	for _, k := range s.keys {
		if strings.HasPrefix(k, prefix) && len(list) < limit {
			list = append(list, k)
		}
	}
	if s.while != nil {
		s.while()
	}
	return list, s.err
}

// TestParkedKeys looks for keys while calls are parked by this host and by others.
func TestParkedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &keyStore{keys: []string{parkedScope + "a", "other/b"}}
		h := &Host{store: sealed.New(s, nil, nil)}
		k := &h.parkedKeys
		check := func(what string, asked int, free ...string) {
			t.Helper()
			got := ""
			for _, key := range []string{"a", "b", "c"} {
				if k.isFree(t.Context(), h, key) {
					got += key
				}
			}
			if want := strings.Join(free, ""); got != want || s.asked != asked {
				t.Errorf("%s: free %q, want %q; the store was asked %d times, want %d", what, got, want, s.asked, asked)
			}
		}
		check("first", 1, "b", "c")
		k.add("b")
		check("parked here", 1, "c")
		s.keys = []string{parkedScope + "c"}
		check("parked elsewhere a moment ago", 1, "c")
		time.Sleep(parkedFresh)
		check("parked elsewhere", 2, "a", "b")

		time.Sleep(parkedFresh)
		s.while = func() { k.add("a") }
		k.isFree(t.Context(), h, "b")
		s.while = nil
		check("after a call was parked while the store was asked", 4, "a", "b")

		time.Sleep(parkedFresh)
		s.while = func() {
			if k.isFree(t.Context(), h, "b") {
				t.Error("a key counts as free although the store is being asked")
			}
		}
		k.isFree(t.Context(), h, "b")
		s.while = nil

		time.Sleep(parkedFresh)
		s.err = tenon.Errorf(tenon.CodeStore, "gone")
		check("without a store", 8)
		s.err = nil
		for range maxParkedKeys {
			s.keys = append(s.keys, parkedScope+"many")
		}
		check("too many", 11)
	})
}

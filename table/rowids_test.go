package table

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tenonhq/tenon/internal/longtest"
)

// Row ids are unique in any order, as in a set of whole texts.
func TestRowIDs(t *testing.T) {
	upTo := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("Row%d", i))
		}
		return list
	}
	mixed := append(upTo(300), upTo(300)...)
	for i := range 300 {
		mixed = append(mixed, fmt.Sprintf("Row%d_dup", i), fmt.Sprintf("Row%d_dup_dup", 299-i), fmt.Sprintf("Row0%d", i), fmt.Sprintf("Row+%d", i), "Row", "Row_dup", "", fmt.Sprintf("x%d", i))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	for _, c := range []struct {
		name string
		ids  []string
	}{
		{"in order, three times", append(append(upTo(1000), upTo(1000)...), upTo(200)...)},
		{"before their word is there", append([]string{"Row70", "Row70_dup", "Row64"}, append(upTo(100), upTo(100)...)...)},
		{"suffixes before there are any", []string{"Row0_dup_dup", "Row0_dup", "Row0", "Row0", "Row0", "Row0"}},
		{"numbers that are none", []string{"Row01", "Row1", "Row+1", "Row-1", "Row", "Row1x", "Row999999999", "Row9999999999", "Row18446744073709551617", "Row1", "Row01", "Row"}},
		{"shuffled", mixed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, seen := newRowIDs(), map[string]bool{}
			for i, id := range c.ids {
				want := id
				for seen[want] {
					want += "_dup"
				}
				seen[want] = true
				if got, ok := s.unique(id); got != want || !ok {
					t.Fatalf("id %d, '%s': got '%s', want '%s'", i, id, got, want)
				}
			}
		})
	}
}

// Default row ids take bits, not hashes.
func TestRowIDsTakeBits(t *testing.T) {
	s := newRowIDs()
	for range 3 {
		for i := range 10_000 {
			s.unique(fmt.Sprintf("Row%d", i))
		}
	}
	if len(s.hashes) > 0 || len(s.counted) != 3 || len(s.counted[2]) != 157 {
		t.Errorf("%d hashes, %d lists of bits", len(s.hashes), len(s.counted))
	}
}

// Too many equal row ids are refused before the suffixes take too long.
func TestRowIDsOfOneName(t *testing.T) {
	longtest.Skip(t)
	for _, id := range []string{"x", "Row0"} {
		s := newRowIDs()
		for n := range maxDups + 1 {
			if _, ok := s.unique(id); ok != (n < maxDups) {
				t.Fatalf("'%s', row %d: %v", id, n, ok)
			}
		}
	}
}

// TestRowIDCollision checks that different ids stay different when one half of their hashes is the same.
func TestRowIDCollision(t *testing.T) {
	for half := range 2 {
		s := newRowIDs()
		hash := s.hash
		s.hash = func(h int, id string) uint64 {
			if h == half {
				return 1
			}
			return hash(h, id)
		}
		for _, id := range []string{"a", "b", "c"} {
			if got, ok := s.unique(id); got != id || !ok {
				t.Errorf("%s became %s", id, got)
			}
		}
		if got, _ := s.unique("b"); got != "b"+dupSuffix {
			t.Errorf("the second b became %s", got)
		}
	}
}

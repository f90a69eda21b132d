package table

import (
	"hash/maphash"
	"strconv"
	"strings"
)

// dupSuffix makes equal row ids unique.
const dupSuffix = "_dup"

// rowIDs is the set of row ids of a table that is being written. A default id (Row0, Row1 and so on) takes one bit. Any
// other id takes a 128-bit hash. Two ids practically never have the same hash.
type rowIDs struct {
	// counted records the ids RowN with k suffixes: bit N of counted[k] is set. An id that would enlarge a bit set by
	// more than one word is hashed instead, so that ids with large numbers do not waste memory.
	counted [][]uint64
	hashes  map[[2]uint64]struct{}
	hash    func(half int, id string) uint64 // the two halves have different seeds
}

func newRowIDs() *rowIDs {
	seeds := [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	return &rowIDs{hashes: map[[2]uint64]struct{}{}, hash: func(half int, id string) uint64 {
		return maphash.String(seeds[half], id)
	}}
}

// maxDups bounds the number of suffixes of an id, because each number is tried in turn and all suffixes are written.
const maxDups = 1000

// unique adds an id, with as many suffixes as are necessary to make it unique. It returns false if the id would need
// more than maxDups suffixes.
func (s *rowIDs) unique(id string) (string, bool) {
	for range maxDups {
		if s.add(id) {
			return id, true
		}
		id += dupSuffix
	}
	return "", false
}

// add adds an id and reports whether it is new.
func (s *rowIDs) add(id string) bool {
	n, dups, ok := countedID(id)
	if !ok || dups > len(s.counted) || dups < len(s.counted) && n/64 > len(s.counted[dups]) ||
		dups == len(s.counted) && n >= 64 {
		return s.addHash(id)
	}
	if dups == len(s.counted) {
		s.counted = append(s.counted, nil)
	}
	word, bit := n/64, uint64(1)<<(n%64)
	if word < len(s.counted[dups]) && s.counted[dups][word]&bit != 0 {
		return false
	}
	if len(s.hashes) > 0 { // the id may have been hashed before the set had its word
		if _, ok := s.hashes[s.sum(id)]; ok {
			return false
		}
	}
	if word == len(s.counted[dups]) {
		s.counted[dups] = append(s.counted[dups], 0)
	}
	s.counted[dups][word] |= bit
	return true
}

func (s *rowIDs) sum(id string) [2]uint64 { return [2]uint64{s.hash(0, id), s.hash(1, id)} }

func (s *rowIDs) addHash(id string) bool {
	h := s.sum(id)
	if _, ok := s.hashes[h]; ok {
		return false
	}
	s.hashes[h] = struct{}{}
	return true
}

// countedID splits an id RowN with suffixes into N and the number of suffixes.
func countedID(id string) (n, dups int, ok bool) {
	digits, ok := strings.CutPrefix(id, "Row")
	if !ok {
		return 0, 0, false
	}
	for strings.HasSuffix(digits, dupSuffix) {
		digits = digits[:len(digits)-len(dupSuffix)]
		dups++
	}
	const most = 9 // digits: the number is below 2^31
	if len(digits) == 0 || len(digits) > most || digits[0] < '0' || digits[0] > '9' {
		return 0, 0, false // +1 is not 1
	}
	if digits[0] == '0' && len(digits) > 1 {
		return 0, 0, false // nor is 01
	}
	n, err := strconv.Atoi(digits)
	return n, dups, err == nil
}

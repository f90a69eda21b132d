package table

import (
	"hash/maphash"
	"strconv"
	"strings"
)

// dupSuffix tells equal row ids apart.
const dupSuffix = "_dup"

// rowIDs is the row ids of a table that is being made. Those that tables have unless
// somebody says otherwise, Row0, Row1 and so on, take a bit each; of all others a hash is
// kept.
type rowIDs struct {
	// counted has the ids RowN by how many suffixes they have, a bit for each N. It only
	// grows by the next word, so that no id takes more than its hash would.
	counted [][]uint64
	hashes  map[uint64]struct{}
	seed    maphash.Seed
}

func newRowIDs() *rowIDs {
	return &rowIDs{hashes: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
}

// maxDups is how many suffixes an id may need: each is tried, and all of them are
// written.
const maxDups = 1000

// unique adds an id, with as many suffixes as it takes to be a new one. It reports
// whether that many are allowed.
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
	if !ok || dups > len(s.counted) || dups < len(s.counted) && n/64 > len(s.counted[dups]) || dups == len(s.counted) && n >= 64 {
		return s.addHash(id)
	}
	if dups == len(s.counted) {
		s.counted = append(s.counted, nil)
	}
	word, bit := n/64, uint64(1)<<(n%64)
	if word < len(s.counted[dups]) && s.counted[dups][word]&bit != 0 {
		return false
	}
	if len(s.hashes) > 0 { // it may have come when its word was not there yet
		if _, ok := s.hashes[maphash.String(s.seed, id)]; ok {
			return false
		}
	}
	if word == len(s.counted[dups]) {
		s.counted[dups] = append(s.counted[dups], 0)
	}
	s.counted[dups][word] |= bit
	return true
}

func (s *rowIDs) addHash(id string) bool {
	h := maphash.String(s.seed, id)
	if _, ok := s.hashes[h]; ok {
		return false
	}
	s.hashes[h] = struct{}{}
	return true
}

// countedID takes an id RowN with its suffixes apart.
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
	if len(digits) == 0 || len(digits) > most || digits[0] < '0' || digits[0] > '9' || digits[0] == '0' && len(digits) > 1 {
		return 0, 0, false // +1 and 01 are other ids than 1
	}
	n, err := strconv.Atoi(digits)
	return n, dups, err == nil
}

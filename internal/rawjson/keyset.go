package rawjson

import (
	"hash/maphash"
	"sync"
)

// fewKeys is the number of keys up to which the keys of an object are compared one by one.
const fewKeys = 16

// keySet contains the keys of an object and of all enclosing objects. Its memory is reused.
type keySet struct {
	keys  [][]byte // of all open objects, from the outermost to the innermost
	slots []uint32 // hash tables of the objects with many keys; a slot is an index into keys, plus 1
	seed  maphash.Seed
}

// level is an open object. Its fields are the indexes at which its keys and its hash table start. The table is empty
// while there are few keys.
type level struct{ keys, slots int }

var keySets = sync.Pool{New: func() any {
	return &keySet{keys: make([][]byte, 0, 4*fewKeys), seed: maphash.MakeSeed()}
}}

func newKeySet() *keySet { return keySets.Get().(*keySet) }

// free drops the references to the checked value, and returns the memory for reuse.
func (s *keySet) free() {
	if cap(s.keys) > 4096 {
		s.keys = nil
	}
	if cap(s.slots) > 4*4096 {
		s.slots = nil
	}
	clear(s.keys)
	s.keys, s.slots = s.keys[:0], s.slots[:0]
	keySets.Put(s)
}

func (s *keySet) enter() level { return level{len(s.keys), len(s.slots)} }

// leave ends an object and removes its keys.
func (s *keySet) leave(l level) {
	clear(s.keys[l.keys:])
	s.keys, s.slots = s.keys[:l.keys], s.slots[:l.slots]
}

// add adds a key to the innermost object and reports whether the object already has it.
func (s *keySet) add(l *level, key []byte) bool {
	mine := s.keys[l.keys:]
	if len(mine) < fewKeys {
		for _, k := range mine {
			if equalKey(k, key) {
				return true
			}
		}
		s.keys = append(s.keys, key)
		return false
	}
	if table := len(s.slots) - l.slots; 2*len(mine) >= table {
		s.grow(l, max(4*fewKeys, 2*table))
	}
	at, found := s.find(l, key)
	if found {
		return true
	}
	s.keys = append(s.keys, key)
	s.slots[at] = uint32(len(s.keys) - l.keys)
	return false
}

// grow gives the innermost object a hash table of n slots, a power of two. The table is the last one in slots.
func (s *keySet) grow(l *level, n int) {
	clear(s.slots[l.slots:])
	for s.slots = s.slots[:l.slots]; len(s.slots) < l.slots+n; {
		s.slots = append(s.slots, 0)
	}
	for i, k := range s.keys[l.keys:] {
		at, _ := s.find(l, k)
		s.slots[at] = uint32(i + 1)
	}
}

// find returns the slot of a key, or the free slot where it belongs.
func (s *keySet) find(l *level, key []byte) (at int, found bool) {
	table, keys := s.slots[l.slots:], s.keys[l.keys:]
	mask := uint64(len(table) - 1)
	for h := maphash.Bytes(s.seed, key) & mask; ; h = (h + 1) & mask {
		i := table[h]
		if i == 0 {
			return l.slots + int(h), false
		}
		if equalKey(keys[i-1], key) {
			return l.slots + int(h), true
		}
	}
}

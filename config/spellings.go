package config

import (
	"slices"
	"sync"

	"github.com/tenonhq/tenon/config/tree"
)

const (
	maxSpellings = 1000
	maxSpelled   = 16 << 10 // bytes of one spelling
)

// Spellings remembers how replaced values were written, so that a value that is changed back is written as before:
// with its quotes, line breaks and comments. The zero value is ready to use. Spellings is safe for concurrent use; a
// nil *Spellings remembers nothing.
type Spellings struct {
	mu   sync.Mutex
	list []spelling // newest last
}

// spelling is a former value of a place, with its text.
type spelling struct {
	place string
	value *tree.Node
	spelled
}

// spelled is the text of a value.
type spelled struct {
	text   string
	after  string // the line before the value
	result string // for a collection: its text after the change; if it differs later, the comments may have changed
}

// remember records the text of a value that is about to be replaced.
func (s *Spellings) remember(place string, value *tree.Node, as spelled) {
	if s == nil || value == nil || len(as.text)+len(as.after)+len(as.result) > maxSpelled {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(o spelling) bool { return o.place == place && sameValue(o.value, value) })
	if len(s.list) >= maxSpellings {
		s.list = slices.Delete(s.list, 0, 1)
	}
	s.list = append(s.list, spelling{place, value, as})
}

// texts returns the remembered texts of a value at a place.
func (s *Spellings) texts(place string, value *tree.Node) (list []spelled) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range slices.Backward(s.list) {
		if o.place == place && sameValue(o.value, value) {
			list = append(list, o.spelled)
		}
	}
	return list
}

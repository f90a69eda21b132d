package rawjson

import (
	"bytes"
	"unicode/utf8"
)

// fewKeys is up to how many keys of an object are compared one by one.
const fewKeys = 16

// level is an object or an array that is open.
type level struct {
	from int                 // where its keys begin
	seen map[string]struct{} // its keys, where they are many
}

// Twice returns the first key that stands twice in one object, at any depth of valid
// JSON. Keys are the same if they are after decoding.
func Twice(raw []byte) (key string, found bool) {
	var levels []level
	var keys [][]byte // of all levels with few of them
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '{', '[':
			levels = append(levels, level{from: len(keys)})
			i++
		case '}', ']':
			if n := len(levels); n > 0 {
				keys = keys[:levels[n-1].from]
				levels = levels[:n-1]
			}
			i++
		case '"':
			end := skipString(raw, i)
			body := raw[i+1 : max(end-1, i+1)]
			i = space(raw, end)
			if i >= len(raw) || raw[i] != ':' || len(levels) == 0 {
				continue // a value
			}
			if bytes.IndexByte(body, '\\') >= 0 || !utf8.Valid(body) {
				body = []byte(DecodeBody(body))
			}
			l := &levels[len(levels)-1]
			if l.add(&keys, body) {
				return string(body), true
			}
		default:
			i++
		}
	}
	return "", false
}

// add adds a key and reports whether it was there.
func (l *level) add(keys *[][]byte, key []byte) bool {
	mine := (*keys)[l.from:]
	if l.seen == nil && len(mine) < fewKeys {
		for _, k := range mine {
			if bytes.Equal(k, key) {
				return true
			}
		}
		*keys = append(*keys, key)
		return false
	}
	if l.seen == nil {
		l.seen = make(map[string]struct{}, 4*fewKeys)
		for _, k := range mine {
			l.seen[string(k)] = struct{}{}
		}
	}
	if _, ok := l.seen[string(key)]; ok {
		return true
	}
	l.seen[string(key)] = struct{}{}
	return false
}

package rawjson

import (
	"bytes"
	"iter"
	"unicode/utf8"
)

// Fields yields the members of a JSON object: the key without its quotes (escapes in it are not resolved) and
// the raw value. For other values it yields nothing.
func Fields(raw []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, val []byte) bool) {
		i := space(raw, 0)
		if i >= len(raw) || raw[i] != '{' {
			return
		}
		i = space(raw, i+1)
		for i < len(raw) && raw[i] == '"' {
			end := skipString(raw, i)
			key := raw[i+1 : max(end-1, i+1)]
			i = space(raw, end)
			if i >= len(raw) || raw[i] != ':' {
				return
			}
			i = space(raw, i+1)
			end = skip(raw, i)
			if !yield(key, raw[i:end]) {
				return
			}
			i = space(raw, end)
			if i >= len(raw) || raw[i] != ',' {
				return
			}
			i = space(raw, i+1)
		}
	}
}

// Members yields the members of a JSON object like [Fields], but with decoded keys. It yields each of several members
// with the same key.
func Members(raw []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, val []byte) bool) {
		for key, val := range Fields(raw) {
			if !yield(decodedKey(key), val) {
				return
			}
		}
	}
}

// decodedKey resolves the escapes of a key. It returns most keys unchanged.
func decodedKey(key []byte) []byte {
	for _, c := range key {
		if c != '\\' && c < utf8.RuneSelf {
			continue
		}
		if bytes.IndexByte(key, '\\') >= 0 || !utf8.Valid(key) {
			return []byte(DecodeBody(key))
		}
		break
	}
	return key
}

// Elements yields the raw elements of a JSON array. For other values it yields nothing.
func Elements(raw []byte) iter.Seq[[]byte] {
	return func(yield func(val []byte) bool) { elements(raw, space(raw, 0), yield) }
}

// elements walks over the array that starts at i. It returns the index after the array, or -1 if yield stopped it
// or the array is not well-formed.
func elements(raw []byte, i int, yield func(val []byte) bool) int {
	if i >= len(raw) || raw[i] != '[' {
		return -1
	}
	i = space(raw, i+1)
	for i < len(raw) && raw[i] != ']' {
		end := skip(raw, i)
		if end == i || !yield(raw[i:end]) {
			return -1
		}
		i = space(raw, end)
		if i < len(raw) && raw[i] == ',' {
			i = space(raw, i+1)
		} else if i < len(raw) && raw[i] != ']' {
			return -1
		}
	}
	return i + 1
}

// List walks once over an object that mostly consists of one long array. The array is the value of key. List calls
// element with each raw element of the array, and stops if element returns false. It calls member with each other key,
// decoded, and its raw value. It reports whether the value of key is an array.
func List(raw []byte, key string, element func(val []byte) bool, member func(key, val []byte)) (found bool) {
	i := space(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return false
	}
	for i = space(raw, i+1); i < len(raw) && raw[i] == '"'; {
		end := skipString(raw, i)
		k := decodedKey(raw[i+1 : max(end-1, i+1)])
		if i = space(raw, end); i >= len(raw) || raw[i] != ':' {
			return found
		}
		i = space(raw, i+1)
		if i < len(raw) && raw[i] == '[' && string(k) == key {
			found = true
			if end = elements(raw, i, element); end < 0 {
				return found
			}
		} else {
			end = skip(raw, i)
			member(k, raw[i:end])
		}
		if i = space(raw, end); i >= len(raw) || raw[i] != ',' {
			return found
		}
		i = space(raw, i+1)
	}
	return found
}

// Field returns the raw value of the first member of a JSON object with the name, or nil.
func Field(raw []byte, name string) []byte {
	for k, v := range Fields(raw) {
		if string(k) == name {
			return v
		}
		// An escape is longer than the text that it encodes.
		if len(k) > len(name) && bytes.IndexByte(k, '\\') >= 0 && DecodeBody(k) == name {
			return v
		}
	}
	return nil
}

// Text is a string somewhere in a JSON value: a key, or a value.
type Text struct {
	From, To int // offsets of the opening quote, and after the closing one
	Depth    int // number of enclosing objects and arrays
	Value    int // for a key, the offset of its member's value; otherwise -1
}

// Strings yields all strings in a JSON value, keys and values at any depth, in the order of the input.
func Strings(raw []byte) iter.Seq[Text] {
	return func(yield func(Text) bool) {
		depth := 0
		for i := 0; i < len(raw); {
			switch nesting[raw[i]] {
			case 0:
				i++
			case 1:
				depth++
				i++
			case -1:
				depth--
				i++
			default:
				t := Text{From: i, To: skipString(raw, i), Depth: depth, Value: -1}
				if i = space(raw, t.To); i < len(raw) && raw[i] == ':' {
					i = space(raw, i+1)
					t.Value = i
				}
				if !yield(t) {
					return
				}
			}
		}
	}
}

// Key returns the decoded text of a raw key with its quotes. It allocates only for keys with escapes.
func Key(raw []byte) []byte { return decodedKey(StringBody(raw)) }

// End returns the offset after the value that starts at an offset. In truncated JSON, it returns at most the length of
// raw.
func End(raw []byte, at int) int { return skip(raw, at) }

// IsObject reports whether a raw value is an object.
func IsObject(raw []byte) bool { return startsWith(raw, '{') }

// IsArray reports whether a raw value is an array.
func IsArray(raw []byte) bool { return startsWith(raw, '[') }

func startsWith(raw []byte, c byte) bool {
	i := space(raw, 0)
	return i < len(raw) && raw[i] == c
}

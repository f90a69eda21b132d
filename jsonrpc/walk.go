package jsonrpc

// Fields calls f with each key and raw value of an object that has been checked
// by [Parse] or [Valid], until f returns false. It reports false where raw is no
// object.
func Fields(raw []byte, f func(key, value []byte) bool) bool {
	s := newScanner(raw)
	defer s.free()
	i := s.space(0)
	if i >= len(raw) || raw[i] != '{' {
		return false
	}
	for i = s.space(i + 1); i < len(raw) && raw[i] == '"'; {
		key, at, ok := s.member(i)
		if !ok {
			return false
		}
		end := s.skip(at)
		if end <= at {
			return false
		}
		if !f(key, raw[at:end]) {
			return true
		}
		i = s.comma(end)
	}
	return true
}

// Elements calls f with each raw element of an array that has been checked,
// until f returns false. It reports false where raw is no array.
func Elements(raw []byte, f func(value []byte) bool) bool {
	s := newScanner(raw)
	defer s.free()
	i := s.space(0)
	if i >= len(raw) || raw[i] != '[' {
		return false
	}
	_, _, ok := s.elements(i, f)
	return ok
}

// List steps once over a checked object that is mostly one long array: it calls element
// with each raw element of the array under the key, until that returns false, which ends
// the whole, and member with each other key and its raw value. It reports whether there
// is such an array.
func List(raw []byte, key string, element func(value []byte) bool, member func(key, value []byte)) bool {
	s := newScanner(raw)
	defer s.free()
	i := s.space(0)
	if i >= len(raw) || raw[i] != '{' {
		return false
	}
	found := false
	for i = s.space(i + 1); i < len(raw) && raw[i] == '"'; {
		k, at, ok := s.member(i)
		if !ok {
			return false
		}
		var end int
		if string(k) == key && at < len(raw) && raw[at] == '[' {
			var stopped bool
			if end, stopped, found = s.elements(at, element); stopped || !found {
				return found
			}
		} else if end = s.skip(at); end <= at {
			return false
		} else {
			member(k, raw[at:end])
		}
		i = s.comma(end)
	}
	return found
}

// Field returns the raw value of one key of a checked object, nil if absent.
func Field(raw []byte, key string) []byte {
	var found []byte
	Fields(raw, func(k, v []byte) bool {
		if string(k) == key {
			found = v
		}
		return found == nil
	})
	return found
}

// member returns the key that begins at i, and where its value does.
func (s *scanner) member(i int) (key []byte, at int, ok bool) {
	end, err := s.str(i)
	if err != nil {
		return nil, i, false
	}
	return s.key(span{i + 1, end - 1}), s.space(s.space(end) + 1), true
}

// comma returns where what follows a value begins.
func (s *scanner) comma(end int) int {
	i := s.space(end)
	if i < len(s.b) && s.b[i] == ',' {
		i = s.space(i + 1)
	}
	return i
}

// elements steps over the array that begins at i, to behind its end or to where f
// stopped it.
func (s *scanner) elements(i int, f func(value []byte) bool) (end int, stopped, ok bool) {
	for i = s.space(i + 1); i < len(s.b) && s.b[i] != ']'; {
		end := s.skip(i)
		if end <= i {
			return i, false, false
		}
		if !f(s.b[i:end]) {
			return end, true, true
		}
		i = s.comma(end)
	}
	return i + 1, false, true
}

// skip finds the end of a value that is known to be well-formed; what is not
// gives some end or i itself, never a panic.
func (s *scanner) skip(i int) int {
	b, depth := s.b, 0
	for i < len(b) {
		switch b[i] {
		case '"':
			end, err := s.str(i)
			if err != nil {
				return len(b)
			}
			i = end
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ' ', '\t', '\n', '\r':
			if depth <= 0 {
				return i
			}
			i++
			continue
		default:
			i++
			if depth > 0 {
				continue
			}
			for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return i
}

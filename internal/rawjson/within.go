package rawjson

// Within reports whether raw is one JSON value (RFC 8259, read as encoding/json reads it:
// a text may hold bytes that are not UTF-8) of at most so many values, itself and all keys'
// values and elements in it, none deeper than deepest; the value itself is at depth 0.
// It is for what nobody has checked yet, and stops at the first thing that is wrong.
func Within(raw []byte, values, deepest int) bool {
	c := checker{b: raw, left: values, deepest: deepest}
	i, ok := c.value(space(raw, 0), 0)
	return ok && space(raw, i) == len(raw)
}

type checker struct {
	b             []byte
	left, deepest int
}

// value returns the index behind the value that begins at i.
func (c *checker) value(i, depth int) (int, bool) {
	if c.left--; c.left < 0 || depth > c.deepest || i >= len(c.b) {
		return i, false
	}
	switch b := c.b[i]; {
	case b == '"':
		return c.text(i)
	case b == '{':
		return c.members(i, depth)
	case b == '[':
		return c.elements(i, depth)
	case b == '-' || b >= '0' && b <= '9':
		return c.number(i)
	case b == 't':
		return c.word(i, "true")
	case b == 'f':
		return c.word(i, "false")
	case b == 'n':
		return c.word(i, "null")
	}
	return i, false
}

func (c *checker) members(i, depth int) (int, bool) {
	if i = space(c.b, i+1); c.at(i) == '}' {
		return i + 1, true
	}
	for {
		if c.at(i) != '"' {
			return i, false
		}
		end, ok := c.text(i)
		if i = space(c.b, end); !ok || c.at(i) != ':' {
			return i, false
		}
		if end, ok = c.value(space(c.b, i+1), depth+1); !ok {
			return end, false
		}
		switch i = space(c.b, end); c.at(i) {
		case ',':
			i = space(c.b, i+1)
		case '}':
			return i + 1, true
		default:
			return i, false
		}
	}
}

func (c *checker) elements(i, depth int) (int, bool) {
	if i = space(c.b, i+1); c.at(i) == ']' {
		return i + 1, true
	}
	for {
		end, ok := c.value(i, depth+1)
		if !ok {
			return end, false
		}
		switch i = space(c.b, end); c.at(i) {
		case ',':
			i = space(c.b, i+1)
		case ']':
			return i + 1, true
		default:
			return i, false
		}
	}
}

// at returns a byte; 0, which no JSON has outside of texts, where there is none.
func (c *checker) at(i int) byte {
	if i < len(c.b) {
		return c.b[i]
	}
	return 0
}

func (c *checker) word(i int, w string) (int, bool) {
	end := i + len(w)
	return end, end <= len(c.b) && string(c.b[i:end]) == w
}

// text steps over a string, whose quote is at i.
func (c *checker) text(i int) (int, bool) {
	for i++; i < len(c.b); i++ {
		switch b := c.b[i]; {
		case b == '"':
			return i + 1, true
		case b < ' ':
			return i, false
		case b == '\\':
			i++
			switch c.at(i) {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if i++; !isHex(c.at(i)) {
						return i, false
					}
				}
			default:
				return i, false
			}
		}
	}
	return i, false
}

func isHex(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
}

func (c *checker) number(i int) (int, bool) {
	if c.at(i) == '-' {
		i++
	}
	if c.at(i) == '0' {
		i++
	} else if end := c.digits(i); end > i {
		i = end
	} else {
		return i, false
	}
	if c.at(i) == '.' {
		end := c.digits(i + 1)
		if end == i+1 {
			return i, false
		}
		i = end
	}
	if b := c.at(i); b == 'e' || b == 'E' {
		if i++; c.at(i) == '+' || c.at(i) == '-' {
			i++
		}
		end := c.digits(i)
		if end == i {
			return i, false
		}
		i = end
	}
	return i, true
}

func (c *checker) digits(i int) int {
	for b := c.at(i); b >= '0' && b <= '9'; b = c.at(i) {
		i++
	}
	return i
}

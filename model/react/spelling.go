package react

import "bytes"

// bold surrounds bold text in Markdown.
const bold = "**"

// maxBlanks bounds the white space before a colon.
const maxBlanks = 8

// spelled returns the length of a marker at the beginning of b, or 0 if there is none. words is the marker without its
// colon. The case of letters does not matter, _ may replace a space, the marker may be bold with or without the colon,
// and white space may precede the colon. If more is true, b is too short to decide. If more is true and n is not 0,
// there is a marker, and only the end of bold text may follow.
func spelled(b []byte, words string) (n int, more bool) {
	opened, more := leads(b, bold)
	if more {
		return 0, true
	}
	if opened {
		n = len(bold)
	}
	for i := range len(words) {
		if n == len(b) {
			return 0, true
		}
		c := b[n]
		if c == '_' && words[i] == ' ' {
			c = ' '
		}
		if lower(c) != lower(words[i]) {
			return 0, false
		}
		n++
	}
	closed := !opened
	for blanks := 0; ; {
		rest := b[n:]
		switch ends, more := leads(rest, bold); {
		case len(rest) == 0, !closed && more:
			return 0, true
		case !closed && ends:
			n, closed = n+len(bold), true
		case (rest[0] == ' ' || rest[0] == '\t') && blanks < maxBlanks:
			n, blanks = n+1, blanks+1
		case rest[0] != ':':
			return 0, false
		case closed:
			return n + 1, false
		default:
			n++
			ends, more := leads(b[n:], bold)
			if ends {
				n += len(bold)
			}
			return n, more
		}
	}
}

// leads reports whether b begins with a prefix. If more is true, b is too short to decide.
func leads(b []byte, prefix string) (yes, more bool) {
	return bytes.HasPrefix(b, []byte(prefix)), len(b) < len(prefix) && bytes.HasPrefix([]byte(prefix), b)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

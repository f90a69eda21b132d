package record

import (
	"bytes"
	"strings"

	"github.com/tenonhq/tenon"
)

// maskJSON returns JSON with its secrets masked. A number that contains a secret becomes a text, so that the result is
// JSON, too.
func maskJSON(r *tenon.Redactor, js []byte) []byte {
	masked := r.Bytes(js)
	if len(masked) == len(js) && (len(js) == 0 || &masked[0] == &js[0]) {
		return js
	}
	out := make([]byte, 0, len(masked)+16)
	for i := 0; i < len(masked); {
		switch c := masked[i]; {
		case c == '"':
			end := endOfText(masked, i)
			out = append(out, masked[i:end]...)
			i = end
		case isNumeric(c):
			end := i
			for end < len(masked) && isNumeric(masked[end]) {
				end++
			}
			if bytes.IndexByte(masked[i:end], '*') >= 0 {
				out = append(out, '"')
				out = append(out, mask...)
				out = append(out, '"')
			} else {
				out = append(out, masked[i:end]...)
			}
			i = end
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// isNumeric reports whether a byte outside of texts belongs to a number, or to the mask of a part of one. The letters
// of true, false and null do not matter, because no mask is next to them.
func isNumeric(c byte) bool { return c >= '0' && c <= '9' || strings.IndexByte("+-.eE*", c) >= 0 }

// endOfText returns the position after the text that begins at i.
func endOfText(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

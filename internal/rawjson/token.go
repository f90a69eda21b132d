package rawjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Masks for words of eight bytes.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// quoteOrSlash marks the bytes of a word that are a quote or a backslash. Only the lowest mark is exact.
func quoteOrSlash(w uint64) uint64 {
	quote, slash := w^ones*'"', w^ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// special marks the bytes of a word that are a quote, a backslash or below 0x20. Only the lowest mark is exact.
func special(w uint64) uint64 {
	quote, slash := w^ones*'"', w^ones*'\\'
	return ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// space returns the index of the first byte from i on that is not white space.
func space(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index after the string that starts at i. Short strings are scanned by words; the search
// of package bytes is faster for long ones.
func skipString(b []byte, i int) int {
	i++
	for long := i + 32; i+8 <= len(b) && i < long; {
		hit := quoteOrSlash(binary.LittleEndian.Uint64(b[i:]))
		if hit == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(hit) >> 3
		if b[i] == '"' {
			return i + 1
		}
		i += 2
	}
	for {
		q := bytes.IndexByte(b[min(i, len(b)):], '"')
		if q < 0 {
			return len(b)
		}
		q += i
		slashes := 0
		for j := q - 1; j >= i && b[j] == '\\'; j-- {
			slashes++
		}
		i = q + 1
		if slashes%2 == 0 {
			return i
		}
		// An escaped quote. The bytes before i are complete escapes, so counting from here is correct.
	}
}

// nesting describes the effect of a byte outside of strings: 1 opens an object or array, -1 closes one, and 2 begins a
// string.
var nesting = [256]int8{'{': 1, '[': 1, '}': -1, ']': -1, '"': 2}

// skip returns the index after the value that starts at i. For anything but a value it returns i.
func skip(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch nesting[b[i]] {
			case 0:
			case 1:
				depth++
			case -1:
				if depth--; depth == 0 {
					return i + 1
				}
			default:
				i = skipString(b, i)
				continue
			}
			i++
		}
		return i
	default:
		for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
			i++
		}
		return i
	}
}

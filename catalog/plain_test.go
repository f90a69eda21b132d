package catalog

import (
	"bytes"
	"testing"
)

// TestIsASCII puts a byte of each value at each position of short texts, because IsASCII reads eight bytes at a time.
func TestIsASCII(t *testing.T) {
	for n := range 20 {
		for at := range n {
			for c := range 256 {
				text := bytes.Repeat([]byte{0x7e}, n)
				text[at] = byte(c)
				if got := isASCII(text); got != (c < 0x7f) {
					t.Fatalf("%q: %v", text, got)
				}
			}
		}
	}
}

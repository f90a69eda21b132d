package catalog

import (
	"bytes"
	"testing"
)

// TestIsASCII tries each byte at each place of texts of all lengths that are looked at
// eight bytes at a time.
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

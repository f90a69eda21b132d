package tenon_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// BenchmarkRedactor masks a result of 16 KiB without a secret, with ten secrets in use.
func BenchmarkRedactor(b *testing.B) {
	var r tenon.Redactor
	for i := range 10 {
		r.Add(tenon.NewSecret(fmt.Sprintf("sk-%02d/p@ss+word-äöü", i)))
	}
	for name, line := range map[string]string{
		"text": "The quick brown fox jumps over the lazy dog. ",
		"json": `{\"name\":\"fox\",\"url\":\"https://example.com/a%20b\"},`,
	} {
		b.Run(name, func(b *testing.B) {
			text := []byte(strings.Repeat(line, 16<<10/len(line)))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r.Bytes(text)
			}
		})
	}
}

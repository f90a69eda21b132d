package mcp

import (
	"strings"
	"testing"
)

// BenchmarkParseResult parses the results of tool calls.
func BenchmarkParseResult(b *testing.B) {
	for _, r := range []struct{ name, text string }{
		{"small", `{"content":[{"type":"text","text":"ok"}],"isError":false}`},
		{"text", `{"content":[{"type":"text","text":"` + strings.Repeat("It rains in London, and the wind blows. ", 250) + `"}]}`},
		{"structured", `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1,"rows":[{"a":1},{"a":2}]},"_meta":{"x":1}}`},
	} {
		b.Run(r.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseResult([]byte(r.text), true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

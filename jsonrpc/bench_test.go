package jsonrpc

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkParse splits typical messages into their envelopes.
func BenchmarkParse(b *testing.B) {
	text := strings.Repeat("It rains in London, and the wind blows. ", 250)
	var list strings.Builder
	for i := range 100 {
		fmt.Fprintf(&list, `{"name":"tool_%d","description":"Reads file number %d.","inputSchema":{"type":"object",`+
			`"properties":{"path":{"type":"string"},"limit":{"type":"integer","default":10}},"required":["path"]}},`, i, i)
	}
	for _, m := range []struct{ name, text string }{
		{"small", `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"ok"}]}}`},
		{"text", `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`},
		{"escapes", `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` +
			strings.Repeat(`{\"a\": \"b\"}\n`, 700) + `"}]}}`},
		{"numbers", `{"jsonrpc":"2.0","id":7,"result":{"rows":[` + strings.Repeat(`[1,2.5,-300,true,null],`, 400) + `0]}}`},
		{"tools", `{"jsonrpc":"2.0","id":7,"result":{"tools":[` + list.String() + `{"name":"last"}]}}`},
	} {
		b.Run(m.name, func(b *testing.B) {
			raw := []byte(m.text)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				var m Message
				if err := Parse(raw, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

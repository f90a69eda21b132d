package rawjson_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// chunk is an event of a model's stream.
var chunk = []byte(`{"id":"chatcmpl-9","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4.1","choices":[{"index":0,` +
	`"delta":{"role":"assistant","content":"It rains in London."},"finish_reason":null}],"usage":null}`)

func BenchmarkFields(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for k, v := range rawjson.Fields(chunk) {
			if string(k) == "choices" {
				for e := range rawjson.Elements(v) {
					for range rawjson.Fields(e) {
						n++
					}
				}
			}
		}
		if n != 3 {
			b.Fatal(n)
		}
	}
}

func BenchmarkMembers(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range rawjson.Members(chunk) {
			n++
		}
		if n != 6 {
			b.Fatal(n)
		}
	}
}

func BenchmarkSkip(b *testing.B) {
	raw := []byte(`{"text":"` + strings.Repeat("It rains in London, and the wind blows. ", 250) +
		`","list":[` + strings.Repeat(`{"name":"x","value":[1,2,"three"]},`, 200) + `0],"last":1}`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if rawjson.Field(raw, "last") == nil {
			b.Fatal()
		}
	}
}

func BenchmarkTwice(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, found := rawjson.Twice(chunk); found {
			b.Fatal()
		}
	}
}

func BenchmarkWithin(b *testing.B) {
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		if rawjson.Check(chunk, rawjson.Rules{Values: 1 << 20, Depth: 1000}) != nil {
			b.Fatal()
		}
	}
}
func toolList() []byte {
	var list strings.Builder
	for i := range 100 {
		fmt.Fprintf(&list, `{"name":"tool_%d","description":"Reads file number %d.","inputSchema":{"type":"object",`+
			`"properties":{"path":{"type":"string"},"limit":{"type":"integer","default":10}},"required":["path"]}},`, i, i)
	}
	return []byte(`{"tools":[` + list.String() + `{"name":"last"}],"nextCursor":"x"}`)
}

func BenchmarkList(b *testing.B) {
	raw := toolList()
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		rawjson.List(raw, "tools", func(v []byte) bool {
			for k, v := range rawjson.Members(v) {
				n += len(k) + len(v)
			}
			return true
		}, func(k, v []byte) { n++ })
	}
}

var envelope = []byte(`{"_meta":{"progressToken":7,"trace":"00-abc-def-01"},"name":"add","arguments":{"a":1,"b":[1,2,{"c":"d"}]}}`)

func BenchmarkField(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if len(rawjson.Field(envelope, "arguments")) == 0 ||
			len(rawjson.Field(rawjson.Field(envelope, "_meta"), "progressToken")) == 0 {
			b.Fatal()
		}
	}
}

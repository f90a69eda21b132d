package policy

import (
	"strings"
	"testing"
)

// BenchmarkMask masks the result of a call and an event.
func BenchmarkMask(b *testing.B) {
	names := []string{"password", "token"}
	rows := []byte(`{"rows":[` + strings.Repeat(`{"name":"Ada","password":"x","age":36,"tags":["a","b"]},`, 100) + `{}]}`)
	event := []byte(`{"message":{"role":"assistant","parts":[{"type":"text","text":"` + strings.Repeat("It rains. ", 100) +
		`"},{"type":"call","call":{"id":"1","name":"login","arguments":{"user":"ada","password":"x"}}}]},"stop":"tool_use"}`)
	b.Run("result", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Mask(rows, names)
		}
	})
	b.Run("event", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			MaskArguments(event, names)
		}
	})
}

package agent

import (
	"testing"

	"github.com/tenonhq/tenon"
)

// BenchmarkDecode decodes the data of the four events that each turn has.
func BenchmarkDecode(b *testing.B) {
	var events []tenon.Event
	for _, v := range written() {
		events = append(events, tenon.Event{Data: encoded(v)})
	}
	b.ReportAllocs()
	for b.Loop() {
		for i, into := range []func(tenon.Event) error{
			func(e tenon.Event) error { return decode(e, new(started)) },
			func(e tenon.Event) error { return decode(e, new(Answered)) },
			func(e tenon.Event) error { return decode(e, new(Decision)) },
			func(e tenon.Event) error { return decode(e, new(Outcome)) },
		} {
			if err := into(events[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
}

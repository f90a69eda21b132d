package forms

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

func FuzzUnpack(f *testing.F) {
	e := tenon.Event{Time: time.Unix(1, 2).UTC(), Step: "1.2", Kind: "result", Attempt: 3, Data: json.RawMessage("{\x00\xff}")}
	f.Add(Pack(nil, &e))
	f.Add(Pack(Pack(nil, &tenon.Event{}), &e))
	f.Add([]byte{0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			var got, again tenon.Event
			rest, err := Unpack(b, &got)
			if err != nil {
				return
			}
			if len(rest) >= len(b) {
				t.Fatal("nothing was taken")
			}
			if _, err := Unpack(Pack(nil, &got), &again); err != nil || !cmp.Equal(got, again) {
				t.Fatalf("%+v comes back as %+v (%v)", got, again, err)
			}
			b = rest
		}
	})
}

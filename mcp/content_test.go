package mcp

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

// TestContentIsReadAlike checks that a content block is the same when it arrives and when it is read from the journal,
// whatever its members and their order.
func TestContentIsReadAlike(t *testing.T) {
	for _, raw := range []string{
		`{"type":"text","text":"a"}`,
		`{"type":"image","data":"AA==","mimeType":"image/png"}`,
		`{"type":"resource_link","uri":"a:b","name":"n","mimeType":"text/plain"}`,
		`{"type":"resource","resource":{"uri":"a:b","mimeType":"text/plain","text":"inside"}}`,
		`{"resource":{"uri":"a:b","blob":"AA=="},"type":"resource","name":"n"}`,
		`{"type":"resource","text":"before","uri":"before:","data":"before","resource":{"uri":"a:b","text":"inside"}}`,
		`{"type":"resource","resource":{"uri":"a:b","text":"inside","type":"t","name":"m"},"text":"after","uri":"after:","data":"after"}`,
		`{"type":"resource","resource":{"text":"inside","data":"none"},"mimeType":"after/it","name":"n"}`,
		`{"type":"text","resource":5,"text":"after"}`,
		`{"type":1,"text":{},"data":null}`,
		`{}`, `[]`, `"text"`,
	} {
		var kept tenon.Content
		if err := json.Unmarshal([]byte(raw), &kept); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(kept, parseContent([]byte(raw))); diff != "" {
			t.Errorf("%s (-journal +server): %s", raw, diff)
		}
	}
}

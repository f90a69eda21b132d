package mcp

import (
	"bytes"
	"testing"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// TestKeep checks which pages of a list are kept in memory. A page that consists mostly of definitions is kept
// unchanged. The definitions of other pages are copied, so that a few small tools do not keep megabytes alive.
func TestKeep(t *testing.T) {
	for name, c := range map[string]struct {
		page string
		same bool
	}{
		"mostly tools": {`{"tools":[` + string(bytes.Repeat([]byte(`{"name":"a","description":"it does what it does"},`), 100)) + `{"name":"b"}]}`, true},
		"much else":    {`{"tools":[{"name":"a"},{"name":"b"}],"_meta":{"x":"` + string(bytes.Repeat([]byte("x"), 10_000)) + `"}}`, false},
		"much space":   {`{"tools":[` + string(bytes.Repeat([]byte(`{"name":"a"},`+"            "), 100)) + `{"name":"b"}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			page := []byte(c.page)
			var items [][]byte
			rawjson.List(page, "tools", func(v []byte) bool { items = append(items, v); return true }, func(_, _ []byte) {})
			want := bytes.Join(items, []byte("|"))
			first := &items[0][0]
			kept := keep(page, items)
			if got := bytes.Join(kept, []byte("|")); !bytes.Equal(got, want) {
				t.Errorf("kept %s, want %s", got, want)
			}
			if same := &kept[0][0] == first; same != c.same {
				t.Errorf("the same bytes: %v", same)
			}
		})
	}
}

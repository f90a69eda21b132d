package host_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// hiding is a shop whose prices contain hidden characters in all members of a result.
type hiding struct{ shop }

const hidden = `{"content":[{"type":"text","text":"5\u001b[8m EUR\u001b[0m\udb40\udc41"},` +
	`{"type":"resource","resource":{"uri":"x://\u202ea","text":"a\u200bb"}},{"type":"image","mimeType":"image/png","data":"AAEC"}],` +
	`"structuredContent":{"pri\u200bce":"\u202e5","n":9007199254740993,"ok":1.50},"_meta":{"note":"\u2028x"},"x-vendor":["\u0007"]}`

func (*hiding) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	r := new(tenon.Result)
	return r, json.Unmarshal([]byte(hidden), r)
}

// TestHiddenTextIsShown checks that hidden characters in a result are made visible before they reach the model or the
// journal: escape sequences, direction marks, tag characters and characters without width.
func TestHiddenTextIsShown(t *testing.T) {
	var told string
	h, st := budgeted(t, t.TempDir(), &config.Config{}, &hiding{}, func(req *tenon.Request) (*tenon.Response, error) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role == tenon.RoleUser {
			return calls(`price {"thing":"tea"}`), nil
		}
		b, err := json.Marshal(last)
		told = string(b)
		return says("done"), err
	})
	r, _ := ask(t, h, host.Question{Text: "q"})
	events, err := st.Events(t.Context(), r.Run, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if clean := tenon.VisibleJSON(e.Data); string(clean) != string(e.Data) {
			t.Errorf("event %d (%s) hides something: %s", e.Seq, e.Kind, e.Data)
		}
	}
	if clean := tenon.VisibleJSON([]byte(told)); string(clean) != told {
		t.Errorf("the model is told %s", told)
	}
	for _, want := range []string{`5\\u{1b}[8m EUR\\u{1b}[0m\\u{e0041}`, `a\\u{200b}b`, `x://\\u{202e}a`} {
		if !strings.Contains(told, want) {
			t.Errorf("%s is not in %s", want, told)
		}
	}
	whole, err := json.Marshal(r.ToolCalls[0].Result)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"pri\\u{200b}ce":"\\u{202e}5"`, `9007199254740993`, `1.50`, `"note":"\\u{2028}x"`, `"x-vendor":["\\u{7}"]`, `"data":"AAEC"`} {
		if !strings.Contains(string(whole), want) {
			t.Errorf("%s is not in %s", want, whole)
		}
	}
}

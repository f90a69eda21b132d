package servers

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestAnswersHoldNoSecret checks that secrets are masked in prompts, in resources and in errors of a server, and that
// texts and base64 data can still be read.
func TestAnswersHoldNoSecret(t *testing.T) {
	const secret = "TOP-secret!123"
	var r tenon.Redactor
	r.Add(tenon.NewSecret(secret))
	s := New("h", Config{Command: "x"}, Options{Mask: r.Text})
	defer s.Close() //nolint:errcheck // it never started
	blob := base64.StdEncoding.EncodeToString([]byte("a: " + secret + "\n"))

	var contents []tenon.Content
	if err := json.Unmarshal([]byte(`[{"type":"resource","resource":{"uri":"x://a","text":`+
		`"\u0054OP-secret!123","size":12345678901234567890}},{"type":"resource","resource":{"uri":"x://b","blob":"`+
		blob+`"}}]`), &contents); err != nil {
		t.Fatal(err)
	}
	got, err := maskAnswer(s, contents, "resource")
	if err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(got[1].Data)
	if err != nil || string(data) != "a: ***\n" || got[0].Text != "***" {
		t.Errorf("SEC-G10: the resource is %q and %q, %v", got[0].Text, data, err)
	}
	if all, _ := json.Marshal(got); strings.Contains(string(all), "secret") ||
		!strings.Contains(string(all), "12345678901234567890") {
		t.Errorf("SEC-G10: the resource is %s", all)
	}

	prompt, err := maskAnswer(s, json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"`+
		secret+`"}}]}`), "prompt")
	if err != nil || string(prompt) != `{"messages":[{"content":{"text":"***","type":"text"},"role":"user"}]}` {
		t.Errorf("SEC-G10: the prompt is %s, %v", prompt, err)
	}
	plain := json.RawMessage(`{"b":1,"a":2}`)
	if got, err := maskAnswer(s, plain, "prompt"); err != nil || &got[0] != &plain[0] {
		t.Errorf("SEC-G10: an answer without a secret was copied: %s, %v", got, err)
	}

	err = s.maskError(&tenon.Error{Code: tenon.CodeNotFound, Message: "no " + secret, Data: []byte(`"` + secret + `"`)})
	if e := err.(*tenon.Error); e.Code != tenon.CodeNotFound || e.Message != "no ***" || string(e.Data) != `"***"` {
		t.Errorf("SEC-G10: the error is %+v", e)
	}
}

package tenon_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tenonhq/tenon"
)

// FuzzResult compares the decoding of results with encoding/json. Whatever a server sends, the fields are the
// same and the bytes are written unchanged.
func FuzzResult(f *testing.F) {
	for _, s := range []string{
		`{"content":[{"type":"text","text":"a \"b\" \u00e9"},null,7,[{}],{"type":7,"text":null}],"isError":true,` +
			`"_meta":{"a":1}}`,
		`{"content":[],"structuredContent":{"n":9007199254740993}}`,
		`{"content":null}`, `{"content":{}}`, `{"content":[{"type":"text"}],"content":[]}`, `null`, `[]`, `7`,
		`{}`, ` { } `,
		`{"content":[{"type":"resource","uri":"u","resource":{"uri":"v","mimeType":"t","blob":"YQ==","text":"x"}}]}`,
		`{"content":[{"type":"resource","text":"u","resource":null},{"resource":[1]}]}`,
		`{"c\u006fntent":[{"t\u0079pe":"image","data":"YQ=="}],"isError":"true"}`,
		`{"content":[{"text":"\ud83d\ude00\ud83d"}]}`,
		"{\"content\":[{\"text\":\"\xff\"}]}",
		`{"isError":true,"isError":false}`,
		`{"content":[{"type":"text","text":5},{"type":"text","text":{"a":[1, 2]}},{"type":"text","text":false}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !json.Valid(b) {
			return
		}
		got := &tenon.Result{}
		if err := got.UnmarshalJSON(b); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(plainResult(b), got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s:\n%s", b, d)
		}
		if out, err := got.MarshalJSON(); err != nil || string(out) != string(b) {
			t.Errorf("%s came out as %s (%v)", b, out, err)
		}
	})
}

// TestResultOfTexts compares the encoding of results created here with encoding/json.
func TestResultOfTexts(t *testing.T) {
	for _, texts := range [][]string{{""}, {"a", "b"}, {"\x00\x1b\"\\\n\t<&>\u2028\u00e9\U0001f600"},
		{"cut \xff\xf0\x9f"}} {
		for _, failed := range []bool{false, true} {
			r := &tenon.Result{IsError: failed}
			type block struct {
				Type string `json:"type"`
				Text string `json:"text"`
			}
			plain := struct {
				Content []block `json:"content"`
				IsError bool    `json:"isError,omitempty"`
			}{IsError: failed}
			for _, text := range texts {
				r.Content = append(r.Content, tenon.Text(text))
				plain.Content = append(plain.Content, block{"text", strings.ToValidUTF8(text, "\ufffd")})
			}
			got, err := r.MarshalJSON()
			want, _ := json.Marshal(plain)
			var a, b any
			if err != nil || json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil || !cmp.Equal(a, b) {
				t.Errorf("%q (%v), want %s", got, err, want)
			}
			if through, err := json.Marshal(r); err != nil || string(through) != string(want) {
				t.Errorf("through encoding/json %s (%v), want %s", through, err, want)
			}
		}
	}
}

// plainResult decodes a result with encoding/json only.
func plainResult(b []byte) *tenon.Result {
	f := members(b)
	r := &tenon.Result{Raw: b, IsError: string(f["isError"]) == "true", Structured: f["structuredContent"],
		Meta: f["_meta"]}
	var blocks []json.RawMessage
	_ = json.Unmarshal(f["content"], &blocks)
	for _, raw := range blocks {
		f := members(raw)
		c := tenon.Content{Raw: raw, Type: str(f["type"]), Text: text(f["text"]), Data: str(f["data"]),
			MimeType: str(f["mimeType"]), URI: str(f["uri"]), Name: str(f["name"])}
		if in, ok := f["resource"]; ok {
			f = members(in)
			c.URI, c.MimeType, c.Text, c.Data = str(f["uri"]), str(f["mimeType"]), text(f["text"]), str(f["blob"])
		}
		r.Content = append(r.Content, c)
	}
	return r
}

func members(b []byte) (f map[string]json.RawMessage) {
	_ = json.Unmarshal(b, &f)
	return f
}

func str(b []byte) (s string) {
	_ = json.Unmarshal(b, &s)
	return s
}

// text returns the text of a block, or the JSON of its value if that is not a string.
func text(b []byte) string {
	if s := str(b); s != "" || len(b) == 0 || b[0] == '"' || string(b) == "null" {
		return s
	}
	return string(b)
}

// TestResultText checks that a block with a value of another type in place of its text does not result in an empty
// text.
func TestResultText(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"text", `"5"`, "5"}, {"number", `9007199254740993`, "9007199254740993"}, {"null", `null`, ""},
		{"object", `{"a": 1}`, `{"a": 1}`}, {"boolean", `false`, "false"},
	} {
		t.Run("RP-11_text_"+c.name, func(t *testing.T) {
			var r tenon.Result
			if err := r.UnmarshalJSON([]byte(`{"content":[{"type":"text","text":` + c.text + `}]}`)); err != nil {
				t.Fatal(err)
			}
			if got := r.Text(); got != c.want {
				t.Errorf("the text is %q, want %q", got, c.want)
			}
		})
	}
}

package tenon_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

func TestRedactor(t *testing.T) {
	const secret = "s3cr\"t+/ü value"
	var r tenon.Redactor
	if got := r.Text(secret); got != secret {
		t.Errorf("masked %q before it was told", got)
	}
	r.Add(tenon.NewSecret(secret))
	r.Add(tenon.NewSecret("short"))
	r.Add(tenon.Secret{})
	js, _ := json.Marshal(secret)
	for _, form := range []string{secret, strings.Trim(string(js), `"`), url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret))} {
		if got := r.Text("before " + form + " after"); strings.Contains(got, "s3cr") || !strings.HasPrefix(got, "before ***") {
			t.Errorf("%q became %q", form, got)
		}
	}
	if got := r.Text("a short text"); got != "a short text" {
		t.Errorf("became %q", got)
	}
	plain := []byte("nothing in here")
	if got := r.Bytes(plain); &got[0] != &plain[0] {
		t.Error("copied what holds no secret")
	}
}

// TestRedactorInJSON holds that a secret is masked however a program writes it as a JSON
// string, and that what is left is JSON.
func TestRedactorInJSON(t *testing.T) {
	const secret = "\"p<ä>/ss+w'ö😀rd\\\""
	var r tenon.Redactor
	r.Add(tenon.NewSecret(secret))
	forms := map[string]string{
		"as short as can be": `"\"p<ä>/ss+w'ö😀rd\\\""`,
		"encoding/json":      `"\"p\u003cä\u003e/ss+w'ö😀rd\\\""`,
		"Python":             `"\"p<\u00e4>/ss+w'\u00f6\ud83d\ude00rd\\\""`,
		"PHP":                `"\"p<\u00e4>\/ss+w'\u00f6\ud83d\ude00rd\\\""`,
		".NET":               `"\u0022p\u003C\u00E4\u003E/ss\u002Bw\u0027\u00F6\uD83D\uDE00rd\\\u0022"`,
	}
	for name, form := range forms {
		var text string
		if err := json.Unmarshal([]byte(form), &text); err != nil || text != secret {
			t.Fatalf("%s: %q, %v", name, text, err)
		}
		if got := string(r.Bytes([]byte(form))); got != `"***"` {
			t.Errorf("%s became %s", name, got)
		}
		var nested strings.Builder // a tool's result, whose text is the JSON of its program
		e := json.NewEncoder(&nested)
		e.SetEscapeHTML(false)
		if err := e.Encode(map[string]string{"text": `{"key":` + form + `}`}); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(r.Text(nested.String())); got != `{"text":"{\"key\":\"***\"}"}` {
			t.Errorf("%s in a text became %s", name, got)
		}
	}
}

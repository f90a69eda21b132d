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

package transport

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
)

func TestMaskURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://h/mcp":                            "http://h/mcp",
		"http://h/@scope/x":                       "http://h/@scope/x",
		"http://u:pw@127.0.0.1:1/x?token=s3":      "http://***@127.0.0.1:1/x?token=***",
		"https://tok@h?a=1&b=2&lone&=x#access=s3": "https://***@h?a=***&b=***&***&=***#***",
		"http://u:p@w@h/":                         "http://***@h/",
		"http://u:p/w@h/x":                        "http://***@h/x",
		"http://u:p w@h/x?k=v":                    "http://***@h/x?k=***",
		"u:pw@h/x":                                "***@h/x",
		"/login?next=s3":                          "/login?next=***",
		"http://***@127.0.0.1:1/x?token=***":      "http://***@127.0.0.1:1/x?token=***",
		"http://h/%zz?token=s3":                   "http://h/%zz?token=***",
		"http://u:pw@h:99999/x":                   "http://***@h:99999/x",
		"":                                        "",
	} {
		if got := MaskURL(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	const in, want = `npx x --url=http://u:pw@h/?k=v "postgres://a:b@c/d" e?f=g`,
		`npx x --url=http://***@h/?k=*** "postgres://***@c/d" e?f=g`
	if got := MaskURLs(in); got != want {
		t.Error(got)
	}
	if got := MaskURLs("at http://h/?k=v: x; http://h/?k=v, y"); got != "at http://h/?k=***: x; http://h/?k=***, y" {
		t.Error(got)
	}
}

// TestHTTPUserinfo checks that a login in the URL is sent as Basic credentials (RFC 7617) unless an
// Authorization header is configured, and that it appears in no error.
func TestHTTPUserinfo(t *testing.T) {
	var got string
	base, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		if r.URL.Query().Get("to") != "" {
			http.Redirect(w, r, "/else?token=s3cret", http.StatusFound)
			return
		}
		answerJSON(w)
	})
	base = strings.Replace(base, "://", "://me:p%40ss-s3cret@", 1)
	for name, tt := range map[string]struct {
		headers map[string]string
		want    string
	}{
		"basic":   {nil, "Basic " + base64.StdEncoding.EncodeToString([]byte("me:p@ss-s3cret"))},
		"written": {map[string]string{"authorization": "Bearer x"}, "Bearer x"},
	} {
		if _, err := exchange(context.Background(), dialHTTP(t, HTTPConfig{URL: base, Headers: tt.headers}),
			"x"); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	_, err := exchange(context.Background(), dialHTTP(t, HTTPConfig{URL: base + "/?to=s3cret"}), "x")
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "token=***") {
		t.Error(err)
	}
	for _, u := range []string{"ftp://me:s3cret@h/", "http://me:s3/cret@h/?x=s3cret", "http://me:s3cret@h:99999/",
		"http://127.0.0.1:1/\x00?x=s3cret"} {
		if _, err := DialHTTP(HTTPConfig{URL: u}); err == nil || strings.Contains(err.Error(), "s3cret") ||
			strings.Contains(err.Error(), "me:") {
			t.Error(err)
		}
	}
	_, err = exchange(context.Background(), dialHTTP(t, HTTPConfig{URL: "http://me:s3cret@127.0.0.1:1/?x=s3cret"}), "x")
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}

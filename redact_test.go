package tenon_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

func TestRedactor(t *testing.T) {
	const secret = "s3cr\"t+/ü value"
	var r tenon.Redactor
	if got := r.Text(secret); got != secret {
		t.Errorf("masked %q before it was registered", got)
	}
	r.Add(tenon.NewSecret(secret))
	r.Add(tenon.NewSecret("short"))
	r.Add(tenon.Secret{})
	js, _ := json.Marshal(secret)
	for _, form := range []string{secret, strings.Trim(string(js), `"`), url.QueryEscape(secret),
		url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret))} {
		if got := r.Text("before " + form + " after"); strings.Contains(got, "s3cr") ||
			!strings.HasPrefix(got, "before ***") {
			t.Errorf("%q became %q", form, got)
		}
	}
	if got := r.Text("a short text"); got != "a short text" {
		t.Errorf("became %q", got)
	}
	plain := []byte("nothing in here")
	if got := r.Bytes(plain); &got[0] != &plain[0] {
		t.Error("copied text without a secret")
	}
}

// TestRedactorInJSON checks that a secret is masked in every common encoding of a JSON string, and that the
// output is still JSON.
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
		var nested strings.Builder // the text of a tool's result is often JSON
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

// TestRedactorEscapes checks that a secret is masked even if a JSON string has more escapes than necessary.
func TestRedactorEscapes(t *testing.T) {
	const secret = "p@ss+wörd-1"
	var r tenon.Redactor
	r.Add(tenon.NewSecret(secret))
	all := func(format string) string {
		var b strings.Builder
		for _, c := range secret {
			fmt.Fprintf(&b, format, c)
		}
		return b.String()
	}
	bytewise := func(format string) string {
		var b strings.Builder
		for _, c := range []byte(secret) {
			fmt.Fprintf(&b, format, c)
		}
		return b.String()
	}
	quoted := func(text string, times int) string {
		for range times {
			b, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b[1 : len(b)-1])
		}
		return text
	}
	for name, text := range map[string]string{
		"every character in JSON":               all(`\u%04x`),
		"every character in JSON, upper case":   all(`\u%04X`),
		"every character, in JSON in JSON":      quoted(all(`\u%04x`), 1),
		"every byte in a URL":                   bytewise("%%%02X"),
		"every byte in a URL, lower case":       bytewise("%%%02x"),
		"lower-case percent hex":                "p%40ss%2bw%c3%b6rd-1",
		"lower-case percent hex of a path":      "p@ss+w%c3%b6rd-1",
		"a URL in a URL":                        url.QueryEscape(url.QueryEscape(secret)),
		"JSON in JSON in JSON, from Python":     `p@ss+w\\\\u00f6rd-1`,
		"every byte in a URL in JSON":           quoted(bytewise("%%%02X"), 2),
		"every character, JSON in JSON in JSON": quoted(all(`\u%04x`), 2),
	} {
		t.Run("SEC-G10_"+name, func(t *testing.T) {
			if got := r.Text("before " + text + " after"); !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, "*** after") {
				t.Errorf("%q became %q", text, got)
			}
		})
	}
	var quotes tenon.Redactor
	quotes.Add(tenon.NewSecret(`pass"word`))
	if got := quotes.Text(quoted(`pass"word`, 2)); got != "***" {
		t.Errorf("SEC-G10: a quote, twice encoded, became %q", got)
	}
}

// TestRedactorResultEscapes checks that unnecessary escapes in a server's message do not hide a secret in a result.
func TestRedactorResultEscapes(t *testing.T) {
	var r tenon.Redactor
	r.Add(tenon.NewSecret("TOP/secret😀123"))
	for name, text := range map[string]string{
		"one letter": `\u0054OP/secret😀123`,
		"a slash":    `TOP\/secret😀123`,
		"a pair":     `TO\u0050/secret\ud83d\ude00123`,
	} {
		t.Run("SEC-G10_"+name, func(t *testing.T) {
			in := new(tenon.Result)
			if err := json.Unmarshal([]byte(`{"content":[{"type":"text","text":"a\\`+text+`\n"}]}`), in); err != nil {
				t.Fatal(err)
			}
			if got := r.Result(in).Content[0].Text; got != "a\\***\n" {
				t.Errorf("became %q", got)
			}
		})
	}
	for _, raw := range []string{`{"a":1.0,"b":"\n\"\\u0041"}`, `"\u0000\u0022\u005c\ud800"`, `"\\/"`} {
		if got := string(tenon.UnescapedJSON([]byte(raw))); got != raw {
			t.Errorf("%s became %s", raw, got)
		}
	}
}

// TestRedactorData checks that base64 in a result is valid base64 without the secret, or is replaced by a text.
func TestRedactorData(t *testing.T) {
	const secret = "TOP/secret-123"
	var r tenon.Redactor
	r.Add(tenon.NewSecret(secret))
	encode := base64.StdEncoding.EncodeToString
	picture := encode([]byte("\x89PNG\x00\xff" + secret + "\x00"))
	wrapped := encode([]byte("a text with " + secret + " in the middle of a line"))
	wrapped = wrapped[:20] + `\n` + wrapped[20:]
	const withheld = "is withheld: it holds a configured secret"
	for name, tt := range map[string]struct{ content, want, text string }{
		"a picture":            {`{"type":"image","data":"` + picture + `","mimeType":"image/png"}`, "", "[image/png of 28 bytes in base64 " + withheld},
		"a sound":              {`{"type":"audio","data":"` + picture + `","mimeType":"audio/wav","_meta":{"a":1}}`, "", "[audio/wav of 28 bytes"},
		"a file":               {`{"type":"resource","resource":{"uri":"f://a","blob":"` + picture + `","mimeType":"application/zip"}}`, "", "[application/zip of 28 bytes"},
		"a text file":          {`{"type":"resource","resource":{"uri":"f://a","blob":"` + encode([]byte("x "+secret+" y")) + `"}}`, "x *** y", ""},
		"a drawing":            {`{"type":"image","data":"` + encode([]byte("<svg>TOP&#47;secret-123</svg>")) + `","mimeType":"image/svg+xml"}`, "<svg>***</svg>", ""},
		"with line breaks":     {`{"type":"resource","resource":{"uri":"f://a","blob":"` + wrapped + `"}}`, "a text with *** in the middle of a line", ""},
		"without a secret":     {`{"type":"image","data":"` + encode([]byte("\x89PNG")) + `","mimeType":"image/png"},{"type":"text","text":"` + secret + `"}`, "\x89PNG", ""},
		"data of another kind": {`{"type":"text","text":"a","data":"` + encode([]byte(secret)) + `"}`, "", "a"},
	} {
		t.Run("SEC-G10_"+name, func(t *testing.T) {
			in := new(tenon.Result)
			if err := json.Unmarshal([]byte(`{"content":[`+tt.content+`,{"type":"text","text":"end"}]}`), in); err != nil {
				t.Fatal(err)
			}
			out := r.Result(in)
			if raw, err := out.MarshalJSON(); err != nil || !json.Valid(raw) || strings.Contains(string(raw), "secret-123") {
				t.Fatalf("%s, %v", raw, err)
			}
			if got := out.Content[len(out.Content)-1].Text; got != "end" {
				t.Errorf("the other blocks became %q", got)
			}
			c := out.Content[0]
			if tt.text != "" && !strings.HasPrefix(c.Text, tt.text) {
				t.Errorf("the text is %q", c.Text)
			}
			if tt.want == "" {
				return
			}
			if data, err := base64.StdEncoding.DecodeString(c.Data); err != nil || !strings.HasPrefix(string(data), tt.want) {
				t.Errorf("the data is %q, %v", data, err)
			}
		})
	}
	contents := `{"contents":[{"uri":"f://a","mimeType":"image/png","blob":"` + picture + `"}]}`
	if got := string(r.JSON([]byte(contents))); !strings.HasPrefix(got, `{"contents":[{"uri":"f://a","mimeType":"text/plain","text":"[image/png of 28 bytes`) {
		t.Errorf("a resource became %s", got)
	}
	for _, same := range []string{`{"data":`, `{"contents":[{"uri":"f://a","blob":"AA=="}]}`, ``} {
		if got := string(r.JSON([]byte(same))); got != same {
			t.Errorf("%s became %s", same, got)
		}
	}
}

// TestRedactorDecodes checks that a secret is masked however an encoder of URLs or of HTML writes it.
func TestRedactorDecodes(t *testing.T) {
	var r tenon.Redactor
	for _, secret := range []string{"p@ssw0rd!x9", "pa ss/wo+rd=98 xyz", "it's(a)*\"<b>&~é", "100%41secret"} {
		r.Add(tenon.NewSecret(secret))
	}
	for _, text := range []string{
		"p%40ssw0rd!x9", "p%40ssw0rd%21x9", "p@ssw0rd%21x9", "%70%40ssw0rd!x%39", // JavaScript and others
		"pa%20ss%2Fwo%2Brd%3D98%20xyz", "pa+ss%2fwo%2Brd%3d98+xyz", "pa%20ss/wo%2brd=98%20xyz",
		"p%2540ssw0rd!x9", "p%252540ssw0rd!x9", "p%25%34%30ssw0rd!x9", // a URL in a URL
		"it's(a)*%22%3Cb%3E%26~%C3%A9", "it%27s%28a%29%2a%22%3cb%3e%26%7e%c3%a9", // lower-case hexadecimal digits
		"it's(a)*&quot;&lt;b&gt;&amp;~é", "it&#39;s(a)*&#34;&lt;b&gt;&amp;~&eacute;", "it&#x27;s&#40;a)*\"&lt;b>&#x26;~é",
		"pa ss&#x2F;wo+rd&#x3D;98 xyz", "p%26%2364%3Bssw0rd!x9", // HTML in a URL
		"100%2541secret", "100%41secret", "cGEgc3Mvd28rcmQ9OTggeHl6", "%63GEgc3Mvd28rcmQ9OTggeHl6",
	} {
		// What only looks like an escape, and other escapes, remain as they are.
		for _, around := range [][2]string{{"", ""}, {"x=%-", "&y=%41&z=1%"}, {"é%c3%a9&amp;", "%zz&amp;;&"}, {"%25", "%2541"}} {
			want := around[0] + "***" + around[1]
			if got := r.Text(around[0] + text + around[1]); got != want {
				t.Errorf("SEC-G10: %q became %q, not %q", around[0]+text+around[1], got, want)
			}
		}
		if got := r.Text(text + "," + text + text); got != "***,******" {
			t.Errorf("SEC-G10: %q three times became %q", text, got)
		}
	}
	for _, text := range []string{"", "%", "%4", "&", "&;", "&amp", "100%25 of a%20b &amp; c", "%%%%%41&&&&"} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// FuzzRedactor checks that masking text with escapes neither fails nor leaves a secret that can be decoded.
func FuzzRedactor(f *testing.F) {
	f.Add("p%40ssw0rd!x9", "%2540")
	f.Add("&#112;@ssw0rd!x9", "&amp;")
	f.Fuzz(func(t *testing.T, before, after string) {
		var r tenon.Redactor
		r.Add(tenon.NewSecret("p@ssw0rd!x9"))
		got := r.Text(before + "p%40ssw0rd%21x9" + after)
		if plain, err := url.PathUnescape(got); err == nil && strings.Contains(plain, "p@ssw0rd!x9") {
			t.Errorf("SEC-G10: %q became %q", before+after, got)
		}
	})
}

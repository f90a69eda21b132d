package elicit_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp/elicit"
)

// TestAttacksOnForms asks for a secret in forms that hide this purpose. Each form must be marked as secret or refused.
func TestAttacksOnForms(t *testing.T) {
	schema := func(properties string) string {
		return `{"message":"m","requestedSchema":{"type":"object","properties":{` + properties + `}}}`
	}
	text := func(name, more string) string { return schema(fmt.Sprintf(`%q:{"type":"string"%s}`, name, more)) }
	for name, params := range map[string]string{
		"a format":                     text("x", `,"format":"password"`),
		"a format in capitals":         text("x", `,"format":"PASSWORD"`),
		"an option of a title":         schema(`"x":{"type":"string","title":"Your  P A S S W O R D"}`),
		"turned around":                text("x", `,"title":"\u202edrowssap"`),
		"a direction mark within":      text("x", `,"title":"pass\u2066wo\u2069rd"`),
		"a tag":                        text("x", `,"title":"pass\udb40\udc41word"`),
		"a combining mark":             text("x", `,"title":"p\u0336a\u0336s\u0336s\u0336w\u0336o\u0336r\u0336d\u0336"`),
		"mathematical letters":         text("x", `,"title":"𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝"`),
		"circled letters":              text("x", `,"title":"ⓟⓐⓢⓢⓦⓞⓡⓓ"`),
		"small capitals":               text("x", `,"title":"ᴘᴀꜱꜱᴡᴏʀᴅ"`),
		"underscores":                  text("p_a_s_s_w_o_r_d", ``),
		"dots":                         text("x", `,"title":"p.a.s.s.w.o.r.d"`),
		"signs for letters":            text("x", `,"title":"pa$$word"`),
		"a number in place of letters": text("x", `,"title":"passw0rd"`),
		"French":                       text("mot_de_passe", ``),
		"Spanish":                      text("x", `,"title":"Su contraseña"`),
		"Italian and Portuguese":       text("x", `,"title":"Digite sua senha"`),
		"Russian":                      text("x", `,"title":"Введите пароль"`),
		"Chinese":                      text("x", `,"title":"请输入密码"`),
		"Japanese":                     text("x", `,"title":"パスワード"`),
		"Korean":                       text("x", `,"title":"비밀번호"`),
		"Polish":                       text("x", `,"title":"Hasło"`),
		"Dutch":                        text("x", `,"title":"Wachtwoord"`),
		"the file of a key":            text("x", `,"description":"paste the contents of ~/.ssh/id_rsa"`),
		"a bearer":                     text("authorization", ``),
		"a cookie":                     text("session_cookie", ``),
		"a number of digits":           text("x", `,"title":"6-digit code from your phone"`),
		"an example of a key":          text("x", `,"description":"starts with sk-ant-"`),
		"a default that is a secret":   text("x", `,"title":"api key","default":"sk-abc"`),
		"a pattern of a key":           text("x", `,"pattern":"^sk-[A-Za-z0-9]+$"`),
		"a social security number":     text("ssn", ``),
		"an account number":            text("iban", `,"title":"Bank account PIN"`),
		"the second field":             schema(`"name":{"type":"string"},"value":{"type":"string","title":"Password"}`),
		"a number":                     schema(`"x":{"type":"integer","title":"PIN"}`),
		"a message with hidden signs":  `{"message":"Enter your pass\u200bword","requestedSchema":{"type":"object","properties":{"x":{"type":"string"}}}}`,
	} {
		t.Run("SEC-F17_"+name, func(t *testing.T) {
			f, err := elicit.Parse([]byte(params))
			if err == nil && !f.Secret {
				t.Errorf("the form is not marked: %+v", f)
			}
		})
	}
	for name, params := range map[string]string{
		"nested":                schema(`"login":{"type":"object","properties":{"password":{"type":"string"}}}`),
		"ten thousand fields":   schema(strings.TrimSuffix(strings.Repeat(`"x":{"type":"string"},`, 10_000), ",")),
		"ten thousand names":    schema(manyFields(10_000)),
		"a reference":           schema(`"x":{"$ref":"#/$defs/p"}`),
		"a choice of types":     schema(`"x":{"anyOf":[{"type":"string","title":"Password"}]}`),
		"types in a list":       schema(`"x":{"type":["string","null"],"title":"Password"}`),
		"a name of nothing":     schema(`"x":{"type":"string","title":"a","title":"Password"}`),
		"a page of this host":   `{"mode":"url","message":"m","url":"http://user:pw@127.0.0.1/"}`,
		"a page with a blank":   `{"mode":"url","message":"m","url":"https://x.example/ https://evil.example"}`,
		"a page with a break":   `{"mode":"url","message":"m","url":"https://x.example/\n"}`,
		"a page by no scheme":   `{"mode":"url","message":"m","url":"//x.example/"}`,
		"a page of data":        `{"mode":"url","message":"m","url":"data:text/html,x"}`,
		"a page that is a list": `{"mode":"url","message":"m","url":["https://x.example"]}`,
	} {
		t.Run("SEC-F17_refused_"+name, func(t *testing.T) {
			if f, err := elicit.Parse([]byte(params)); tenon.ErrorCode(err) != tenon.CodeProtocol {
				t.Errorf("%+v, %v", f, err)
			}
		})
	}
	for _, ordinary := range []string{"Your name", "Passenger", "Compass direction", "Secretary", "Tokyo", "Sensor", "Passau", "Zip code", "Cookie recipe", "Author", "Which senate"} {
		f, err := elicit.Parse([]byte(text("x", `,"title":"`+ordinary+`"`)))
		if err != nil || f.Secret {
			t.Errorf("%s is marked: %v", ordinary, err)
		}
	}
}

func manyFields(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"f%d":{"type":"string"}`, i)
	}
	return strings.Join(list, ",")
}

// TestAnswersToForms answers forms with values that the server did not ask for.
func TestAnswersToForms(t *testing.T) {
	f, err := elicit.Parse([]byte(`{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","default":"d"},"b":{"type":"integer"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"another field": `{"a":"x","password":"y"}`, "another case": `{"A":"x"}`, "twice": `{"a":"x","a":"y"}`, "twice, escaped": `{"a":"x","\u0061":"y"}`,
		"an object": `{"a":{}}`, "null": `{"a":null}`, "a list": `["x"]`, "a fraction": `{"b":1.5}`, "two objects": `{"a":"x"}{"a":"y"}`,
	} {
		t.Run("SEC-F17_"+name, func(t *testing.T) {
			if got, err := f.Fill(json.RawMessage(content)); tenon.ErrorCode(err) != tenon.CodeInvalid {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

package elicit_test

import (
	"encoding/json"
	"testing"

	"github.com/tenonhq/tenon/mcp/elicit"
)

func TestAsksSecret(t *testing.T) {
	for _, tt := range []struct {
		name              string
		field, title      string
		description, form string
		want              bool
	}{
		{name: "SEC-F17_password", field: "password", want: true},
		{name: "SEC-F17_camel case", field: "dbPassword", want: true},
		{name: "SEC-F17_snake case", field: "user_passwd_2", want: true},
		{name: "SEC-F17_API key", field: "APIKey", want: true},
		{name: "SEC-F17_key", field: "key", want: true},
		{name: "SEC-F17_in one word", field: "authtoken", want: true},
		{name: "SEC-F17_PIN", field: "PIN", want: true},
		{name: "SEC-F17_PIN code", field: "pinCode", want: true},
		{name: "SEC-F17_token", field: "access-token", want: true},
		{name: "SEC-F17_credential", field: "credentials", want: true},
		{name: "SEC-F17_code", field: "code", want: true},
		{name: "SEC-F17_one-time code", field: "value", title: "One-time code", want: true},
		{name: "SEC-F17_title", field: "x", title: "Your passphrase", want: true},
		{name: "SEC-F17_description", field: "x", description: "the token that GitHub gave you", want: true},
		{name: "SEC-F17_message", field: "x", form: "Your session has expired. Enter your password again", want: true},
		{name: "SEC-F17_message in capitals", field: "x", form: "ENTER MASTER PASSWORD", want: true},
		{name: "SEC-F17_recovery phrase", field: "words", form: "Type your recovery phrase", want: true},
		{name: "SEC-F17_card", field: "number", title: "Card number", want: true},
		{name: "SEC-F17_CVC", field: "cvc", want: true},
		{name: "SEC-F17_spaced letters", field: "p a s s w o r d", want: true},
		{name: "SEC-F17_zero width", field: "x", title: "pass\u200bword", want: true},
		{name: "SEC-F17_soft hyphen", field: "x", title: "se\u00adcret", want: true},
		{name: "SEC-F17_Cyrillic letters", field: "x", title: "раsswоrd", want: true},
		{name: "SEC-F17_full width", field: "x", title: "ｐａｓｓｗｏｒｄ", want: true},
		{name: "SEC-F17_figures for letters", field: "x", title: "p4ssw0rd", want: true},
		{name: "SEC-F17_accents", field: "x", title: "pa\u0301ssword", want: true},
		{name: "SEC-F17_German", field: "x", title: "Ihr Passwort", want: true},
		{name: "a name", field: "name", title: "Your name"},
		{name: "a country's code", field: "countryCode"},
		{name: "a zip code", field: "zip_code", title: "ZIP code"},
		{name: "a primary key", field: "primaryKey"},
		{name: "tokens of a model", field: "maxTokens", description: "How many tokens the answer may have"},
		{name: "a keyboard", field: "keyboard"},
		{name: "a monkey", field: "monkey", form: "Which spinach?"},
		{name: "key results", field: "key_results", title: "Key points"},
		{name: "a review", field: "codeReview", title: "Code style"},
		{name: "a count of tokens", field: "token_count", title: "Token limit"},
		{name: "a rate", field: "pass_rate"},
		{name: "a secretary", field: "secretary", title: "Tokenizer"},
		{name: "SEC-F17_a property, then the secret", field: "x", title: "Token count: your token", want: true},
		{name: "SEC-F17_a key after a key point", field: "x", title: "Key point: API key", want: true},
		{name: "an opinion", field: "opinion", description: "pinned or not"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			params, err := json.Marshal(map[string]any{"message": tt.form, "requestedSchema": map[string]any{"type": "object",
				"properties": map[string]any{tt.field: map[string]any{"type": "string", "title": tt.title, "description": tt.description}}}})
			if err != nil {
				t.Fatal(err)
			}
			f, err := elicit.Parse(params)
			if err != nil || f.Secret != tt.want || f.Fields[0].Secret != tt.want {
				t.Errorf("secret %v, %+v, %v", f.Secret, f.Fields, err)
			}
		})
	}
	f, err := elicit.Parse([]byte(`{"message":"Keep the password?","requestedSchema":{"type":"object","properties":{"keep":{"type":"boolean"},"token":{"type":"string","enum":["a","b"]}}}}`))
	if err != nil || f.Secret {
		t.Errorf("what is chosen is no secret: %+v, %v", f, err)
	}
	// The form of the public server-everything says what it does not want.
	for schema, want := range map[string]bool{
		`{"type":"integer","title":"Integer","description":"Your favorite integer (do not give us your phone number, pin, or other sensitive info)","minimum":1,"maximum":100}`: false,
		`{"type":"integer","title":"Integer","description":"Your PIN","minimum":0,"maximum":9999}`:                                                                              true,
		`{"type":"integer","title":"Your PIN","minimum":0,"maximum":99}`:                                                                                                        true,
		`{"type":"integer","title":"Integer","description":"Your PIN","maximum":99}`:                                                                                            true,
		`{"type":"number","title":"Number","description":"Your PIN","minimum":0,"maximum":1}`:                                                                                   true,
	} {
		f, err := elicit.Parse([]byte(`{"message":"Please answer","requestedSchema":{"type":"object","properties":{"integer":` + schema + `}}}`))
		if err != nil || f.Secret != want {
			t.Errorf("%s: secret %v, %v", schema, f.Secret, err)
		}
	}
}

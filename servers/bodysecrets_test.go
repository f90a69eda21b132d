package servers

import (
	"slices"
	"testing"
)

// TestBodySecrets finds the literal secrets in JSON and in forms, and no others.
func TestBodySecrets(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"RP-20_json", `{"user": "me", "password": "hush"}`, []string{"hush"}},
		{"RP-20_nested_json", `{"a": [{"api_key":"x\"y"}], "token" : "z"}`, []string{`x\"y`, "z"}},
		{"RP-20_token_of_any_name", `{"note": "ghp_abcdefghijklmnopqrst"}`, []string{"ghp_abcdefghijklmnopqrst"}},
		{"RP-20_form", "grant_type=client_credentials&client_secret=hush&scope=a\n", []string{"hush"}},
		{"RP-20_password_first", "password=one&api_key=two", []string{"one", "two"}},
		{"an expression", `{"password": "{{ args.p }}", "token": "${TOKEN}"}`, nil},
		{"form with an expression", "user={{ args.u }}&password={{ args.p }}", nil},
		{"a project's key", `{"project": {"key": "PROJ"}, "secret": true, "token": "x"}`, []string{"x"}},
		{"a schema", `{"properties": {"password": {"type": "string"}}}`, nil},
		{"one pair", "sort_by=name", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := SecretParts(tt.in); !slices.Equal(got, tt.want) {
				t.Errorf("parts %q, want %q", got, tt.want)
			}
			var places []string
			for _, p := range SecretPlaces(tt.in) {
				places = append(places, tt.in[p.From:p.To])
			}
			if !slices.Equal(places, tt.want) {
				t.Errorf("places %q, want %q", places, tt.want)
			}
			if masked := MaskValue(tt.in); (masked == tt.in) != (tt.want == nil) || len(SecretParts(masked)) > 0 {
				t.Errorf("masked: %s", masked)
			}
		})
	}
}

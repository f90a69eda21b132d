package oauth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/authserver"
)

// TestGW_11_MaskedRefusal checks that errors do not have the secrets of a token request that the authorization server
// repeats, in plain or as in the form.
func TestGW_11_MaskedRefusal(t *testing.T) {
	const secret = "a-secret/of=tenon-0123456789"
	for _, status := range []int{http.StatusBadRequest, http.StatusServiceUnavailable} {
		var sent []string
		now := time.Now()
		s := start(t, func(s *authserver.Server) { s.ExpiresIn = 100 })
		repeats := func(f url.Values, answer map[string]any) int {
			var all []string
			for _, key := range secretFields {
				if v := f.Get(key); v != "" {
					sent = append(sent, v)
					all = append(all, v, url.QueryEscape(v))
				}
			}
			clear(answer)
			answer["error"], answer["error_description"] = "invalid_grant", "no: "+strings.Join(append(all, secret), " ")
			return status
		}
		src, rt := source(t, s, func(c *Config) {
			c.ClientID, c.ClientSecret, c.Now = "tenon", tenon.NewSecret(secret), func() time.Time { return now }
		})
		s.Token = repeats
		_, err := src.Login(t.Context(), &http.Transport{DisableKeepAlives: true}, &person{})
		failed := []error{err}
		s.Token = nil
		if _, err := src.Login(t.Context(), &http.Transport{DisableKeepAlives: true}, &person{}); err != nil {
			t.Fatal(err)
		}
		s.Token, now = repeats, now.Add(200*time.Second)
		_, err = request(t, rt, s.URL)
		if status != http.StatusBadRequest { // a refused refresh ends the sign-in, and its error says only this
			failed = append(failed, err)
		}
		for _, err := range failed {
			if err == nil || !strings.Contains(err.Error(), "no: ***") {
				t.Errorf("HTTP %d: %v", status, err)
				continue
			}
			for _, value := range append(sent, secret) {
				if strings.Contains(err.Error(), value) || strings.Contains(err.Error(), url.QueryEscape(value)) {
					t.Errorf("HTTP %d: the error has %s: %v", status, value, err)
				}
			}
		}
		if len(sent) < 3 {
			t.Errorf("only %q were sent", sent)
		}
	}
}

package cloudtoken

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

var at = time.Unix(1_800_000_000, 0)

// web answers requests by method, host and path, and records them.
type web struct {
	answers map[string]string // body, or "HTTP 401: body"
	seen    []string
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	key := r.Method + " " + r.URL.Host + r.URL.Path
	line := key
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		line += " " + string(b)
	}
	for _, h := range []string{"X-Identity-Header", "Metadata"} {
		if v := r.Header.Get(h); v != "" {
			line += " " + v
		}
	}
	w.seen = append(w.seen, line)
	body, ok := w.answers[key]
	status := http.StatusOK
	switch {
	case !ok:
		return nil, fmt.Errorf("no route to %s", r.URL.Host)
	case strings.HasPrefix(body, "HTTP "):
		if _, err := fmt.Sscanf(body, "HTTP %d:", &status); err != nil {
			return nil, err
		}
		_, body, _ = strings.Cut(body, ": ")
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// Test_MD10_Entra checks each source of tokens, and the errors of sources that are set up wrongly.
func Test_MD10_Entra(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no az command
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("jwt\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client := func(k, v string) map[string]string {
		return map[string]string{"AZURE_TENANT_ID": "ten", "AZURE_CLIENT_ID": "cli", k: v}
	}
	const login = "POST login.microsoftonline.com/ten/oauth2/v2.0/token"
	const scope = "scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default"
	for name, c := range map[string]struct {
		env     map[string]string
		answers map[string]string
		want    string // the token, its seconds and the requests, or a part of the error
	}{
		"none": {nil, nil, "none in the environment (AZURE_TENANT_ID"},
		"secret": {client("AZURE_CLIENT_SECRET", "s"), map[string]string{login: `{"access_token":"T","expires_in":3599}`},
			"T 3599 " + login + " client_id=cli&client_secret=s&grant_type=client_credentials&" + scope},
		"federated token": {client("AZURE_FEDERATED_TOKEN_FILE", file), map[string]string{login: `{"access_token":"T","expires_in":"3599"}`},
			"T 3599 " + login + " client_assertion=jwt&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&" +
				"client_id=cli&grant_type=client_credentials&" + scope},
		"wrong secret": {client("AZURE_CLIENT_SECRET", "s"), map[string]string{login: "HTTP 401: {\"error_description\":\"AADSTS7000215: Invalid client secret.\\r\\nTrace\"}"},
			"login.microsoftonline.com answered with HTTP 401 AADSTS7000215: Invalid client secret."},
		"service": {map[string]string{"IDENTITY_ENDPOINT": "http://127.0.0.1:42/msi", "IDENTITY_HEADER": "h"},
			map[string]string{"GET 127.0.0.1:42/msi": `{"access_token":"T","expires_on":"1800003600"}`}, "T 3600 GET 127.0.0.1:42/msi h"},
		"machine": {nil, map[string]string{"GET 169.254.169.254/metadata/identity/oauth2/token": `{"access_token":"T","expires_on":"1800003600"}`},
			"T 3600 GET 169.254.169.254/metadata/identity/oauth2/token true"},
		"no token": {client("AZURE_CLIENT_SECRET", "s"), map[string]string{login: `{}`}, "the answer has no token"},
		"plain authority": {map[string]string{"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s", "AZURE_AUTHORITY_HOST": "http://x"},
			nil, "AZURE_AUTHORITY_HOST is not an https address"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &web{answers: c.answers}
			s := NewEntra(Config{Transport: w, Now: func() time.Time { return at },
				LookupEnv: func(k string) (string, bool) { v, ok := c.env[k]; return v, ok }})
			token, err := s.Token(t.Context())
			if err != nil {
				if tenon.ErrorCode(err) != tenon.CodeAuth || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%s: %v", tenon.ErrorCode(err), err)
				}
				return
			}
			got := strings.Join(append([]string{token.Reveal(), fmt.Sprint(s.expires.Sub(at).Seconds())}, w.seen...), " ")
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Test_MD10_TokensAreKept checks that tokens are fetched again shortly before they expire, and after a refusal.
func Test_MD10_TokensAreKept(t *testing.T) {
	now := at
	w := &web{answers: map[string]string{"GET 127.0.0.1:42/msi": `{"access_token":"T","expires_on":"1800003600"}`}}
	env := map[string]string{"IDENTITY_ENDPOINT": "http://127.0.0.1:42/msi", "IDENTITY_HEADER": "h"}
	s := NewEntra(Config{Transport: w, Now: func() time.Time { return now },
		LookupEnv: func(k string) (string, bool) { v, ok := env[k]; return v, ok }})
	for i, step := range []struct {
		after  time.Duration
		forget bool
		asked  int
	}{{0, false, 1}, {54 * time.Minute, false, 1}, {56 * time.Minute, false, 2}, {0, false, 2}, {0, true, 3}} {
		now = at.Add(step.after)
		if step.forget {
			s.Forget()
		}
		if _, err := s.Token(context.Background()); err != nil || len(w.seen) != step.asked {
			t.Errorf("step %d: %d requests, want %d: %v", i, len(w.seen), step.asked, err)
		}
	}
}

// Test_MD10_Google reads a sign-in of gcloud, and reports one that was refused.
func Test_MD10_Google(t *testing.T) {
	file := filepath.Join(t.TempDir(), "adc.json")
	data, err := json.Marshal(map[string]string{"type": "authorized_user", "client_id": "c", "client_secret": "s",
		"refresh_token": "r", "quota_project_id": "q"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	for body, want := range map[string]string{
		`{"access_token":"ya29","expires_in":3599,"token_type":"Bearer"}`:                              "ya29",
		`HTTP 400: {"error":"invalid_grant","error_description":"Token has been expired or revoked."}`: "the token was refused: invalid_grant Token has been expired or revoked.; run `gcloud auth",
	} {
		w := &web{answers: map[string]string{"POST oauth2.googleapis.com/token": body}}
		g := NewGoogle(Config{Transport: w, LookupEnv: func(string) (string, bool) { return "", false }})
		token, err := g.Token(t.Context())
		got := token.Reveal()
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Test_MD10_TokenHosts checks the hosts that may get tokens.
func Test_MD10_TokenHosts(t *testing.T) {
	for host, want := range map[string][2]bool{
		"aiplatform.googleapis.com": {true, false}, "x.openai.azure.com": {false, true}, "127.0.0.1": {true, true},
		"evil.example": {}, "googleapis.com.evil.example": {}, "evilazure.com": {}, "localhost": {true, true},
	} {
		if got := [2]bool{GoogleServes(host), EntraServes(host)}; got != want {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
}

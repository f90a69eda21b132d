package cli

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/authserver"
)

// TestGW_9_ServeAcceptsAccessTokens checks that tenon serve accepts OAuth access tokens at /mcp in addition to its own
// token.
func TestGW_9_ServeAcceptsAccessTokens(t *testing.T) {
	i := authserver.StartIssuer()
	t.Cleanup(i.Close)
	s := startServing(t, map[string]string{"tenon.yaml": "serve: {auth: {oauth: {url: 'https://tools.example.com', " +
		"issuers: [{url: '" + i.URL + "'}]}}}\n"})
	for name, tt := range map[string]struct {
		token string
		want  int
	}{
		"an access token":        {i.Token("anna", "https://tools.example.com/mcp", nil), http.StatusOK},
		"one of another address": {i.Token("anna", "https://other.example.com/mcp", nil), http.StatusUnauthorized},
		"the token of serve":     {s.token, http.StatusOK},
		"none":                   {"", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
					`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = "tools.example.com" // as a proxy passes it
			req.Header = http.Header{"Content-Type": {"application/json"},
				"Accept": {"application/json, text/event-stream"}}
			if tt.token != "" {
				req.Header.Set("Authorization", "Bearer "+tt.token)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != tt.want {
				t.Errorf("%s: %s", res.Status, b)
			}
		})
	}
}

package servers

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

// TestReach checks the reports about addresses that fail at different steps: name, connection, TLS, HTTP.
func TestReach(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	open := httptest.NewServer(http.NotFoundHandler())
	defer open.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	tests := map[string]struct {
		url, phases, failed, text string
	}{
		"open":           {open.URL, "tcp", "", ""},
		"websocket":      {strings.Replace(open.URL, "http", "ws", 1), "tcp", "", ""},
		"nobody there":   {"http://" + gone + "/mcp", "tcp", "tcp", "nothing listens"},
		"unknown issuer": {secure.URL, "tcp tls", "tls", "nobody that this machine trusts"},
		"no TLS":         {strings.Replace(open.URL, "http", "https", 1), "tcp tls", "tls", "does not speak TLS"},
		"silent":         {"https://" + silent.Addr().String(), "tcp tls", "tls", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			if name != "silent" {
				ctx = context.Background()
			}
			phases, err := Reach(ctx, tt.url)
			var names []string
			for _, p := range phases {
				names = append(names, p.Name)
			}
			if got := strings.Join(names, " "); got != tt.phases {
				t.Errorf("phases %q, want %q", got, tt.phases)
			}
			var u *Unreached
			switch {
			case tt.failed == "" && err != nil:
				t.Error(err)
			case tt.failed != "" && (!errors.As(err, &u) || u.Phase != tt.failed || !strings.Contains(u.Text, tt.text) || u.Remedy == ""):
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := Reach(context.Background(), "not a URL"); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Error(err)
	}
}

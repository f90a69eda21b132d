package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon/internal/authserver"
	"github.com/tenonhq/tenon/mcp"
)

// browserAt is a stderr that opens the address that is printed to it, as a person would in a browser.
type browserAt struct {
	bytes.Buffer
	t    *testing.T
	once sync.Once
	wg   sync.WaitGroup
}

var addressLine = regexp.MustCompile(`(?m)^  (http://\S+)$`)

func (b *browserAt) Write(p []byte) (int, error) {
	b.Buffer.Write(p)
	if m := addressLine.FindSubmatch(b.Bytes()); m != nil {
		b.once.Do(func() {
			b.wg.Go(func() {
				resp, err := http.Get(string(m[1]))
				if err != nil {
					b.t.Error(err)
					return
				}
				_ = resp.Body.Close()
			})
		})
	}
	return len(p), nil
}

// TestLogin signs in to a server, uses the sign-in from other processes, and signs out.
func TestLogin(t *testing.T) {
	srv, err := mcp.NewServer(mcp.ServerConfig{Name: "portal", Version: "1", Tools: []mcp.ServerTool{{Definition: json.RawMessage(`{"name":"hello","inputSchema":{"type":"object"}}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	as := authserver.Start()
	defer as.Close()
	as.Protects, as.ExpiresIn = srv.HTTP(mcp.HTTPConfig{}), 3600
	dir := t.TempDir()
	for k, v := range map[string]string{"HOME": dir, "XDG_STATE_HOME": "", "TENON_KEYRING": "off", "TENON_NO_PROBE": "1"} {
		t.Setenv(k, v)
	}
	t.Chdir(dir)
	if err := os.WriteFile("t.yaml", []byte("servers:\n  portal: {url: "+as.URL+"}\n  local: {command: tenon}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tenon := func(want int, args ...string) (string, string) {
		t.Helper()
		var out bytes.Buffer
		b := &browserAt{t: t}
		got := run(t.Context(), append(args, "-c", "t.yaml"), stdio{strings.NewReader(""), &out, b})
		b.wg.Wait()
		if got != want {
			t.Fatalf("%v: status %d, want %d\n%s\n%s", args, got, want, &out, &b.Buffer)
		}
		return out.String(), b.String()
	}
	out, _ := tenon(0, "servers", "list", "--connect", "-o", "json", "--log-level", "error")
	if !strings.Contains(out, `"auth_required"`) || !strings.Contains(out, "tenon servers login portal") {
		t.Error(out)
	}
	if _, errs := tenon(3, "servers", "test", "portal"); !strings.Contains(errs, "tenon servers login portal") {
		t.Error(errs)
	}
	if out, errs := tenon(0, "servers", "login", "portal", "--no-browser"); !strings.Contains(out, "signed in to portal at "+as.Issuer+" (1 tool)") ||
		!strings.Contains(errs, "/authorize?") {
		t.Error(out, errs)
	}
	out, errs := tenon(0, "servers", "test", "portal", "--log-level", "debug")
	if !strings.Contains(out, "hello") {
		t.Error(out)
	}
	// The token appears neither in the output nor in a file.
	printed := []string{out, errs}
	err = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		printed = append(printed, string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range printed {
		if strings.Contains(text, "access-token-") || strings.Contains(text, "refresh-token-") {
			t.Errorf("a token stands in %s", text)
		}
	}
	as.Revoke(true)
	if _, errs := tenon(3, "servers", "test", "portal"); !strings.Contains(errs, "has ended") || !strings.Contains(errs, "login portal") {
		t.Error(errs)
	}
	if out, _ := tenon(0, "servers", "logout", "portal"); !strings.Contains(out, "portal") {
		t.Error(out)
	}
	if out, _ := tenon(0, "servers", "logout", "portal", "--principal", "anna"); !strings.Contains(out, "there was no sign-in of 'anna' to portal") {
		t.Error(out)
	}
	if _, errs := tenon(2, "servers", "logout", "portal", "--principal", "local"); !strings.Contains(errs, "has no separate sign-in") {
		t.Error(errs)
	}
	as.Metadata = map[string]any{"revocation_endpoint": nil}
	notRevoked(t, tenon)
	if _, errs := tenon(2, "servers", "login", "local"); !strings.Contains(errs, "stdio") {
		t.Error(errs)
	}
	tenon(2, "servers", "login", "nobody")
}

// notRevoked signs out where the authorization server has no endpoint to revoke tokens.
func notRevoked(t *testing.T, tenon func(want int, args ...string) (string, string)) {
	t.Helper()
	tenon(0, "servers", "login", "portal", "--no-browser")
	out, errs := tenon(0, "servers", "logout", "portal", "-o", "json")
	var answer struct {
		SignedIn bool `json:"signed_in"`
		Revoked  bool
		Reason   string
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || !answer.SignedIn || answer.Revoked ||
		!strings.Contains(answer.Reason, "has no endpoint for it") || !strings.Contains(errs, "the tokens were not revoked") {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
}

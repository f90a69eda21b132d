package httpapi_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/model/script"
)

// lockedLog is a log that a test reads while a host writes it.
type lockedLog struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

// take returns what was logged since the last call.
func (l *lockedLog) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.all.Reset()
	return l.all.String()
}

// TestLocalUser checks that no user of a program becomes the program itself by the text of a name. The program has a
// run that waits for an approval.
func TestLocalUser(t *testing.T) {
	m, err := script.Parse("pays", []byte("steps:\n  - {calls: [{name: pay, arguments: {}}]}\n  - {text: done}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var log lockedLog
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Models: map[string]tenon.Model{"m": m},
		Toolsets: map[string]tenon.Toolset{"bank": &counter{}}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	a, err := h.Ask(t.Context(), "pay the invoice")
	if tenon.ErrorCode(err) != tenon.CodeWaiting {
		t.Fatal(a.Run, err)
	}
	decide := "/api/v1/approvals/" + url.PathEscape(a.Run.ID+"/1.0") + "/decide"
	asked := func(cfg httpapi.Config, method, path, body string, header ...string) (int, string) {
		kind := ""
		if body != "" {
			kind = "application/json"
		}
		cfg.Gateway = noGateway{}
		status, _, text := request(t, httpapi.New(h, cfg), method, path, kind, body, header...)
		return status, text
	}
	as := func(c httpapi.Caller) httpapi.Config {
		return httpapi.Config{Authenticate: func(*http.Request) (httpapi.Caller, error) { return c, nil }}
	}
	tokens := httpapi.Config{Authenticate: httpapi.Tokens(tenon.Secret{},
		map[tenon.Principal]tenon.Secret{"local": tenon.NewSecret("theirs")})}
	for name, cfg := range map[string]httpapi.Config{
		"RP-1_user": as(httpapi.User("local")), "RP-1_caller": as(httpapi.Caller{Principal: "local"}), "RP-1_tokens": tokens,
		"RP-1_owner": as(httpapi.Caller{Principal: "local", Owner: true, Any: true}),
	} {
		t.Run(name, func(t *testing.T) {
			log.take()
			for path, body := range map[string]string{"/api/v1/runs": "", "/api/v1/sessions/" + a.Run.Session + "/messages": "",
				decide: `{"verdict":"allow","remember":"always"}`, "/chat": `{"message":"hi"}`, "/mcp": ""} {
				method := http.MethodGet
				if body != "" {
					method = http.MethodPost
				}
				status, text := asked(cfg, method, path, body, "Authorization", "Bearer theirs")
				if status != http.StatusUnauthorized || strings.Contains(text, "invoice") || !strings.Contains(text, "reserved") {
					t.Errorf("%s %s: %d %s", method, path, status, text)
				}
			}
			if logged := log.take(); !strings.Contains(logged, "httpapi.LocalUser") {
				t.Errorf("the log names no remedy: %s", logged)
			}
		})
	}
	for _, name := range []string{"Local", "LOCAL", " local", "user:local"} {
		if status, text := asked(as(httpapi.User(name)), "GET", "/api/v1/runs", ""); status != 200 || strings.Contains(text, a.Run.ID) {
			t.Errorf("%q: %d %s", name, status, text)
		}
	}
	if row, err := h.Runs().Get(t.Context(), a.Run.ID); err != nil || row.State != tenon.RunInputRequired {
		t.Fatal("somebody has decided: ", row.State, err)
	}
	for name, cfg := range map[string]httpapi.Config{"RP-1_local_user": as(httpapi.LocalUser()), "RP-1_open": {},
		"RP-1_own_token": {Authenticate: httpapi.Tokens(tenon.NewSecret("mine"), nil)}} {
		t.Run(name, func(t *testing.T) {
			status, text := asked(cfg, "GET", "/api/v1/runs", "", "Authorization", "Bearer mine")
			if status != 200 || !strings.Contains(text, a.Run.ID) {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	if _, _, err := h.Approvals().Decide(t.Context(), a.Run.ID, "1.0", agent.Ruling{Verdict: tenon.Deny}); err != nil {
		t.Error(err)
	}
}

// TestAuthenticatePanics checks that a panic of a program's authentication fails only the request.
func TestAuthenticatePanics(t *testing.T) {
	t.Run("RP-1_panic", func(t *testing.T) {
		var log lockedLog
		h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: host.DemoModel,
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		s := httptest.NewServer(httpapi.New(h, httpapi.Config{
			Authenticate: func(*http.Request) (httpapi.Caller, error) { panic(errors.New("hidden")) }}))
		t.Cleanup(s.Close)
		status, _, text := send(t, s.URL+"/chat", `{"message":"hi"}`)
		if status != http.StatusInternalServerError || strings.Contains(text, "hidden") {
			t.Errorf("%d %s", status, text)
		}
		if logged := log.take(); !strings.Contains(logged, "Authenticate") || !strings.Contains(logged, "hidden") {
			t.Errorf("the log does not report it: %s", logged)
		}
	})
}

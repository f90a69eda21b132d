package servers

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestExplain checks the texts of errors as persons and models read them.
func TestExplain(t *testing.T) {
	c := newFake()
	s := faked(Config{Transport: TransportStdio}, func(context.Context) (connection, error) { return c, nil })
	defer func() { _ = s.Close() }()
	tests := []struct {
		code       tenon.Code
		message    string
		tool, list string // sentences
	}{
		{tenon.CodeTimeout, "tools/call timed out after 100ms",
			"tool 'x' of server 't' timed out after 100ms; raise servers.t.request_timeout if it needs longer",
			"the list of tools of server 't' timed out after 100ms; raise servers.t.request_timeout if it needs longer"},
		{tenon.CodeTimeout, "tools/call timed out", "tool 'x' of server 't' timed out", "the list of tools of server 't' timed out"},
		{tenon.CodeCancelled, "tools/call was cancelled", "the call of tool 'x' of server 't' was cancelled", "the request for the list of tools of server 't' was cancelled"},
		{tenon.CodeTool, "-32602: bad input", `tool 'x' of server 't' failed: -32602: bad input (data: {"n":1})`,
			`the list of tools of server 't' failed: -32602: bad input (data: {"n":1}); ` +
				"see what it wrote with 'tenon servers logs t'"},
		{tenon.CodeUnreachable, "the socket broke",
			"tool 'x' was not called: server 't' is no longer available (the socket broke); see what it wrote with 'tenon servers logs t'",
			"no list of tools: server 't' is no longer available (the socket broke); see what it wrote with 'tenon servers logs t'"},
		{tenon.CodeUnknown, "the socket broke",
			"the call of tool 'x' broke off: server 't' is no longer available (the socket broke)", ""},
		{tenon.CodeAuth, "HTTP 401",
			"tool 'x' of server 't': server 't' refuses the credentials (HTTP 401); check servers.t.auth",
			"the list of tools of server 't': server 't' refuses the credentials (HTTP 401); check servers.t.auth"},
		{tenon.CodeTooLarge, "too much", "tool 'x' of server 't': too much; ask it for less", "the list of tools of server 't': too much; only its author can shorten it; set disabled: true to leave the server out"},
	}
	for _, tt := range tests {
		err := &tenon.Error{Code: tt.code, Message: tt.message, Data: json.RawMessage(`{"n":1}`)}
		c.call = func(context.Context, tenon.Call) (*tenon.Result, error) { return nil, err }
		c.tools = func(context.Context) ([]tenon.Tool, error) { return nil, err }
		_, called := s.Call(t.Context(), tenon.Call{Tool: "x"})
		_, listed := s.Tools(t.Context())
		for got, want := range map[error]string{called: tt.tool, listed: tt.list} {
			var e *tenon.Error
			code := tt.code
			if got == listed && code == tenon.CodeTool {
				code = tenon.CodeProtocol // the server is broken, and no tool was called
			}
			if !errors.As(got, &e) || e.Code != code || want != "" && e.Message != want || string(e.Data) != `{"n":1}` {
				t.Errorf("got  %v\nwant %s", got, want)
			}
		}
	}
}

// TestHeaders checks the header that each kind of auth sends.
func TestHeaders(t *testing.T) {
	secret := tenon.NewSecret
	tests := []struct {
		name string
		cfg  Config
		want []string
	}{
		{"none", Config{}, nil},
		{"bearer", Config{Auth: Auth{Type: AuthBearer, Secret: secret("s")}}, []string{"Authorization: Bearer s"}},
		{"basic", Config{Auth: Auth{Type: AuthBasic, Secret: secret("l:p")}}, []string{"Authorization: Basic bDpw"}},
		{"basic as JSON", Config{Auth: Auth{Type: AuthBasic, Secret: secret(`{"login":"l","password":"p"}`)}}, []string{"Authorization: Basic bDpw"}},
		{"api_key", Config{Auth: Auth{Type: AuthAPIKey, Secret: secret("s")}}, []string{"X-Api-Key: s"}},
		{"KN-72 second factor", Config{Auth: Auth{Type: AuthCredential, Secret: secret(`{"login":"l","password":"p","second_factor":"F"}`)}}, []string{"Authorization: Bearer F"}},
		{"KN-72 login", Config{Auth: Auth{Type: AuthCredential, Secret: secret("l:p")}}, []string{"Authorization: Basic bDpw"}},
		{"KN-72 login as JSON", Config{Auth: Auth{Type: AuthCredential, Secret: secret(`{"login":"l","password":"p"}`)}}, []string{"Authorization: Basic bDpw"}},
		{"KN-72 password alone", Config{Auth: Auth{Type: AuthCredential, Secret: secret("p")}}, []string{"Authorization: Bearer p"}},
		{"KN-72 password alone as JSON", Config{Auth: Auth{Type: AuthCredential, Secret: secret(`{"password":"p"}`)}}, []string{"Authorization: Bearer p"}},
		{"KN-72 nothing", Config{Auth: Auth{Type: AuthCredential, Secret: secret("{}")}}, nil},
		{"header", Config{Auth: Auth{Type: AuthHeader, Header: "x-mine", Secret: secret("s")}, Headers: map[string]string{"b": "c"}}, []string{"B: c", "X-Mine: s"}},
		{"written", Config{Auth: Auth{Type: AuthBearer, Secret: secret("s")}, Headers: map[string]string{"authorization": "mine"}}, []string{"Authorization: mine"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for k, v := range New("s", tt.cfg, Options{}).headers(tt.cfg.WithDefaults()) {
				got = append(got, k+": "+v)
			}
			if slices.Sort(got); !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestRemedyNamesHeaders checks that the advice about a 401 names headers if the entry sets any. It must use the
// configuration's names of keys.
func TestRemedyNamesHeaders(t *testing.T) {
	key := func(key string) string { return key + " of 't' in agent.yaml" }
	authorized := map[string]string{"authorization": "Bearer x"}
	for _, c := range []struct {
		name string
		cfg  Config
		key  func(string) string
		want string
	}{
		{"RP-14_headers", Config{URL: "http://h/", Headers: authorized}, nil, "check servers.t.headers.authorization"},
		{"RP-14_own_header", Config{URL: "http://h/", Transport: TransportSSE, Headers: map[string]string{"X-Town": "a", "X-Api-Key": "b"}},
			nil, "check servers.t.headers.X-Api-Key, or remove it and sign in with 'tenon servers login t'"},
		{"RP-14_two_headers", Config{URL: "http://h/", Headers: map[string]string{"A-Key": "a", "B-Key": "b"}},
			nil, "check servers.t.headers, or remove it and sign in with 'tenon servers login t'"},
		{"RP-14_auth", Config{URL: "http://h/", Auth: Auth{Type: AuthBearer}}, nil, "check servers.t.auth"},
		{"RP-15_agent", Config{URL: "http://h/", Headers: authorized}, key, "check headers.authorization of 't' in agent.yaml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New("t", c.cfg, Options{Key: c.key})
			defer func() { _ = s.Close() }()
			if got := s.remedy(errors.New("HTTP 401")); got != c.want {
				t.Errorf("the remedy is %q, want %q", got, c.want)
			}
		})
	}
}

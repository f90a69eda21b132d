package httpapi_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// TestFormedAnswers tests an agent whose answers must fit a schema. No chat API may return a text that does not fit,
// neither in an answer nor in pieces of a stream.
func TestFormedAnswers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(file, []byte("steps:\n  - text: Let me talk first.\n  - text: '{\"n\": 3}'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{Agents: map[string]agent.Config{"default": {ResponseFormat: agent.ResponseFormat{
		Schema: json.RawMessage(`{"type":"object","required":["n"]}`)}}}}
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: dir, Model: "script:" + file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	s := httptest.NewServer(httpapi.New(h, guarded()))
	defer s.Close()
	for path, body := range map[string]string{
		"/v1/chat/completions":  `{"model":"default","messages":[{"role":"user","content":"hi"}]}`,
		"/v1/chat/completions ": `{"model":"default","stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		"/chat":                 `{"message":"hi"}`,
		"/chat/stream":          `{"message":"hi"}`,
	} {
		status, text := post(t, s.URL+strings.TrimSpace(path), body)
		if status != 200 || strings.Contains(text, "talk") || strings.Count(text, `{\"n\":3}`) == 0 {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

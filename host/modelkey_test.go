package host_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// TestKeyIsReadOnce checks that the key of a model is only read if a request is sent, and only once. The program that
// prints the key may ask a person, or take some time.
func TestKeyIsReadOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "asked")
	cfg, err := config.Parse("tenon.yaml", []byte(`version: 1
models:
  m: {provider: openai, model: x, base_url: "http://127.0.0.1:9/v1", price: {input: 1, output: 1}, api_key: {command: [sh, -c, "echo asked >> asked; echo key-of-the-model"]}}
budgets: {day: {cost: 1}}
`), config.Options{Dir: dir, LookupEnv: nothing})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: dir, LookupEnv: nothing})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	for range 3 {
		if _, _, err := h.Models().Prompt(t.Context(), host.Question{Text: "q"}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(log)
	if n := strings.Count(string(b), "asked"); n != 1 {
		t.Errorf("the program that prints the key was started %d times (%v)", n, err)
	}
}

// TestPromptWithoutKey checks that the request to a model can be shown without its key, in the mode that is configured
// for the model.
func TestPromptWithoutKey(t *testing.T) {
	dir := t.TempDir()
	cfg, err := config.Parse("tenon.yaml", []byte(`version: 1
models:
  m: {provider: openai, model: x, tool_mode: react, api_key: {env: NO_SUCH_KEY}}
agents:
  default: {model: m}
`), config.Options{Dir: dir, LookupEnv: nothing})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: dir, LookupEnv: nothing, Toolsets: map[string]tenon.Toolset{"shop": &shop{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	req, _, err := h.Models().Prompt(t.Context(), host.Question{Text: "q"})
	if err != nil {
		t.Fatal(err)
	}
	if text := req.System + req.Messages[0].Text(); len(req.Tools) > 0 || !strings.Contains(text, "Final Answer") {
		t.Errorf("no text loop: %d tools and %q", len(req.Tools), text)
	}
}

func nothing(string) (string, bool) { return "", false }

package host_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// TestAddresses: a file at an address reaches the model as an address if the model reads it, otherwise as bytes, and a
// question with an address that nobody reads is refused with the reason.
func TestAddresses(t *testing.T) {
	dir := t.TempDir()
	cfg, err := config.Parse("tenon.yaml", []byte(`version: 1
models:
  claude: {provider: anthropic, model: claude-sonnet-4-5, api_key: {env: K}}
  gpt: {provider: openai, model: gpt-5, api_key: {env: K}}
  gemini: {provider: gemini, model: gemini-3-pro, api_key: {env: K}}
  local: {provider: ollama, api: ollama, model: gemma3}
`), config.Options{Dir: dir, LookupEnv: oneKey})
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(_ context.Context, address string) ([]byte, error) {
		switch {
		case strings.HasSuffix(address, ".png"):
			return []byte("\x89PNG\r\n\x1a\n rest"), nil
		case strings.HasSuffix(address, ".md"):
			return []byte("# Notes"), nil
		}
		return nil, tenon.Errorf(tenon.CodeUnreachable, "nobody is there")
	}
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: dir, LookupEnv: oneKey, Fetch: fetch})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	const web, bytes = "https://example.com/a.png", `"data":"iVBORw0KGgogcmVzdA=="`
	for name, c := range map[string]struct{ model, file, want string }{
		"MD-7_image_by_address": {"claude", web, `"uri":"` + web + `"`},
		"MD-7_image_read":       {"local", web, bytes},
		"MD-7_typed":            {"gpt", "image/png=https://example.com/x", `"mime_type":"image/png","uri":"https://example.com/x"`},
		"MD-7_untyped":          {"claude", "https://example.com/none", "nobody is there"},
		"MD-7_text":             {"claude", "https://example.com/n.md", "# Notes"},
		"MD-7_youtube":          {"gemini", "https://youtu.be/x", `"uri":"https://youtu.be/x"`},
		"MD-7_storage":          {"gemini", "gs://b/a.mp4", `"uri":"gs://b/a.mp4"`},
		"MD-7_no_storage":       {"gpt", "gs://b/a.mp4", "model 'gpt' does not read gs://b/a.mp4"},
		"MD-7_id":               {"gpt", "file-id:f1", `"uri":"file-id:f1"`},
		"MD-7_typed_id":         {"claude", "image/png=file-id:f1", `"mime_type":"image/png","uri":"file-id:f1"`},
		"MD-7_no_id":            {"local", "file-id:f1", "takes no file with the id f1"},
		"MD-7_http":             {"local", "http://example.com/a.png", "tenon reads only https addresses"},
	} {
		t.Run(name, func(t *testing.T) {
			parts, err := host.FileParts([]string{c.file})
			if err != nil {
				t.Fatal(err)
			}
			q := host.Question{Text: "q", Model: c.model, Files: parts,
				History: []*tenon.Message{{Role: tenon.RoleUser, Parts: parts}, tenon.AssistantMessage("a")}}
			req, _, err := h.Models().Prompt(t.Context(), q)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				b, _ := json.Marshal(req.Messages)
				if got = string(b); strings.Count(got, c.want) != 2 {
					t.Errorf("%s is not in the question and in the history", c.want)
				}
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%s is not in %s", c.want, got)
			}
			if parts[0].URI == "" || parts[0].Data != "" {
				t.Errorf("the question was modified: %+v", parts[0])
			}
		})
	}
	t.Run("MD-7_program", func(t *testing.T) {
		p, ok := host.AddressPart("s3://b/a.pdf")
		if !ok || p.MimeType != "application/pdf" || p.Data != "" {
			t.Errorf("%+v", p)
		}
		for _, name := range []string{"a.png", "C:\\x.png", "https", "dir/x=1.png", "image/png=a.png", "file-id:"} {
			if p, ok := host.AddressPart(name); ok {
				t.Errorf("%s is an address: %+v", name, p)
			}
		}
	})
}

// oneKey is an environment with a key of a provider.
func oneKey(name string) (string, bool) { return "x", name == "K" }

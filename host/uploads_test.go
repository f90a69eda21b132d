package host_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// filing is a provider with Anthropic's API that stores files.
type filing struct {
	mu    sync.Mutex
	calls []string
}

func (f *filing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path != "/v1/messages" {
		f.calls = append(f.calls, r.Method+" "+r.URL.Path)
		switch r.Method {
		case http.MethodGet:
			fmt.Fprint(w, `{"data":[{"id":"lost","filename":"tenon-lost.pdf"}]}`)
		default:
			fmt.Fprint(w, `{"id":"f1"}`)
		}
		return
	}
	how := "inline"
	if strings.Contains(string(body), `"file_id":"f1"`) && !strings.Contains(string(body), "base64") {
		how = r.Header.Get("Anthropic-Beta")
	}
	f.calls = append(f.calls, "ask "+how)
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range []string{`{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"seen"}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`} {
		fmt.Fprintf(w, "data: %s\n\n", e)
	}
}

// TestUploads: a large file is uploaded once, its id is sent in each request, and the provider's copy is deleted when
// the host is closed. A file of a process that crashed is deleted by a later one.
func TestUploads(t *testing.T) {
	for name, c := range map[string]struct {
		mode string
		list string // the list of uploads of earlier processes
		want []string
	}{
		"MD-7_once":  {"always", "", []string{"POST /v1/files", "ask files-api-2025-04-14", "ask files-api-2025-04-14", "DELETE /v1/files/f1"}},
		"MD-7_small": {"auto", "", []string{"ask inline", "ask inline"}},
		"MD-7_never": {"never", "", []string{"ask inline", "ask inline"}},
		"MD-7_after_a_crash": {"always", `{"model":"m","name":"tenon-lost.pdf","time":"2020-01-01T00:00:00Z"}` + "\n" +
			`{"model":"m","name":"tenon-old.pdf","id":"old","time":"2020-01-01T00:00:00Z"}` + "\n" + `{"model":"m","na`,
			[]string{"DELETE /v1/files/lost", "DELETE /v1/files/old", "GET /v1/files", "POST /v1/files", "ask files-api-2025-04-14",
				"ask files-api-2025-04-14", "DELETE /v1/files/f1"}},
		"MD-7_of_another_process": {"always", fmt.Sprintf(`{"model":"m","name":"tenon-x.pdf","id":"x","time":%q}`+"\n", time.Now().Format(time.RFC3339)),
			[]string{"POST /v1/files", "ask files-api-2025-04-14", "ask files-api-2025-04-14", "DELETE /v1/files/f1"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &filing{}
			server := httptest.NewServer(f)
			defer server.Close()
			dir := t.TempDir()
			list := filepath.Join(dir, "uploads.jsonl")
			if c.list != "" {
				if err := os.WriteFile(list, []byte(c.list), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cfg, err := config.Parse("tenon.yaml", fmt.Appendf(nil, `version: 1
models:
  m: {provider: anthropic, model: claude-sonnet-4-5, base_url: %q, api_key: {env: K}, uploads: %s}
`, server.URL, c.mode), config.Options{Dir: dir, LookupEnv: oneKey})
			if err != nil {
				t.Fatal(err)
			}
			h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: dir, LookupEnv: oneKey})
			if err != nil {
				t.Fatal(err)
			}
			p, err := host.FilePart("a.pdf", []byte("%PDF-1.4 "+strings.Repeat("x", 300<<10)))
			if err != nil {
				t.Fatal(err)
			}
			q := host.Question{Text: "what is in it?", NoTools: true}
			q.Files = append(q.Files, p)
			for range 2 {
				a, err := host.Ask(t.Context(), h, q)
				if err != nil || a.Text != "seen" {
					t.Fatalf("%+v, %v", a, err)
				}
				q = host.Question{Text: "and?", NoTools: true, Session: a.Run.Session}
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			if n := slices.Index(f.calls, "POST /v1/files"); n > 0 {
				slices.Sort(f.calls[:n])
			}
			if !slices.Equal(f.calls, c.want) {
				t.Errorf("%q", f.calls)
			}
			left, err := os.ReadFile(list)
			if kept := strings.Contains(name, "another"); err == nil && (len(left) == 0) == kept {
				t.Errorf("the list: %s", left)
			}
		})
	}
}

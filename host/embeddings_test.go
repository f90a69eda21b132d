package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
)

// zoo is a toolset whose descriptions share no word with the queries of the test.
type zoo struct{}

func (zoo) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Remote: "feline", Description: "About a small predator", Input: json.RawMessage(`{"type":"object"}`)},
		{Remote: "canine", Description: "About a loyal animal", Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (zoo) Call(context.Context, tenon.Call) (*tenon.Result, error) { return &tenon.Result{}, nil }

// fakeEmbeddings is an embeddings provider whose vectors have one direction for cats and one for dogs.
type fakeEmbeddings struct {
	texts  atomic.Int64
	status atomic.Int64
	hang   atomic.Bool
}

func (f *fakeEmbeddings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model string
		Input []string
	}
	raw, _ := io.ReadAll(r.Body) // the server notices a cancelled request only after it has read the body
	switch {
	case r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer key-of-embeddings":
		w.WriteHeader(http.StatusNotFound)
		return
	case f.hang.Load():
		<-r.Context().Done()
		return
	case f.status.Load() != 0:
		w.WriteHeader(int(f.status.Load()))
		_, _ = w.Write([]byte(`{"error":{"message":"overloaded with key-of-embeddings"}}`))
		return
	}
	_ = json.Unmarshal(raw, &body)
	f.texts.Add(int64(len(body.Input)))
	var data []string
	for i, text := range body.Input {
		v := "[0.1,0.1]"
		switch {
		case strings.Contains(text, "feline"), strings.Contains(text, "kitten"):
			v = "[1,0]"
		case strings.Contains(text, "canine"), strings.Contains(text, "puppy"):
			v = "[0,1]"
		}
		data = append(data, fmt.Sprintf(`{"index":%d,"embedding":%s}`, i, v))
	}
	_, _ = fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(data, ","))
}

// startWith opens a host that uses the embeddings of the provider.
type startWith func(t *testing.T, home, provider string) (*host.Host, *catalog.Snapshot)

func TestEmbeddings(t *testing.T) {
	fake := &fakeEmbeddings{}
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	home := t.TempDir()
	var log strings.Builder
	start := func(t *testing.T, home, provider string) (*host.Host, *catalog.Snapshot) {
		t.Helper()
		log.Reset()
		h, err := host.Open(t.Context(), host.Config{Home: home, Toolsets: map[string]tenon.Toolset{"zoo": zoo{}}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			LookupEnv: func(string) (string, bool) { return "", false },
			Config: &config.Config{ToolSearch: catalog.Search{Embeddings: "e", EmbeddingsTimeout: 300 * time.Millisecond},
				Models: map[string]model.Config{"e": {Provider: provider, Model: "small", BaseURL: server.URL + "/v1", APIKey: tenon.NewSecret("key-of-embeddings")}}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		s, _, err := h.Tools().Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h, s
	}
	t.Run("RP-29_meaning", func(t *testing.T) { testMeaning(t, fake, home, &log, start) })
	t.Run("RP-29_kept", func(t *testing.T) {
		fake.texts.Store(0)
		h, s := start(t, home, "openai-compatible")
		if got := firstHits(t, h, s, "kitten"); got != "feline" || fake.texts.Load() != 1 {
			t.Errorf("%s, %d texts were embedded, want 1", got, fake.texts.Load())
		}
	})
	t.Run("RP-29_damaged_file", func(t *testing.T) { testDamagedVectors(t, fake, home, start) })
	t.Run("RP-29_route_fails", func(t *testing.T) {
		fake.status.Store(400)
		defer fake.status.Store(0)
		h, s := start(t, t.TempDir(), "openai-compatible")
		if got := firstHits(t, h, s, "loyal"); got != "canine" {
			t.Errorf("words find %q", got)
		}
		if !strings.Contains(log.String(), "tool search uses words only") || strings.Contains(log.String(), "key-of-embeddings") {
			t.Errorf("the warning: %s", log.String())
		}
	})
	t.Run("RP-29_route_hangs", func(t *testing.T) {
		fake.hang.Store(true)
		defer fake.hang.Store(false)
		h, s := start(t, t.TempDir(), "openai-compatible")
		if got := firstHits(t, h, s, "loyal"); got != "canine" {
			t.Errorf("words find %q", got)
		}
		if !strings.Contains(log.String(), "tool search uses words only") {
			t.Errorf("the warning: %s", log.String())
		}
	})
	t.Run("RP-29_no_embeddings", func(t *testing.T) {
		h, s := start(t, t.TempDir(), "anthropic")
		if got := firstHits(t, h, s, "loyal"); got != "canine" || !strings.Contains(log.String(), "has no embeddings") {
			t.Errorf("%q, %s", got, log.String())
		}
	})
}

func testDamagedVectors(t *testing.T, fake *fakeEmbeddings, home string, start startWith) {
	var files []string
	for _, folder := range []string{"", "*", "*/*"} {
		found, _ := filepath.Glob(filepath.Join(home, folder, "embeddings-*"))
		files = append(files, found...)
	}
	if len(files) != 1 {
		t.Fatalf("files: %v", files)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-1] ^= 0x40
	if err := os.WriteFile(files[0], raw, 0o600); err != nil {
		t.Fatal(err)
	}
	fake.texts.Store(0)
	h, s := start(t, home, "openai-compatible")
	if got := firstHits(t, h, s, "kitten"); got != "feline" || fake.texts.Load() != 3 {
		t.Errorf("%s, %d texts were embedded, want 3: a file that somebody changed is not used", got, fake.texts.Load())
	}
}

func testMeaning(t *testing.T, fake *fakeEmbeddings, home string, log *strings.Builder, start startWith) {
	h, s := start(t, home, "openai-compatible")
	for query, want := range map[string]string{"a kitten": "feline", "a puppy": "canine", "loyal": "canine"} {
		if got := firstHits(t, h, s, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if n := fake.texts.Load(); n != 2+3 {
		t.Errorf("%d texts were embedded, want each tool and each query once: %s", n, log.String())
	}
}

func firstHits(t *testing.T, h *host.Host, s *catalog.Snapshot, query string) string {
	t.Helper()
	var names []string
	for _, hit := range host.SearchTools(t.Context(), h, s, query, 1) {
		names = append(names, hit.Tool.Name)
	}
	return strings.Join(names, " ")
}

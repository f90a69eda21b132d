package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
)

// openWith opens a host with a configuration file, next to the given script.
func openWith(t *testing.T, yaml, script string) *host.Host {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("tenon.yaml", []byte(yaml), config.Options{Dir: dir, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// askReport runs a question to its end and returns the report.
func askReport(t *testing.T, h *host.Host, q host.Question) view.Report {
	t.Helper()
	run := ""
	for e, err := range h.Stream(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		run = e.Run
	}
	r, err := h.Runs().Open(run).Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Runs().Open(run).Replay(t.Context()); err != nil {
		t.Error(err)
	}
	return r
}

// TestOutputSchema checks that an answer that violates the schema is sent back to the model, at most twice. An answer
// that fits is returned without the code fence around it.
func TestOutputSchema(t *testing.T) {
	const schema = `{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}`
	const yaml = "models: {m: {provider: script, path: s.yaml}}"
	for name, c := range map[string]struct {
		script string
		turns  int
		want   string
		failed string
	}{
		"at once":    {"steps: [{expect: fits this JSON Schema, text: '{\"n\": 1}'}]", 1, `{"n":1}`, ""},
		"fenced":     {"steps: [{text: \"```json\\n{\\\"n\\\": 9007199254740993}\\n```\\n\"}]", 1, `{"n":9007199254740993}`, ""},
		"put right":  {"steps: [{text: 'It is 1.'}, {expect: 'it is not JSON', text: '{\"n\": \"x\"}'}, {expect: 'at /n', text: '{\"n\": 2}'}]", 3, `{"n":2}`, ""},
		"never":      {"steps: [{text: no, repeat: 3}]", 3, "", "the answer is not what the output schema asks for: it is not JSON"},
		"two values": {"steps: [{text: '{\"n\":1} {\"n\":1}', repeat: 3}]", 3, "", "more than one value"},
		"key twice":  {"steps: [{text: '{\"n\":1,\"n\":2}', repeat: 3}]", 3, "", "stands twice"},
		"two fences": {"steps: [{text: \"```\\n1\\n```\\n```\\n2\\n```\", repeat: 3}]", 3, "", "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			r := askReport(t, openWith(t, yaml, c.script), host.Question{Text: "q", Output: json.RawMessage(schema)})
			if r.Turns != c.turns || string(r.Output) != c.want || c.want != "" && r.Answer != c.want {
				t.Errorf("%d turns, %s, %s", r.Turns, r.Output, r.Answer)
			}
			if (r.Error == nil) != (c.failed == "") || r.Error != nil && !strings.Contains(r.Error.Message, c.failed) {
				t.Errorf("%v", r.Error)
			}
		})
	}
	h := openWith(t, yaml, "steps: [{text: a}]")
	for _, bad := range []string{`{"type": 7}`, `[]`, `{`, `{"$ref": "#"}`} {
		if _, err := h.Start(t.Context(), host.Question{Text: "q", Output: json.RawMessage(bad)}); tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestFallback checks that the next model in the list replaces one that fails, but not one that refuses the request.
// The journal names the models that were tried and the one that answered.
func TestFallback(t *testing.T) {
	var asked atomic.Int32
	status := http.StatusServiceUnavailable
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":{"message":"not now"}}`)
	}))
	defer s.Close()
	yaml := fmt.Sprintf(`
models:
  main: {provider: openai-compatible, model: m, base_url: %s, retries: 0, fallback: [gone, spare]}
  gone: {provider: openai-compatible, model: g, base_url: "http://127.0.0.1:1", retries: 0}
  spare: {provider: script, path: s.yaml}
`, s.URL)
	h := openWith(t, yaml, "steps: [{text: I stand in}]")
	r := askReport(t, h, host.Question{Text: "q"})
	if r.Answer != "I stand in" || r.Error != nil || asked.Load() != 1 {
		t.Errorf("%+v, asked %d times", r, asked.Load())
	}
	events, err := h.Runs().Open(r.Run).Journal(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		var a agent.Answered
		if e.Kind == agent.EventModel && (json.Unmarshal(e.Data, &a) != nil || a.By != "spare" || len(a.Tried) != 2 || a.Tried[0].Model != "main" ||
			!strings.Contains(a.Tried[0].Error.Message, "not now") || a.Tried[1].Error.Code != tenon.CodeUnreachable) {
			t.Errorf("%s", e.Data)
		}
	}
	status = http.StatusBadRequest
	h = openWith(t, yaml, "steps: [{text: I stand in}]")
	if r = askReport(t, h, host.Question{Text: "q"}); r.Error == nil || strings.Contains(r.Error.Message, "spare") {
		t.Errorf("a refused request was sent to another model: %+v", r)
	}
	status = http.StatusTooManyRequests
	h = openWith(t, strings.Replace(yaml, "[gone, spare]", "[gone]", 1), "steps: [{text: x}]")
	if r = askReport(t, h, host.Question{Text: "q"}); r.Error == nil || r.Error.Code != tenon.CodeRateLimited || !strings.Contains(r.Error.Message, "then gone:") {
		t.Errorf("%+v", r.Error)
	}
}

// narrow is a model that accepts a limited number of bytes of conversation.
type narrow struct{ most int }

func (narrow) Name() string { return "test/narrow" }

func (n narrow) Generate(_ context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		size := 0
		for _, m := range req.Messages {
			size += len(m.Text())
		}
		if size > n.most {
			yield(tenon.Delta{}, tenon.Errorf(tenon.CodeTooLarge, "%d bytes are too many", size))
			return
		}
		yield(tenon.Delta{Kind: tenon.DeltaResponse, Response: &tenon.Response{Stop: tenon.StopEnd,
			Message: &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: "fits now"}}}}}, nil)
	}
}

// TestContextFull checks that a conversation that is too long for the model is compacted once. If that is not enough,
// the error says what to do.
func TestContextFull(t *testing.T) {
	long := strings.Repeat("long ", 200)
	said := func(text string) *tenon.Message {
		return &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: text}}}
	}
	history := []*tenon.Message{tenon.UserMessage(long), said(long), tenon.UserMessage("c"), said("d")}
	for name, c := range map[string]struct {
		most    int
		history []*tenon.Message
		want    string
	}{
		"once is enough":     {900, history, ""},
		"once is too little": {20, history, "although it was made shorter"},
		"nothing to sum up":  {20, nil, "there is nothing in it to sum up"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "short.yaml"), []byte("steps: [{text: they talked}]"), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Parse("tenon.yaml", []byte("models: {short: {provider: script, path: short.yaml}}\nagents: {default: {compaction: {model: short}}}"), config.Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: dir, Model: "narrow", Models: map[string]tenon.Model{"narrow": narrow{c.most}}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			}()
			r := askReport(t, h, host.Question{Text: "a question of some length", History: c.history})
			if c.want == "" && (r.Error != nil || r.Answer != "fits now") {
				t.Errorf("%+v", r)
			}
			if c.want != "" && (r.Error == nil || r.Error.Code != tenon.CodeTooLarge || r.Stop != tenon.StopContextFull || !strings.Contains(r.Error.Message, c.want)) {
				t.Errorf("%s %+v", r.Stop, r.Error)
			}
		})
	}
}

func TestFileParts(t *testing.T) {
	dir := t.TempDir()
	png := "\x89PNG\r\n\x1a\n rest"
	paths := map[string]string{}
	for name, data := range map[string]string{"a.png": png, "b.pdf": "%PDF-1.4 x", "c.wav": "RIFF\x00\x00\x00\x00WAVEfmt ", "d.csv": "a,b\n1,2\n", "e.bin": "\x00\x01\x02",
		"f.txt": "", "g.txt": strings.Repeat("x", 1<<20+1), "h.mp3": "\xff\xfb\x90\x00\x00"} {
		paths[name] = filepath.Join(dir, name)
		if err := os.WriteFile(paths[name], []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parts, err := host.FileParts([]string{paths["a.png"], paths["b.pdf"], paths["c.wav"], paths["d.csv"], paths["h.mp3"]})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, p := range parts {
		got += p.Type + " " + p.MimeType + " " + p.Text + "; "
	}
	if want := "image image/png ; file application/pdf b.pdf; file audio/wav c.wav; text  File d.csv:\n\na,b\n1,2\n; file audio/mpeg h.mp3; "; got != want {
		t.Errorf("%q", got)
	}
	for name, code := range map[string]tenon.Code{paths["e.bin"]: tenon.CodeInvalid, paths["f.txt"]: tenon.CodeInvalid, paths["g.txt"]: tenon.CodeTooLarge,
		dir: tenon.CodeInvalid, filepath.Join(dir, "none"): tenon.CodeNotFound} {
		if _, err := host.FileParts([]string{name}); tenon.ErrorCode(err) != code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := host.FileParts(make([]string, 33)); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("%v", err)
	}
}

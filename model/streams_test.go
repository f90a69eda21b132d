package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/anthropic"
	"github.com/tenonhq/tenon/model/bedrock"
	"github.com/tenonhq/tenon/model/gemini"
	"github.com/tenonhq/tenon/model/ollama"
	"github.com/tenonhq/tenon/model/openai"
)

// wires maps the wire formats to their parsers.
var wires = map[string]model.Parser{"anthropic": anthropic.Parse, "chat": openai.ParseChat,
	"responses": openai.ParseResponses, "gemini": gemini.Parse}

// open returns an adapter of the wire for url.
func open(t testing.TB, wire, url string, env model.Env) tenon.Model {
	t.Helper()
	none := 0
	return adapter(t, wire, model.Config{Model: "m", BaseURL: url, Retries: &none, APIKey: tenon.NewSecret("sk-test-key")}, env)
}

// adapter returns the adapter of the wire. It sets the provider if the config has none.
func adapter(t testing.TB, wire string, cfg model.Config, env model.Env) tenon.Model {
	t.Helper()
	if cfg.Provider == "" {
		cfg.Provider = map[string]string{"anthropic": "anthropic", "gemini": "gemini"}[wire]
	}
	if cfg.Provider == "" {
		cfg.Provider = "openai-compatible"
	}
	var m tenon.Model
	var err error
	switch wire {
	case "anthropic":
		m, err = anthropic.New(cfg, env)
	case "gemini":
		m, err = gemini.New(cfg, env)
	case "vertex":
		cfg.Provider, cfg.Region = "vertex", "us-east1"
		m, err = gemini.New(cfg, env)
	case "bedrock":
		cfg.Provider, cfg.Region = "bedrock", "us-east-1"
		m, err = bedrock.New(cfg, env)
	case "ollama":
		cfg.Provider, cfg.API = "ollama", model.APIOllama
		m, err = ollama.New(cfg, env)
	case "responses":
		cfg.API = model.APIResponses
		m, err = openai.NewResponses(cfg, env)
	default:
		m, err = openai.New(cfg, env)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// answered is an answer and its streamed deltas.
type answered struct {
	resp           *tenon.Response
	text, thinking string
	calls          []string
	resets         int
}

func generate(ctx context.Context, m tenon.Model, req *tenon.Request) (answered, error) {
	var a answered
	for d, err := range m.Generate(ctx, req) {
		if err != nil {
			return a, err
		}
		switch d.Kind {
		case tenon.DeltaText:
			a.text += d.Text
		case tenon.DeltaThinking:
			a.thinking += d.Text
		case tenon.DeltaCall:
			a.calls = append(a.calls, d.Text)
		case tenon.DeltaReset:
			a.text, a.thinking, a.calls = "", "", nil
			a.resets++
		case tenon.DeltaResponse:
			a.resp = d.Response
		}
	}
	if a.resp == nil {
		return a, fmt.Errorf("no response and no error")
	}
	return a, nil
}

var question = &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("hi")}}

// fixed answers every request with a fixed body.
type fixed func() io.Reader

func (f fixed) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(f()), Request: req}, nil
}

// failing contains the recordings that end with a provider error or are incomplete.
var failing = map[string]string{
	"vercel-ai/openai/responses/openai-error.1.chunks.txt#0":               "insufficient_quota: You exceeded your current quota",
	"vercel-ai/openai/responses/parallel-tool-call-wrapper.1.chunks.txt#0": "not JSON",
}

// cutByAuthors contains recordings whose authors removed pieces of text, so the pieces differ from
// the final text, or the end of an image.
var cutByAuthors = map[string]bool{"vercel-ai/openai/responses/openai-shell-container.1.chunks.txt#0": true,
	"vercel-ai/openai/responses/openai-image-generation-tool.1.chunks.txt#0": true}

// TestRecordedStreams replays every recorded stream: randomly split by a real server, in single
// bytes, and cut after every event.
func TestRecordedStreams(t *testing.T) {
	all := recordings(t)
	var now atomic.Pointer[[]byte] // an abandoned request may still be running during the next one
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		body := *now.Load()
		rng := rand.New(rand.NewSource(int64(len(body))))
		w.Header().Set("Content-Type", "text/event-stream")
		for rest := body; len(rest) > 0; {
			n := min(1+rng.Intn(1+len(body)/20), len(rest))
			if len(body) < 2000 {
				n = 1
			}
			_, _ = w.Write(rest[:n])
			w.(http.Flusher).Flush()
			rest = rest[n:]
		}
	}))
	defer server.Close()
	transport := server.Client().Transport
	count := map[string]int{}
	for _, r := range all {
		count[r.wire]++
		if r.handMade {
			count[r.wire+" hand-made by their authors"]++
		}
		t.Run(r.name, func(t *testing.T) {
			now.Store(&r.body)
			got, err := generate(t.Context(), open(t, r.wire, server.URL, model.Env{Transport: transport}), question)
			if want := failing[r.name]; want != "" {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("%v, want %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatalf("split at random: %v", err)
			}
			compare(t, r, got)
			single, err := generate(t.Context(), open(t, r.wire, "http://localhost",
				model.Env{Transport: fixed(func() io.Reader { return iotest.OneByteReader(bytes.NewReader(r.body)) })}), question)
			if err != nil {
				t.Fatalf("in single bytes: %v", err)
			}
			compare(t, r, single)
			if longtest.On() {
				cuts(t, r)
			}
			echo(t, r, single.resp.Message)
		})
	}
	t.Logf("ran %d recorded streams: %v", len(all), count)
	if count["anthropic"] < 28+31 || count["chat"] < 150 || count["responses"] < 39+35 || count["gemini"] < 42+9 {
		t.Errorf("too few streams were found: %v", count)
	}
}

// compare compares an answer with the verdict of the referee, a second, simpler decoder.
func compare(t *testing.T, r recorded, got answered) {
	t.Helper()
	want := referees[r.wire](r.events)
	have := verdict{Text: got.resp.Message.Text(), Stop: got.resp.RawStop, Input: -1, Output: -1, Blocks: want.Blocks}
	for _, p := range got.resp.Message.Parts {
		if p.Type == tenon.PartThinking {
			have.Thinking += p.Text
		}
	}
	for _, c := range got.resp.Message.Calls() {
		if c.Malformed != "" || !json.Valid(c.Arguments) {
			t.Errorf("arguments of %s are malformed: %s", c.Name, c.Malformed)
		}
		have.Calls = append(have.Calls, verdictCall{c.ID, c.Name, decodeAny(string(c.Arguments))})
	}
	for i, c := range want.Calls { // the adapter made an id
		if c.ID == "" && i < len(have.Calls) && strings.HasPrefix(have.Calls[i].ID, "tenon_call_") {
			have.Calls[i].ID = ""
		}
	}
	if u := got.resp.Usage; u != nil {
		have.Input, have.Output = u.Input, u.Output
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("the answer differs (-referee +adapter):\n%s", d)
	}
	if cutByAuthors[r.name] {
		return
	}
	if got.text != want.Text || got.thinking != want.Thinking || len(got.calls) != len(want.Calls) {
		t.Errorf("the deltas differ from the answer: %d/%d bytes of text, %d/%d of thinking, %d/%d calls", len(got.text),
			len(want.Text), len(got.thinking), len(want.Thinking), len(got.calls), len(want.Calls))
	}
	if len(got.resp.Warnings) > 0 && !r.handMade {
		t.Errorf("warnings: %q", got.resp.Warnings)
	}
	if calls := len(want.Calls) > 0; calls != (got.resp.Stop == tenon.StopToolUse) {
		t.Errorf("stop %s (%s) with %d calls", got.resp.Stop, got.resp.RawStop, len(want.Calls))
	}
}

// cuts ends the stream after every event. Before the provider's end mark (for chat: a finish_reason) the result must be
// an error.
func cuts(t *testing.T, r recorded) {
	t.Helper()
	parse := wires[r.wire]
	end := len(r.events)
	for n, e := range r.events {
		if (r.wire == "chat" || r.wire == "gemini") && referees[r.wire]([]string{e}).Stop != "" {
			end = n + 1
			break
		}
	}
	for n := range end {
		i := 0
		_, err := parse(func() ([]byte, error) {
			if i == n {
				return nil, io.EOF
			}
			i++
			return []byte(r.events[i-1]), nil
		}, func(tenon.Delta) bool { return true })
		if err == nil {
			t.Errorf("cut after %d of %d events it is taken for an answer", n, len(r.events))
			return
		}
	}
}

// echo sends the answer back as part of the next request and compares it with the recording.
func echo(t *testing.T, r recorded, msg *tenon.Message) {
	t.Helper()
	if r.wire == "anthropic" {
		var back struct{ Content []any }
		d := json.NewDecoder(bytes.NewReader(anthropic.EncodeMessage(msg)))
		d.UseNumber()
		if err := d.Decode(&back); err != nil && len(msg.Parts) > 0 {
			t.Fatalf("echo: %v", err)
		}
		want := refereeAnthropic(r.events).Blocks
		for _, b := range want { // null members count as absent
			for k, v := range b.(map[string]any) {
				if v == nil && b.(map[string]any)["type"] == "text" {
					delete(b.(map[string]any), k)
				}
			}
		}
		if d := cmp.Diff(want, back.Content); d != "" {
			t.Errorf("the echo differs (-came +goes):\n%s", d)
		}
		return
	}
	if r.wire != "chat" {
		body := sent(t, r.wire, model.Config{BaseURL: "http://localhost"}, &tenon.Request{Messages: []*tenon.Message{msg}})
		if d := cmp.Diff(referees[r.wire](r.events).Blocks, echoed(t, r.wire, body)); d != "" {
			t.Errorf("the echo differs (-came +goes):\n%s", d)
		}
		return
	}
	if r.next == nil {
		return
	}
	// The reasoning that the recorded client sent back.
	var next struct{ Messages []map[string]json.RawMessage }
	if err := json.Unmarshal(r.next, &next); err != nil {
		t.Fatal(err)
	}
	sent := next.Messages[len(next.Messages)-1]
	for _, m := range next.Messages {
		if string(m["role"]) == `"assistant"` {
			sent = m
		}
	}
	for _, p := range msg.Parts {
		if p.Type != tenon.PartThinking || len(p.Raw) == 0 {
			continue
		}
		var mine map[string]json.RawMessage
		if err := json.Unmarshal(p.Raw, &mine); err != nil {
			t.Fatalf("%v: %s", err, p.Raw)
		}
		for _, k := range []string{model.ReasoningContent, model.Reasoning, model.ReasoningDetails} {
			if sent[k] == nil {
				continue
			}
			if k != model.ReasoningDetails {
				if d := cmp.Diff(decodeAny(string(sent[k])), decodeAny(string(mine[k]))); d != "" {
					t.Errorf("%s of the echo differs (-recorded client +ours):\n%s", k, d)
				}
				continue
			}
			// The recorded client loses first pieces, ids and types of details. The adapter keeps
			// them, so it must send at least what the client sent.
			for _, d := range decodeAny(string(sent[k])).([]any) {
				for name, v := range d.(map[string]any) {
					if s, ok := v.(string); ok && (name == "text" || name == "data" || name == "summary" || name == "signature") &&
						!holds(decodeAny(string(mine[k])), s) {
						t.Errorf("%s of the echo lacks the recorded %s %.60q", k, name, s)
					}
				}
			}
		}
	}
}

// holds reports whether a string member of an entry ends in s.
func holds(entries any, s string) bool {
	for _, e := range entries.([]any) {
		for _, v := range e.(map[string]any) {
			if have, ok := v.(string); ok && strings.HasSuffix(have, s) {
				return true
			}
		}
	}
	return false
}

// TestRecordedNumbers compares the usage in two streams with the counts of the provider's own client library.
func TestRecordedNumbers(t *testing.T) {
	for _, r := range recordings(t) {
		first := strings.HasSuffix(r.name, "#0")
		events := 0
		for _, e := range r.events {
			if !strings.Contains(e, `"type": "ping"`) {
				events++
			}
		}
		got := func() answered {
			a, err := generate(t.Context(), open(t, r.wire, "http://localhost",
				model.Env{Transport: fixed(func() io.Reader { return bytes.NewReader(r.body) })}), question)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		switch {
		case first && strings.Contains(r.name, "TestAnthropicCommon/claude-sonnet-4/multi_tool_streaming"):
			a := got()
			calls := a.resp.Message.Calls()
			if events != 21 || len(calls) != 2 || calls[0].Name != "add" || calls[1].Name != "multiply" ||
				string(calls[0].Arguments) != `{"a": 2, "b": 3}` && string(calls[0].Arguments) != `{"a":2,"b":3}` ||
				a.resp.Usage.Input != 502 || a.resp.Usage.Output != 137 || a.resp.Stop != tenon.StopToolUse {
				t.Errorf("%d events, calls %v, usage %+v", events, calls, a.resp.Usage)
			}
		case first && strings.Contains(r.name, "TestAnthropicThinking/claude-sonnet-4/thinking-streaming"):
			a := got()
			p := a.resp.Message.Parts[0]
			var block struct{ Thinking, Signature string }
			if err := json.Unmarshal(p.Raw, &block); err != nil {
				t.Fatal(err)
			}
			if events != 37 || len(block.Thinking) != 301 || len(block.Signature) != 636 {
				t.Errorf("%d events, %d characters of thinking, %d of signature", events, len(block.Thinking), len(block.Signature))
			}
		}
	}
}

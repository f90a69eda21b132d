package httpapi_test

import (
	"context"
	"fmt"
	"iter"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// probable is a model that reports the probabilities of its tokens, and records the last request.
type probable struct{ req atomic.Pointer[tenon.Request] }

func (*probable) Name() string { return "own/probable" }

func (m *probable) Generate(_ context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	m.req.Store(req)
	return func(yield func(tenon.Delta, error) bool) {
		yield(tenon.Delta{Response: &tenon.Response{Stop: tenon.StopEnd, Message: tenon.AssistantMessage("a"),
			Logprobs: []tenon.TokenProb{{Token: "a", Logprob: -0.5, Top: []tenon.TokenProb{{Token: "a", Logprob: -0.5}}},
				{Token: "?", Logprob: -1, Bytes: []byte{0xe2}}}}}, nil)
	}
}

// TestCompletionLogprobs checks MD-9: answers and streams contain the probabilities of tokens in OpenAI's form.
func TestCompletionLogprobs(t *testing.T) {
	s := served(t, &probable{})
	for _, stream := range []bool{false, true} {
		_, _, text := send(t, s+"/v1/chat/completions", fmt.Sprintf(`{"model":"default","logprobs":true,"stream":%t,`+
			`"messages":[{"role":"user","content":"x"}]}`, stream))
		want := `"logprobs":{"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[{"token":"a","logprob":-0.5,` +
			`"bytes":[97],"top_logprobs":[]}]},{"token":"?","logprob":-1,"bytes":[226],"top_logprobs":[]}]}`
		if strings.Count(text, want) != 1 {
			t.Errorf("stream %t: %s", stream, text)
		}
	}
}

// TestSystemPlaces checks MD-9: system messages within a conversation keep their position. The ones at the beginning
// become the system prompt.
func TestSystemPlaces(t *testing.T) {
	m := &probable{}
	s := served(t, m)
	const system, answer, user = `{"role":"system","content":"S%d"},`, `{"role":"assistant","content":"A"},`, `{"role":"user","content":"U"}`
	for name, c := range map[string]struct{ messages, prompt, roles string }{
		"MD-9_first":   {fmt.Sprintf(system, 1) + user, "S1", "user"},
		"MD-9_between": {user + "," + answer + fmt.Sprintf(system, 1) + user, "", "user assistant system user"},
		"MD-9_inside":  {user + "," + fmt.Sprintf(system, 1) + answer + user, "", "user system assistant user"},
		"MD-9_both": {fmt.Sprintf(system, 1) + user + "," + answer + fmt.Sprintf(system, 2) + user, "S1",
			"user assistant system user"},
		"MD-9_last": {user + "," + strings.TrimSuffix(fmt.Sprintf(system, 1), ","), "S1", "user"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, text := send(t, s+"/v1/chat/completions", `{"model":"default","messages":[`+c.messages+`]}`)
			if status != 200 {
				t.Fatal(text)
			}
			var roles []string
			req := m.req.Load()
			for _, x := range req.Messages {
				roles = append(roles, string(x.Role))
			}
			if got := strings.Join(roles, " "); got != c.roles || req.System != c.prompt {
				t.Errorf("got %q with prompt %q, want %q with %q", got, req.System, c.roles, c.prompt)
			}
		})
	}
}

// served starts a host with one model and returns its address.
func served(t *testing.T, m tenon.Model) string {
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Models: map[string]tenon.Model{"own": m}, Model: "own"})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(httpapi.New(h, httpapi.Config{}))
	t.Cleanup(func() {
		s.Close()
		_ = h.Close()
	})
	return s.URL
}

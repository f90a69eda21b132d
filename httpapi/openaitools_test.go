package httpapi_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/policy"
)

// toolCall is a call of the client's tool in an answer.
type toolCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type toolChoice struct {
	Message, Delta struct {
		Content *string
		Calls   []toolCall `json:"tool_calls"`
	}
	Reason string `json:"finish_reason"`
}

// toolAnswer has the members of a /v1/chat/completions response that the tests of the client's tools check.
type toolAnswer struct {
	Choices []toolChoice
	Usage   *struct {
		Total int `json:"total_tokens"`
	}
	Tenon *struct {
		Run   string
		State tenon.RunState
	}
	Error *struct{ Message string }
}

const clientTools = `"tools":[{"type":"function","function":{"name":"sensor","description":"Reads a sensor",
"parameters":{"type":"object","properties":{"room":{"type":"string"}},"required":["room"]}}}]`

// sensing opens a host whose model, in one turn, pays and reads two sensors of the client, and then answers.
func sensing(t *testing.T, home string, mode string) (*host.Host, *counter) {
	t.Helper()
	file := filepath.Join(home, "steps.yaml")
	steps := `steps:
  - text: I look.
    usage: {input_tokens: 10, output_tokens: 3}
    calls:
      - {name: sensor, arguments: {room: hall}}
      - {name: pay, arguments: {}}
      - {name: sensor, arguments: {room: attic}}
  - text: It is warm.
    usage: {input_tokens: 20, output_tokens: 4}
`
	if err := os.WriteFile(file, []byte(steps), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &counter{began: make(chan struct{}, 8), open: make(chan struct{})}
	h, err := host.Open(t.Context(), host.Config{Home: home, Model: "script:" + file,
		Config:   &config.Config{Policy: policy.Config{Defaults: policy.Block{Approval: policy.Approval{Mode: mode}}}},
		Toolsets: map[string]tenon.Toolset{"bank": c}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h, c
}

// completes sends a request and decodes the answer, also from a stream.
func completes(t *testing.T, url, body string) (status int, a toolAnswer, header http.Header) {
	t.Helper()
	status, header, text := send(t, url+"/v1/chat/completions", body)
	_, text, _ = strings.Cut(text, "\r\n\r\n")
	if strings.HasPrefix(text, "{") {
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return status, a, header
	}
	said := ""
	for line := range strings.SplitSeq(text, "\n") {
		var chunk toolAnswer
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		a.Tenon = cmp.Or(chunk.Tenon, a.Tenon)
		for _, c := range chunk.Choices {
			if a.Choices == nil {
				a.Choices = make([]toolChoice, 1)
			}
			m := &a.Choices[0].Message
			if c.Delta.Content != nil {
				said += *c.Delta.Content
			}
			for _, d := range c.Delta.Calls {
				if d.ID != "" {
					m.Calls = append(m.Calls, d)
				} else {
					m.Calls[d.Index].Function.Arguments += d.Function.Arguments
				}
			}
			a.Choices[0].Reason += c.Reason
		}
	}
	if said != "" {
		a.Choices[0].Message.Content = &said
	}
	return status, a, header
}

// resultsOf returns messages with a result for each call.
func resultsOf(t *testing.T, calls []toolCall, text string) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"role": "assistant", "content": "I look.", "tool_calls": calls})
	if err != nil {
		t.Fatal(err)
	}
	out := "," + string(b)
	for _, c := range calls {
		out += `,{"role":"tool","tool_call_id":"` + c.ID + `","content":"` + text + `"}`
	}
	return out
}

type clientToolsCase struct {
	stream, restart bool
	more            string // a message after the results
}

// TestClientTools checks a turn with calls of tenon's tools and of the client's tools. tenon executes its own, and
// returns the others to the client. The client's results continue the same run, in another process as well. Each
// request can be repeated and gets the same answer again.
func TestClientTools(t *testing.T) {
	for name, tt := range map[string]clientToolsCase{
		"RP-4_plain":    {},
		"RP-4_streamed": {stream: true},
		"RP-4_restart":  {restart: true},
		"RP-4_steered":  {more: `,{"role":"user","content":"Be brief."},{"role":"user","content":"Please."}`},
	} {
		t.Run(name, func(t *testing.T) { checkClientTools(t, tt) })
	}
}

// checkClientTools asks a question whose answer calls two tools of the client and one of tenon, and sends the
// results.
func checkClientTools(t *testing.T, tt clientToolsCase) {
	home := t.TempDir()
	h, c := sensing(t, home, policy.ApprovalNever)
	s := httptest.NewServer(httpapi.New(h, httpapi.Config{}))
	defer func() { s.Close() }()
	head := `{"model":"default",` + clientTools + `,"stream":false,"messages":[{"role":"user","content":"How warm?"}`
	if tt.stream {
		head = strings.Replace(head, `"stream":false`, `"stream":true`, 1)
	}
	first := func() toolAnswer {
		status, a, header := completes(t, s.URL, head+"]}")
		if status != 200 || a.Choices[0].Reason != "tool_calls" || a.Tenon.State != tenon.RunInputRequired ||
			header.Get("Tenon-Run") != a.Tenon.Run {
			t.Fatalf("%d %+v", status, a)
		}
		return a
	}
	a := first()
	calls := a.Choices[0].Message.Calls
	if len(calls) != 2 || calls[0].Function.Name != "sensor" || calls[0].Function.Arguments != `{"room":"hall"}` ||
		calls[1].Function.Arguments != `{"room":"attic"}` || calls[0].Type != "function" ||
		*a.Choices[0].Message.Content != "I look." || len(calls[0].ID) > 40 {
		t.Fatalf("%+v", calls)
	}
	if c.effects.Load() != 1 {
		t.Errorf("tenon's own call has %d effects", c.effects.Load())
	}
	if status, a, _ := completes(t, s.URL, head+resultsOf(t, calls[:1], "21 °C")+"]}"); status != 400 ||
		!strings.Contains(a.Error.Message, calls[1].ID) {
		t.Errorf("a missing result: %d %+v", status, a)
	}
	if tt.restart {
		s.Close()
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		h, _ = sensing(t, home, policy.ApprovalNever)
		s = httptest.NewServer(httpapi.New(h, httpapi.Config{}))
	}
	second := head + resultsOf(t, calls, "21 °C") + tt.more + "]}"
	for range 2 { // a repeated request gets the same answer
		status, b, _ := completes(t, s.URL, second)
		if status != 200 || b.Choices[0].Reason != "stop" || b.Tenon.Run != a.Tenon.Run ||
			*b.Choices[0].Message.Content != "It is warm." {
			t.Fatalf("%d %+v", status, b)
		}
		if b.Usage != nil && b.Usage.Total != 24 {
			t.Errorf("usage %+v", *b.Usage)
		}
	}
	if status, a, _ := completes(t, s.URL, head+resultsOf(t, calls, "5 °C")+"]}"); status != 400 ||
		!strings.Contains(a.Error.Message, "had another result") {
		t.Errorf("another result: %d %+v", status, a)
	}
	if c.effects.Load() != 1 {
		t.Errorf("%d effects", c.effects.Load())
	}
	said, err := h.Runs().Open(a.Tenon.Run).Conversation(t.Context())
	b, _ := json.Marshal(said)
	if err != nil || strings.Count(string(b), "21 °C") != 2 || tt.more != "" &&
		strings.Count(string(b), `Be brief.\n\nPlease.`) != 1 {
		t.Errorf("%s, %v", b, err)
	}
	next := strings.TrimSuffix(second, "]}") + `,{"role":"assistant","content":"It is warm."},` +
		`{"role":"user","content":"And now?"}]}`
	if status, b, _ := completes(t, s.URL, next); status != 200 || b.Tenon.Run == a.Tenon.Run {
		t.Errorf("the next question: %d %+v", status, b)
	}
}

// TestClientToolsRepeated checks that a repeated first request gets the calls of the client's tools again, even after
// the run has continued.
func TestClientToolsRepeated(t *testing.T) {
	h, c := sensing(t, t.TempDir(), policy.ApprovalNever)
	s := httptest.NewServer(httpapi.New(h, httpapi.Config{}))
	defer s.Close()
	body := `{"model":"default",` + clientTools + `,"messages":[{"role":"user","content":"How warm?"}`
	ask := func() toolAnswer {
		status, _, text := send(t, s.URL+"/v1/chat/completions", body+"]}", "Idempotency-Key", "k")
		_, text, _ = strings.Cut(text, "\r\n\r\n")
		var a toolAnswer
		if err := json.Unmarshal([]byte(text), &a); err != nil || status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		return a
	}
	a := ask()
	calls := a.Choices[0].Message.Calls
	for _, name := range []string{"RP-4_waiting", "RP-4_continued"} {
		t.Run(name, func(t *testing.T) {
			b := ask()
			if b.Tenon.Run != a.Tenon.Run || b.Choices[0].Reason != "tool_calls" || b.Usage.Total != 13 ||
				len(b.Choices[0].Message.Calls) != 2 || b.Choices[0].Message.Calls[1] != calls[1] {
				t.Errorf("%+v", b)
			}
		})
		if status, b, _ := completes(t, s.URL, body+resultsOf(t, calls, "21 °C")+"]}"); status != 200 ||
			b.Choices[0].Reason != "stop" {
			t.Fatalf("%d %+v", status, b)
		}
	}
	if c.effects.Load() != 1 {
		t.Errorf("%d effects", c.effects.Load())
	}
}

// TestClientToolsApproval checks a turn with a client's call and a call that needs approval. It waits for both, in
// either order. Another caller can neither approve nor send results.
func TestClientToolsApproval(t *testing.T) {
	for _, name := range []string{"RP-4_results_first", "RP-4_approval_first"} {
		t.Run(name, func(t *testing.T) {
			h, c := sensing(t, t.TempDir(), policy.ApprovalAlways)
			s := httptest.NewServer(httpapi.New(h, httpapi.Config{}))
			defer s.Close()
			head := `{"model":"default",` + clientTools + `,"messages":[{"role":"user","content":"How warm?"}`
			_, a, _ := completes(t, s.URL, head+"]}")
			if a.Choices[0].Reason != "tool_calls" || len(a.Choices[0].Message.Calls) != 2 || c.effects.Load() != 0 {
				t.Fatalf("%+v", a)
			}
			list, err := h.Approvals().List(t.Context(), a.Tenon.Run)
			if err != nil || len(list) != 3 {
				t.Fatal(list, err)
			}
			approve := ""
			for _, p := range list {
				if p.Kind == agent.AskApproval {
					approve = head + `,{"role":"user","content":"approve ` + p.ID + `"}]}`
				}
			}
			results := head + resultsOf(t, a.Choices[0].Message.Calls, "21 °C") + "]}"
			order, reasons := []string{results, approve}, []string{"stop", "stop"}
			if name == "RP-4_approval_first" {
				order, reasons = []string{approve, results}, []string{"tool_calls", "stop"}
			}
			for i, body := range order {
				status, b, _ := completes(t, s.URL, body)
				if status != 200 || b.Choices[0].Reason != reasons[i] || b.Tenon.Run != a.Tenon.Run {
					t.Fatalf("%d: %d %+v", i, status, b)
				}
				a = b
			}
			if got := *a.Choices[0].Message.Content; got != "It is warm." || c.effects.Load() != 1 {
				t.Errorf("%q, %d effects", got, c.effects.Load())
			}
		})
	}
	t.Run("RP-4_other_caller", func(t *testing.T) {
		h, _ := sensing(t, t.TempDir(), policy.ApprovalNever)
		handler := httpapi.New(h, guarded())
		ask := func(token, body string) (int, string) {
			status, _, text := request(t, handler, "POST", "/v1/chat/completions", "application/json", body,
				"Authorization", "Bearer "+token)
			return status, text
		}
		head := `{"model":"default",` + clientTools + `,"messages":[{"role":"user","content":"How warm?"}`
		_, text := ask(ownToken, head+"]}")
		var a toolAnswer
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		body := head + resultsOf(t, a.Choices[0].Message.Calls, "21 °C") + "]}"
		if status, text := ask(annaToken, body); status != 404 {
			t.Errorf("%d %s", status, text)
		}
		if status, text := ask(ownToken, body); status != 200 {
			t.Errorf("%d %s", status, text)
		}
	})
}

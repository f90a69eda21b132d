package httpapi_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// completion has the members of a /v1/chat/completions response that the tests check.
type completion struct {
	Choices []struct {
		Message, Delta struct{ Role, Content string }
		Reason         string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	Tenon *struct {
		Run       string
		State     tenon.RunState
		Approvals []struct{ ID string }
	}
	Error *struct{ Message, Type string }
}

// knocking opens a host whose model plays the steps. The door is open, so that its calls return at once.
func knocking(t *testing.T, yaml string) *host.Host {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &door{open: make(chan struct{})}
	close(d.open)
	h, err := host.Open(t.Context(), host.Config{Home: dir, Model: "script:" + file, Toolsets: map[string]tenon.Toolset{"house": d}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

const used = "steps:\n  - text: I knock.\n    usage: {input_tokens: 10, output_tokens: 3}\n    calls: [{name: pass, arguments: {}}]\n" +
	"  - text: I am in.\n    usage: {input_tokens: 20, output_tokens: 4}\n"

// TestCompletionWaitsAndGoesOn checks that no call runs without approval over the OpenAI API. The answer ends with the
// calls to approve, and a later message continues the run. The usage is the sum of all model calls of an answer.
func TestCompletionWaitsAndGoesOn(t *testing.T) {
	for _, verdict := range []string{"approve", "deny"} {
		t.Run(verdict, func(t *testing.T) {
			h := knocking(t, used)
			handler := httpapi.New(h, guarded())
			ask := func(token, body string) (status int, c completion, text string) {
				t.Helper()
				status, _, text = request(t, handler, "POST", "/v1/chat/completions", "application/json", body, "Authorization", "Bearer "+token)
				if err := json.Unmarshal([]byte(text), &c); err != nil {
					t.Fatal(err)
				}
				return status, c, text
			}
			status, c, text := ask(ownToken, `{"model":"default","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"open"}],"stop":null,"n":1}`)
			if status != 200 || c.Tenon == nil || c.Tenon.State != tenon.RunInputRequired || len(c.Tenon.Approvals) != 1 || c.Choices[0].Reason != "stop" {
				t.Fatalf("%d %s", status, text)
			}
			id := c.Tenon.Approvals[0].ID
			if !strings.HasPrefix(c.Choices[0].Message.Content, "I knock.\n\nApproval required: house.pass {}\n") || !strings.Contains(c.Choices[0].Message.Content, `"approve `+id+`"`) {
				t.Errorf("the answer is %q", c.Choices[0].Message.Content)
			}
			body := `{"model":"default","messages":[{"role":"user","content":"open"},{"role":"user","content":"` + verdict + " " + id + `"}]}`
			if status, c, text := ask(annaToken, body); status != 404 || c.Error.Type != "invalid_request_error" {
				t.Errorf("another decides: %d %s", status, text)
			}
			status, c, text = ask(ownToken, body)
			if status != 200 || c.Tenon.State != tenon.RunCompleted || c.Choices[0].Message.Content != "I am in." {
				t.Fatalf("%d %s", status, text)
			}
			if u := c.Usage; u.Prompt != 20 || u.Completion != 4 || u.Total != 24 {
				t.Errorf("usage %+v", *u)
			}
			calls, err := h.Sessions().Transcripts().Calls(t.Context(), between(t, text, `"session":"`, `"`))
			if err != nil || len(calls) != 1 || calls[0].Success != (verdict == "approve") || calls[0].By != "local" {
				t.Errorf("the calls are %+v: %v", calls, err)
			}
			if status, _, text := ask(ownToken, body); status != 409 {
				t.Errorf("decided twice: %d %s", status, text)
			}
		})
	}
}

// TestCompletionWithoutUsage checks that an answer has no usage if the provider reported none, as OpenAI's types allow,
// and that a stream then has no chunk without choices.
func TestCompletionWithoutUsage(t *testing.T) {
	t.Run("MD-4_unknown_usage", func(t *testing.T) {
		s := httptest.NewServer(httpapi.New(knocking(t, "steps:\n  - text: Hello.\n"), guarded()))
		defer s.Close()
		for _, stream := range []string{"", `"stream":true,"stream_options":{"include_usage":true},`} {
			body := `{"model":"default",` + stream + `"messages":[{"role":"user","content":"hi"}]}`
			status, text := post(t, s.URL+"/v1/chat/completions", body)
			if status != 200 || !strings.Contains(text, "Hello.") || strings.Contains(text, `"usage"`) ||
				strings.Contains(text, `"choices":[]`) {
				t.Errorf("%d %s", status, text)
			}
		}
	})
}

// TestCompletionStream checks that the chunks of a stream have OpenAI's form and result in the same answer as a
// response without streaming.
func TestCompletionStream(t *testing.T) {
	h := knocking(t, "steps:\n  - text: Hello there.\n    usage: {input_tokens: 10, output_tokens: 3}\n")
	s := httptest.NewServer(httpapi.New(h, guarded()))
	defer s.Close()
	body := `{"model":"default","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`
	status, text := post(t, s.URL+"/v1/chat/completions", body)
	if status != 200 || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Fatalf("%d %s", status, text)
	}
	said, reason, usage := "", "", 0
	for _, line := range strings.Split(strings.TrimSuffix(text, "data: [DONE]\n\n"), "\n\n") {
		if line == "" {
			continue
		}
		var c completion
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &c); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for _, choice := range c.Choices {
			said += choice.Delta.Content
			reason += choice.Reason
		}
		if c.Usage != nil {
			usage += c.Usage.Total
		}
	}
	if said != "Hello there." || reason != "stop" || usage != 13 {
		t.Errorf("said %q, reason %q, usage %d", said, reason, usage)
	}
}

// TestUnknownParameters checks unknown parameters. A probable misspelling is refused with a suggestion. Parameters of
// other vendors are listed in a response header.
func TestUnknownParameters(t *testing.T) {
	handler := httpapi.New(knocking(t, used), guarded())
	for _, tt := range []struct {
		name, more    string
		status        int
		ignored, text string
	}{
		{"RP-4_misspelt", `"temprature":1`, 400, "", "did you mean 'temperature'?"},
		{"RP-4_singular", `"tool":[]`, 400, "", "did you mean 'tools'?"},
		{"RP-4_foreign", `"foo":1,"models":["a"],"repetition_penalty":1.1,"reasoning":{}`, 200,
			"foo, models, repetition_penalty, reasoning", "chatcmpl"},
		{"RP-4_documented", `"user":"u","metadata":{},"store":true,"prediction":{"type":"content"},"top_k":4,` +
			`"prompt_cache_key":"k","safety_identifier":"s"`, 200, "", "chatcmpl"},
		{"RP-4_strange_names", `"a\nb":1,"` + strings.Repeat("x", 65) + `":2`, 200, "", "chatcmpl"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, header, text := request(t, handler, "POST", "/v1/chat/completions", "application/json",
				`{"model":"default",`+tt.more+`,"messages":[{"role":"user","content":"x"}]}`,
				"Authorization", "Bearer "+ownToken)
			if status != tt.status || header.Get(httpapi.IgnoredHeader) != tt.ignored || !strings.Contains(text, tt.text) {
				t.Errorf("%d %q %s", status, header.Get(httpapi.IgnoredHeader), text)
			}
		})
	}
}

// TestCompletionsThatCannotBe checks that parameters that tenon would have to ignore are refused.
func TestCompletionsThatCannotBe(t *testing.T) {
	h := knocking(t, used)
	handler := httpapi.New(h, guarded())
	const user = `"messages":[{"role":"user","content":"x"}]`
	for name, tt := range map[string]struct {
		body   string
		status int
	}{
		"RP-4_tools":       {`{"model":"default","tools":[{"type":"function"}],` + user + `}`, 400},
		"RP-4_custom":      {`{"model":"default","tools":[{"type":"custom","custom":{"name":"x"}}],` + user + `}`, 400},
		"RP-4_choice":      {`{"model":"default","tool_choice":"sometimes",` + user + `}`, 400},
		"RP-4_no_such":     {`{"model":"default","tool_choice":{"type":"function","function":{"name":"x"}},` + user + `}`, 400},
		"RP-4_allowed":     {`{"model":"default","tool_choice":{"type":"allowed_tools"},` + user + `}`, 400},
		"RP-4_functions":   {`{"model":"default","functions":[{"name":"x"}],` + user + `}`, 400},
		"RP-4_logprobs":    {`{"model":"default","top_logprobs":2,` + user + `}`, 400},
		"RP-4_bias":        {`{"model":"default","logit_bias":{"1":2},` + user + `}`, 400},
		"RP-4_effort":      {`{"model":"default","reasoning_effort":"huge",` + user + `}`, 400},
		"RP-4_format":      {`{"model":"default","response_format":{"type":"grammar"},` + user + `}`, 400},
		"RP-4_schema":      {`{"model":"default","response_format":{"type":"json_schema"},` + user + `}`, 400},
		"RP-4_bad_schema":  {`{"model":"default","response_format":{"type":"json_schema","json_schema":{"schema":{"type":7}}},` + user + `}`, 400},
		"RP-4_result":      {`{"model":"default","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"y"}]}`, 400},
		"RP-4_no_run":      {`{"model":"default","messages":[{"role":"tool","tool_call_id":"call_0_1_0","content":"y"}]}`, 404},
		"several":          {`{"model":"default","n":2,` + user + `}`, 400},
		"RP-4_stop":        {`{"model":"default","stop":["1","2","3","4","5"],` + user + `}`, 400},
		"hot":              {`{"model":"default","temperature":3,` + user + `}`, 400},
		"negative":         {`{"model":"default","max_tokens":-1,` + user + `}`, 400},
		"no model":         {`{` + user + `}`, 404},
		"no messages":      {`{"model":"default"}`, 400},
		"last assistant":   {`{"model":"default","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}`, 400},
		"a picture":        {`{"model":"default","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400},
		"RP-4_misspelt":    {`{"model":"default","temprature":1,` + user + `}`, 400},
		"RP-4_top_k":       {`{"model":"default","top_k":-1,` + user + `}`, 400},
		"no such approval": {`{"model":"default","messages":[{"role":"user","content":"approve run_none/1.0"}]}`, 404},
		"call, no result":  {`{"model":"default","messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}]}`, 400},
	} {
		status, _, text := request(t, handler, "POST", "/v1/chat/completions", "application/json", tt.body, "Authorization", "Bearer "+ownToken)
		if status != tt.status || !strings.Contains(text, `"error":{`) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if runs, err := h.Sessions().List(t.Context(), host.SessionFilter{Limit: 10}); err != nil || len(runs) > 0 {
		t.Errorf("%d runs were begun: %v", len(runs), err)
	}
}

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// asker is a toolset with one tool, which asks the question in its arguments and returns the answer.
type asker struct{}

func (asker) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Remote: "ask", Input: json.RawMessage(`{"type":"object"}`), Annotations: tenon.Annotations{ReadOnly: &yes}}}, nil
}

func (asker) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	answer, err := c.Ask(ctx, "elicitation/create", c.Arguments)
	if err != nil {
		return nil, err
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text(string(answer))}}, nil
}

// TestQuestionAtTheTerminal types answers to questions that a server asks during a call.
func TestQuestionAtTheTerminal(t *testing.T) {
	const form = `{"message":"Who\u001b[2J?","requestedSchema":{"type":"object","required":["name"],"properties":{
		"name":{"type":"string","minLength":2},"age":{"type":"integer","maximum":150},"colour":{"type":"string","enum":["r","g"],"enumNames":["Red","Green"],"default":"g"},
		"likes":{"type":"array","items":{"enum":["tea","coffee"]}},"api_key":{"type":"string"}}}}`
	const page = `{"mode":"url","message":"Sign in","url":"https://l\u043egin.example/a?b=c"}`
	tests := map[string]struct {
		params, typed, want string
		shown               []string
	}{
		"a form":   {form, "a\nA\nAnn\n200\n30\n\ntea, 2\n\n", `{"action":"accept","content":{"name":"Ann","age":30,"colour":"g","likes":["tea","coffee"]}}`, []string{"at least 2 characters", "at most 150", "2  Green (g)", `Who\u{1b}[2J?`, `server "crm" asks for a secret: it gets what you type`, "  | Who", "  | name"}},
		"declined": {form, "d\n", `{"action":"decline"}`, []string{"the server asks for input"}},
		"a page":   {page, "what\ny\n", `{"action":"accept"}`, []string{`https://l\u043egin.example/a?b=c`, `leads to   l\u043egin.example`, "tenon opens nothing"}},
		"no page":  {page, "n\n", `{"action":"decline"}`, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			a := newApp(stdio{strings.NewReader(tt.typed), &out, &errs})
			a.lookupEnv = func(string) (string, bool) { return "", false }
			a.inTTY, a.errTTY = true, true
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Interactive: true, Toolsets: map[string]tenon.Toolset{"crm": asker{}}})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			run, err := h.Tools().Start(t.Context(), host.ToolCall{Name: "ask", Arguments: json.RawMessage(tt.params)})
			if err != nil {
				t.Fatal(err)
			}
			r, err := a.followCall(t.Context(), h, "ask", run.ID)
			if err != nil || r.Text() != tt.want {
				t.Errorf("the server was told %v, %v\nwant %s\n%s", r, err, tt.want, errs.String())
			}
			for _, s := range tt.shown {
				if !strings.Contains(errs.String(), s) {
					t.Errorf("%q is not in:\n%s", s, errs.String())
				}
			}
			if strings.ContainsAny(strings.ReplaceAll(errs.String(), "\r\x1b[K", ""), "\x1b") {
				t.Errorf("a hidden character reached the terminal: %q", errs.String())
			}
		})
	}
}

// TestApprovalWords checks that the question for an approval and a short answer fit on a terminal of 80 columns.
func TestApprovalWords(t *testing.T) {
	for _, words := range []string{approvalWords, narrowerWords} {
		if n := len(words); n > 76 {
			t.Errorf("%d characters: %s", n, words)
		}
	}
}

package record_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// shelf offers a prompt before which it asks, and completions.
type shelf struct{}

func (shelf) Prompts(context.Context) ([]mcp.Prompt, error) { return []mcp.Prompt{{Name: "p"}}, nil }

func (shelf) Prompt(ctx context.Context, _ string, _ map[string]string) (json.RawMessage, error) {
	return mcp.CallerOf(ctx).Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"who?"}`))
}

func (shelf) Resources(context.Context) ([]mcp.Resource, error) { return nil, nil }

func (shelf) Read(context.Context, string) ([]tenon.Content, error) { return nil, nil }

func (shelf) Complete(_ context.Context, r mcp.CompletionRequest) (mcp.Completion, error) {
	return mcp.Completion{Values: []string{r.Value + "!"}}, nil
}

// answering answers all questions of a server.
func answering(answer string) func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(answer), nil
	}
}

// TestCompletionsInACassette checks that a recorded completion may stay unused, is answered any number of times, and
// that another one has no values. A cassette with no prompts and resources has empty lists.
func TestCompletionsInACassette(t *testing.T) {
	dir, rec := newCassette(t)
	tab := mcp.CompletionRequest{Prompt: "p", Argument: "a", Value: "x"}
	if _, err := rec.Offers("t", shelf{}).Complete(t.Context(), tab); err != nil {
		t.Fatal(err)
	}
	if _, err := call(rec.Toolset("t", &shop{}), "a", "{}"); err != nil {
		t.Fatal(err)
	}
	for presses := range 3 {
		p := play(t, dir)
		if _, err := call(p.Toolset("t"), "a", "{}"); err != nil {
			t.Error(err)
		}
		for range presses {
			found, err := p.Offers("t").Complete(t.Context(), tab)
			if err != nil || len(found.Values) != 1 || found.Values[0] != "x!" {
				t.Errorf("%v, %v", found, err)
			}
		}
		other := tab
		other.Value = "y"
		if found, err := p.Offers("t").Complete(t.Context(), other); err != nil || len(found.Values) > 0 {
			t.Errorf("%v, %v", found, err)
		}
		prompts, err := p.Offers("t").Prompts(t.Context())
		resources, err2 := p.Offers("other").Resources(t.Context())
		if err != nil || err2 != nil || len(prompts)+len(resources) > 0 {
			t.Errorf("%v, %v, %v, %v", prompts, resources, err, err2)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPromptAsksInACassette checks that the answer to a question of a prompt is not the one to an equal question of a
// tool.
func TestPromptAsksInACassette(t *testing.T) {
	dir, rec := newCassette(t)
	ctx := mcp.WithCaller(t.Context(), &mcp.Caller{Ask: answering(`{"action":"decline"}`)})
	if _, err := rec.Offers("t", shelf{}).Prompt(ctx, "p", nil); err != nil {
		t.Fatal(err)
	}
	c := tenon.Call{Tool: "ask", Progress: func(tenon.Progress) {}, Ask: answering(`{"action":"accept"}`)}
	if _, err := rec.Toolset("t", &shop{}).Call(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	p := play(t, dir)
	a, ok, err := p.Answer("t", "elicitation/create", json.RawMessage(`{"message":"who?"}`))
	if string(a) != `{"action":"accept"}` || !ok || err != nil {
		t.Errorf("%s, %v, %v", a, ok, err)
	}
	if raw, err := p.Offers("t").Prompt(ctx, "p", nil); err != nil || string(raw) != `{"action":"decline"}` {
		t.Errorf("%s, %v", raw, err)
	}
}

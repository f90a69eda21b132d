package mcp_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// TestQuestionDuringAnotherRead checks that a question of a call goes to the caller of the call, also if another client
// has begun to read a resource or to complete a text over the same connection in the meantime.
func TestQuestionDuringAnotherRead(t *testing.T) {
	began, goOn := make(chan string, 4), make(chan struct{})
	s, err := mcp.NewServer(mcp.ServerConfig{NoModern: true, Completions: true,
		Tools: []mcp.ServerTool{tool(`{"name":"slow"}`, func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
			began <- "call"
			<-goOn
			if _, err := r.Ask(ctx, mcp.MethodElicit, json.RawMessage(formParams)); err != nil {
				return nil, err
			}
			return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`), nil
		})},
		Offers: func(ctx context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
			if method == "resources/read" || method == "completion/complete" {
				began <- method
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	overBoth(t, s, mcp.ClientConfig{Answers: allAnswers}, func(t *testing.T, c *mcp.Client) {
		asked := make(chan string, 4)
		asks := func(who string) mcp.AskFunc {
			return func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
				asked <- who
				return json.RawMessage(`{"action":"accept","content":{"name":"x"}}`), nil
			}
		}
		ended, ctx := make(chan struct{}, 3), t.Context()
		go func() {
			defer func() { ended <- struct{}{} }()
			if r, err := c.Call(ctx, tenon.Call{Tool: "slow", Ask: asks("the caller")}); err != nil || r.Text() != "done" {
				t.Errorf("%v, %v", r, err)
			}
		}()
		<-began
		others, leave := context.WithCancel(mcp.WithCaller(ctx, &mcp.Caller{Ask: asks("another client")}))
		go func() { _, _ = c.Read(others, "test://a"); ended <- struct{}{} }()
		<-began
		go func() {
			_, _ = c.Complete(others, mcp.CompletionRequest{Template: "test://{a}", Argument: "a"})
			ended <- struct{}{}
		}()
		<-began
		goOn <- struct{}{}
		if got := <-asked; got != "the caller" {
			t.Errorf("%s is asked", got)
		}
		leave()
		for range 3 {
			<-ended
		}
		if len(asked) != 0 {
			t.Errorf("%s is asked, too", <-asked)
		}
	})
}

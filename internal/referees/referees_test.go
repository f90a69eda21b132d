package referees

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	ours "github.com/tenonhq/tenon/model/anthropic"
	"github.com/tenonhq/tenon/model/gemini"
	chat "github.com/tenonhq/tenon/model/openai"
)

// verdict is the content of a stream as decoded by tenon or by an SDK.
type verdict struct {
	Text          string
	Calls         []string // name and arguments as compact JSON
	Input, Output int64    // -1: not said
	Stop          string   // the provider's own word
}

func (v verdict) String() string {
	return fmt.Sprintf("text %q, calls %v, usage %d/%d, stop %q", v.Text, v.Calls, v.Input, v.Output, v.Stop)
}

func call(name, args string) string {
	var flat bytes.Buffer
	if strings.TrimSpace(args) == "" {
		args = "{}"
	}
	var v any
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return name + " INVALID " + args
	}
	e := json.NewEncoder(&flat) // sorts the keys, because one SDK decodes arguments into a map
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it came out of JSON
	return name + strings.TrimSpace(flat.String())
}

// tenons is our own reading.
func tenons(t *testing.T, r recorded) (verdict, error) {
	env := model.Env{Transport: r}
	cfg := model.Config{Provider: "openai-compatible", Model: "m", BaseURL: "http://localhost/v1", APIKey: tenon.NewSecret("k"), Retries: new(int)}
	var m tenon.Model
	var err error
	switch r.wire {
	case "anthropic":
		cfg.Provider = "anthropic"
		m, err = ours.New(cfg, env)
	case "chat":
		m, err = chat.New(cfg, env)
	case "responses":
		cfg.API = model.APIResponses
		m, err = chat.NewResponses(cfg, env)
	case "gemini":
		cfg.Provider = "gemini"
		m, err = gemini.New(cfg, env)
	}
	if err != nil {
		t.Fatal(err)
	}
	v := verdict{Input: -1, Output: -1}
	for d, err := range m.Generate(t.Context(), &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q")}}) {
		if err != nil {
			return v, err
		}
		if r := d.Response; r != nil {
			v.Text, v.Stop = r.Message.Text(), r.RawStop
			if r.Usage != nil {
				v.Input, v.Output = int64(r.Usage.Input), int64(r.Usage.Output)
			}
			for _, c := range r.Message.Calls() {
				v.Calls = append(v.Calls, call(c.Name, string(c.Arguments)+c.Malformed))
			}
		}
	}
	return v, nil
}

// noPiece is the result for a piece of a stream that an SDK cannot add to the preceding pieces.
const noPiece = "the SDK cannot add a piece"

func theirs(ctx context.Context, r recorded) (verdict, error) {
	switch r.wire {
	case "anthropic":
		return anthropics(ctx, r)
	case "chat":
		return completions(ctx, r)
	case "responses":
		return openAIs(ctx, r)
	}
	return googles(ctx, r)
}

func anthropics(ctx context.Context, r recorded) (verdict, error) {
	c := anthropic.NewClient(anthropicoption.WithAPIKey("k"), anthropicoption.WithBaseURL("http://localhost"), anthropicoption.WithMaxRetries(0),
		anthropicoption.WithHTTPClient(&http.Client{Transport: r}))
	s := c.Messages.NewStreaming(ctx, anthropic.MessageNewParams{Model: "m", MaxTokens: 9, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("q"))}})
	var m anthropic.Message
	for s.Next() {
		if err := m.Accumulate(s.Current()); err != nil {
			return verdict{}, err
		}
	}
	v := verdict{Stop: string(m.StopReason)}
	u := m.Usage
	v.Input, v.Output = u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens, u.OutputTokens
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			v.Text += b.Text
		case "tool_use":
			v.Calls = append(v.Calls, call(b.Name, string(b.Input)))
		}
	}
	return v, s.Err()
}

func completions(ctx context.Context, r recorded) (verdict, error) {
	c := openai.NewClient(openaioption.WithAPIKey("k"), openaioption.WithBaseURL("http://localhost/v1"), openaioption.WithMaxRetries(0),
		openaioption.WithHTTPClient(&http.Client{Transport: r}))
	s := c.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("q")}})
	var a openai.ChatCompletionAccumulator
	for s.Next() {
		if !a.AddChunk(s.Current()) {
			return verdict{}, errors.New(noPiece)
		}
	}
	v := verdict{Input: -1, Output: -1}
	if a.Usage.TotalTokens > 0 {
		v.Input, v.Output = a.Usage.PromptTokens, a.Usage.CompletionTokens
		if n := a.Usage.CompletionTokensDetails.ReasoningTokens; a.Usage.TotalTokens == v.Input+v.Output+n {
			v.Output += n // xAI does not count reasoning as part of the completion
		}
	}
	if len(a.Choices) > 0 {
		m := a.Choices[0].Message
		v.Text, v.Stop = m.Content+m.Refusal, a.Choices[0].FinishReason
		for _, t := range m.ToolCalls {
			v.Calls = append(v.Calls, call(t.Function.Name, t.Function.Arguments))
		}
	}
	return v, s.Err()
}

func openAIs(ctx context.Context, r recorded) (verdict, error) {
	c := openai.NewClient(openaioption.WithAPIKey("k"), openaioption.WithBaseURL("http://localhost/v1"), openaioption.WithMaxRetries(0),
		openaioption.WithHTTPClient(&http.Client{Transport: r}))
	s := c.Responses.NewStreaming(ctx, responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("q")}})
	v := verdict{Input: -1, Output: -1}
	ended := false
	for s.Next() {
		e := s.Current()
		switch e.Type {
		case "response.output_text.delta":
			v.Text += e.Delta
		case "response.refusal.delta":
			v.Text += e.Delta
		case "response.output_item.done":
			switch e.Item.Type {
			case "function_call":
				v.Calls = append(v.Calls, call(e.Item.Name, e.Item.AsFunctionCall().Arguments))
			case "mcp_approval_request": // tenon makes such a request a call of the connector
				r := e.Item.AsMcpApprovalRequest()
				v.Calls = append(v.Calls, call(r.ServerLabel+"__"+r.Name, r.Arguments))
			}
		case "response.failed", "error":
			return v, fmt.Errorf("the provider failed")
		case "response.completed", "response.incomplete":
			ended = true
			v.Stop = string(e.Response.Status)
			if reason := e.Response.IncompleteDetails.Reason; reason != "" {
				v.Stop = reason
			}
			if e.Response.JSON.Usage.Valid() {
				v.Input, v.Output = e.Response.Usage.InputTokens, e.Response.Usage.OutputTokens
			}
		}
	}
	if s.Err() == nil && !ended {
		return v, fmt.Errorf("the stream has no end")
	}
	return v, s.Err()
}

func googles(ctx context.Context, r recorded) (verdict, error) {
	c, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPClient: &http.Client{Transport: r}})
	if err != nil {
		return verdict{}, err
	}
	v := verdict{Input: -1, Output: -1}
	for resp, err := range c.Models.GenerateContentStream(ctx, "m", genai.Text("q"), nil) {
		if err != nil {
			return v, err
		}
		if u := resp.UsageMetadata; u != nil {
			v.Input = int64(u.PromptTokenCount + u.ToolUsePromptTokenCount)
			v.Output = int64(u.CandidatesTokenCount + u.ThoughtsTokenCount)
		}
		if len(resp.Candidates) == 0 {
			continue
		}
		if f := resp.Candidates[0].FinishReason; f != "" {
			v.Stop = string(f)
		}
		if resp.Candidates[0].Content == nil {
			continue
		}
		for _, p := range resp.Candidates[0].Content.Parts {
			if p.FunctionCall != nil {
				args, _ := json.Marshal(p.FunctionCall.Args) // it came out of JSON
				v.Calls = append(v.Calls, call(p.FunctionCall.Name, string(args)))
			} else if !p.Thought {
				v.Text += p.Text
			}
		}
	}
	return v, nil
}

// TestReferees decodes every recorded stream with tenon's adapter and with the official SDK of its wire format. The
// results must be the same.
func TestReferees(t *testing.T) {
	same, excused := map[string]int{}, map[string]int{}
	for _, r := range recordings(t) {
		a, aerr := tenons(t, r)
		b, berr := theirs(t.Context(), r)
		slices.Sort(a.Calls)
		slices.Sort(b.Calls)
		why := excuse(r, a, b, aerr, berr)
		switch {
		case aerr != nil && berr != nil, aerr == nil && berr == nil && a.String() == b.String():
			same[r.wire]++
		case why != "":
			excused[r.wire+": "+why]++
		default:
			t.Errorf("%s (%s)\n  ours:   %v, %v\n  theirs: %v, %v", r.name, r.wire, a, aerr, b, berr)
		}
	}
	for wire, least := range map[string]int{"anthropic": 70, "chat": 140, "responses": 70, "gemini": 40} {
		if same[wire] < least {
			t.Errorf("%s: %d streams are read the same, want %d at least", wire, same[wire], least)
		}
	}
	t.Logf("the same: %v", same)
	for why, n := range excused {
		t.Logf("%d× %s", n, why)
	}
}

// excuse returns the reason why the result of an SDK may differ from tenon's result, or "" if it must not.
func excuse(r recorded, a, b verdict, aerr, berr error) string {
	if aerr != nil {
		return ""
	}
	twice := a
	twice.Input, twice.Output = 2*a.Input, 2*a.Output
	switch {
	case berr != nil && berr.Error() == noPiece && strings.Contains(r.name, "/avian-"):
		return "the SDK adds no pieces whose id changes within an answer"
	case berr != nil:
	case r.wire == "chat" && twice.String() == b.String() && (strings.Contains(r.name, "/groq-") || strings.Contains(r.name, "/huggingface-")):
		return "the server says its usage twice, and the SDK adds both"
	case r.wire == "chat" && strings.Contains(r.name, "mistral-reasoning") && strings.HasPrefix(b.Text, "[{"):
		return "the content is a list of parts, which the SDK takes for a text"
	case r.wire == "gemini" && bytes.Contains(r.body, []byte("partialArgs")) && a.Text == b.Text && a.Stop == b.Stop && a.Input == b.Input && a.Output == b.Output:
		return "the SDK does not join arguments that come in pieces"
	case r.wire == "responses" && (strings.Contains(r.name, "openai-phase.1") || strings.Contains(r.name, "openai-shell-container.1")) && a.Text != "" && a.Stop == b.Stop && a.Input == b.Input:
		return "its authors cut pieces of the text out of the recording; the whole item has it all"
	}
	return ""
}

package react

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// canned is a model with a fixed answer.
type canned struct {
	deltas []tenon.Delta
	err    error
	asked  *tenon.Request
}

func (c *canned) Name() string { return "test/canned" }

func (c *canned) Generate(_ context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		c.asked = req
		for _, d := range c.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if c.err != nil {
			yield(tenon.Delta{}, c.err)
		}
	}
}

func text(chunks ...string) []tenon.Delta {
	var list []tenon.Delta
	for _, c := range chunks {
		list = append(list, tenon.Delta{Kind: tenon.DeltaText, Text: c})
	}
	return list
}

func ended(stop tenon.StopReason, parts ...tenon.Part) tenon.Delta {
	return tenon.Delta{Kind: tenon.DeltaResponse, Response: &tenon.Response{Stop: stop, RawStop: string(stop), Usage: &tenon.Usage{Input: 1, Output: 2},
		Message: &tenon.Message{Role: tenon.RoleAssistant, Parts: parts}}}
}

func textPart(s string) tenon.Part { return tenon.Part{Type: tenon.PartText, Text: s} }

func TestGenerate(t *testing.T) {
	mark := tenon.Part{Type: tenon.PartOpaque, Wire: model.WireScript, Raw: []byte(`{"step":0}`)}
	tests := []struct {
		name   string
		req    tenon.Request
		deltas []tenon.Delta
		want   string // kind:text of the deltas, then the parts and the stop reason of the answer
	}{
		{"a call", tenon.Request{Tools: bank}, append(text("Thought: I ", "look\nAct", "ion: ping\nArgs: {", "}"), ended(tenon.StopEnd, textPart("Thought: I look\nAction: ping\nArgs: {}"), mark)),
			"thinking:I thinking: look call:ping | thinking react I look; call ping {} react_1; opaque script; tool_use tool_use"},
		{"an answer", tenon.Request{Tools: bank}, append(text("Thought: so\nFinal ", "Answer: 4", "2"), ended(tenon.StopEnd, textPart("Thought: so\nFinal Answer: 42"))),
			"thinking:so text:4 text:2 | thinking react so; text 42; stop"},
		{"pieces that were missed", tenon.Request{Tools: bank}, append(text("Thought: so\nFin"), ended(tenon.StopEnd, textPart("Thought: so\nFinal Answer: 42"))),
			"thinking:so text:42 | thinking react so; text 42; stop"},
		{"no pieces", tenon.Request{Tools: bank}, []tenon.Delta{ended(tenon.StopEnd, textPart("Final Answer: 42"))}, "text:42 | text 42; stop"},
		{"other pieces", tenon.Request{Tools: bank}, append(text("Final Answer: 41"), ended(tenon.StopEnd, textPart("Final Answer: 42"))),
			"text:41 reset:the answer differs from its stream text:42 | text 42; stop"},
		{"it starts over", tenon.Request{Tools: bank}, append(append(text("Final Answer: 4"), tenon.Delta{Kind: tenon.DeltaReset, Text: "broken"}), append(text("Final Answer: 42"), ended(tenon.StopEnd, textPart("Final Answer: 42")))...),
			"text:4 reset:broken text:42 | text 42; stop"},
		{"its own thinking", tenon.Request{Tools: bank}, append([]tenon.Delta{{Kind: tenon.DeltaThinking, Text: "hm"}}, append(text("Thought: so\nFinal Answer: 42"),
			ended(tenon.StopEnd, tenon.Part{Type: tenon.PartThinking, Text: "hm", Wire: "x", Raw: []byte("1")}, textPart("Thought: so\nFinal Answer: 42")))...),
			"thinking:hm thinking:\n thinking:so text:42 | thinking  hm; thinking react so; text 42; stop"},
		{"bad JSON", tenon.Request{Tools: bank}, []tenon.Delta{ended(tenon.StopEnd, textPart("Thought: so\nAction: ping\nArgs: {x}"))},
			`thinking:so | thinking react so; opaque react {"error":"Invalid JSON in Args: invalid character 'x' looking for beginning of object key string: {x}","reply":"Thought: so\nAction: ping\nArgs: {x}",HINT}; bad_call LLM parse error: Invalid JSON in Args: invalid character 'x' looking for beginning of object key string: {x}`},
		{"nothing", tenon.Request{Tools: bank}, []tenon.Delta{ended(tenon.StopEnd)},
			`| opaque react {"error":"Could not parse response: (nothing)","reply":"(nothing)",HINT}; bad_call LLM parse error: Could not parse response: (nothing)`},
		{"cut off in the arguments", tenon.Request{Tools: bank}, []tenon.Delta{ended(tenon.StopMaxTokens, textPart("Thought: so\nAction: ping\nArgs: {\"a"))},
			"thinking:so | thinking react so; max_tokens"},
		{"cut off before the arguments", tenon.Request{Tools: bank}, []tenon.Delta{ended(tenon.StopMaxTokens, textPart("Thought: so\nAction: ping\n"))},
			"thinking:so | thinking react so; max_tokens"},
		{"cut off behind the step", tenon.Request{Tools: bank}, []tenon.Delta{ended(tenon.StopMaxTokens, textPart("Action: ping\nArgs: {}\nObservation: 5\nThou"))},
			"call:ping reset:the reply was read in another way | max_tokens"},
		{"cut off in the answer", tenon.Request{Tools: bank}, []tenon.Delta{ended(tenon.StopMaxTokens, textPart("Final Answer: 4"))}, "text:4 | text 4; max_tokens"},
		{"a refusal", tenon.Request{Tools: bank}, []tenon.Delta{ended(tenon.StopContentFilter, textPart("I cannot"))}, "| content_filter"},
		{"it calls tools after all", tenon.Request{Tools: bank}, []tenon.Delta{ended(tenon.StopToolUse, tenon.Part{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "1", Name: "ping"}})},
			"| call ping  1; tool_use"},
		{"no tools", tenon.Request{}, append(text("Thought: 42"), ended(tenon.StopEnd, textPart("Thought: 42"))), "text:Thought: 42 | text Thought: 42; stop"},
		{"the last word as text", tenon.Request{Messages: twoSteps()[:3]}, append(text("It is 42"), ended(tenon.StopEnd, textPart("It is 42"))), "| text It is 42; stop"},
		{"the last word as answer", tenon.Request{Messages: twoSteps()[:3]}, []tenon.Delta{ended(tenon.StopEnd, textPart("Final Answer: 42"))}, "text:42 | text 42; stop"},
		{"RP-1 an answer that announces calls", tenon.Request{Tools: bank}, []tenon.Delta{ended(tenon.StopToolUse, textPart("Final Answer: 42"))}, "text:42 | text 42; stop"},
		{"the last word is a call", tenon.Request{Tools: bank, ToolChoice: "none"}, []tenon.Delta{ended(tenon.StopEnd, textPart("Thought: I look\nAction: ping"))}, "thinking:I look | text I look; stop"},
	}
	p, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.req.Messages == nil {
				tt.req.Messages = []*tenon.Message{tenon.UserMessage("?")}
			}
			var got []string
			for d, err := range Wrap(&canned{deltas: tt.deltas}, p).Generate(t.Context(), &tt.req) {
				if err != nil {
					t.Fatal(err)
				}
				if d.Response == nil {
					got = append(got, d.Kind+":"+d.Text)
					continue
				}
				if d.Response.Usage == nil {
					t.Error("what it used is lost")
				}
				got = append(got, "| "+shown(d.Response))
			}
			hint, _ := json.Marshal(form)
			want := strings.ReplaceAll(tt.want, "HINT", `"hint":`+string(hint))
			if s := strings.Join(got, " "); s != want {
				t.Errorf("\n got %q\nwant %q", s, want)
			}
		})
	}
}

func shown(r *tenon.Response) string {
	var s string
	for _, p := range r.Message.Parts {
		switch {
		case p.Call != nil:
			s += "call " + p.Call.Name + " " + string(p.Call.Arguments) + " " + p.Call.ID
		case p.Type == tenon.PartThinking:
			s += p.Type + " " + p.Wire + " " + p.Text
		case p.Wire == wire:
			s += p.Type + " " + p.Wire + " " + string(p.Raw)
		case p.Type == tenon.PartOpaque:
			s += p.Type + " " + p.Wire
		default:
			s += p.Type + " " + p.Text
		}
		s += "; "
	}
	s += string(r.Stop)
	if r.Stop == tenon.StopBadCall || r.Stop == tenon.StopToolUse && r.RawStop == "stop" {
		s += " " + strings.Replace(r.RawStop, "stop", "tool_use", 1)
	}
	return s
}

// TestGenerateStops checks that a caller can stop reading the stream, and that errors of the model are returned.
func TestGenerateStops(t *testing.T) {
	p, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	req := &tenon.Request{Tools: bank, Messages: []*tenon.Message{tenon.UserMessage("?")}}
	inner := &canned{deltas: text("Thought: a b\nc", " d\nFinal Answer: x y"), err: tenon.Errorf(tenon.CodeTimeout, "slow")}
	for n := range 4 {
		seen := 0
		for range Wrap(inner, p).Generate(t.Context(), req) {
			if seen++; seen > n {
				break
			}
		}
	}
	var last error
	for _, err := range Wrap(inner, p).Generate(t.Context(), req) {
		last = err
	}
	if tenon.ErrorCode(last) != tenon.CodeTimeout {
		t.Errorf("%v", last)
	}
	if got := inner.asked; len(got.Tools) != 0 || !strings.Contains(got.Messages[0].Text(), "Question: ?") {
		t.Errorf("%+v", got)
	}
	if got := Wrap(inner, p).Name(); got != "test/canned" {
		t.Error(got)
	}
}

// TestRequestKeepsPictures checks that the wrapped model gets the images and the script's mark of a request.
func TestRequestKeepsPictures(t *testing.T) {
	p, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	q := tenon.UserMessage("what is it?")
	q.Parts = append(q.Parts, tenon.Part{Type: tenon.PartImage, MimeType: "image/png", Data: "QQ=="})
	c := call("t", "ping", "{}")
	c.Parts = append(c.Parts, tenon.Part{Type: tenon.PartOpaque, Wire: model.WireScript, Raw: []byte("{}")}, tenon.Part{Type: tenon.PartOpaque, Wire: "anthropic", Raw: []byte("{}")})
	req, err := p.Request(&tenon.Request{Tools: bank, ToolChoice: "ping", Messages: []*tenon.Message{q, c, result("ping", "pong")}})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, part := range req.Messages[0].Parts {
		kinds = append(kinds, part.Type)
	}
	if got := strings.Join(kinds, " "); got != "text image opaque" {
		t.Error(got)
	}
	first, err := p.Request(&tenon.Request{Tools: bank, ToolChoice: "ping", Messages: []*tenon.Message{q}})
	if err != nil {
		t.Fatal(err)
	}
	const must = "Your next step must be the action ping."
	if strings.Contains(req.Messages[0].Text(), must) || !strings.Contains(first.Messages[0].Text(), must) {
		t.Error("a tool choice holds for the first step")
	}
}

// TestNoFinish checks a reply whose stream ended without a finish reason. It may have been cut off, so that only
// arguments that are written completely count.
func TestNoFinish(t *testing.T) {
	p, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for reply, want := range map[string]tenon.StopReason{
		"Thought: x\nAction: list":                              tenon.StopBadCall,
		"Action: list\nArgs: {\"path\": \"/x\"":                 tenon.StopBadCall,
		"action: list\nargs: {'path': '/x'":                     tenon.StopBadCall,
		"{\"name\": \"list\", \"arguments\": {\"path\": \"/x\"": tenon.StopBadCall,
		"Action: list\nArgs: {\"path\": \"/x\"}":                tenon.StopToolUse,
		"{\"name\": \"list\", \"arguments\": {}}":               tenon.StopToolUse,
		"Final Answer: x":                                       tenon.StopEnd,
	} {
		t.Run("MD-11_"+reply, func(t *testing.T) {
			d := ended(tenon.StopEnd, textPart(reply))
			d.Response.RawStop = model.NoFinish
			req := &tenon.Request{Tools: household, Messages: []*tenon.Message{tenon.UserMessage("?")}}
			for d, err := range Wrap(&canned{deltas: []tenon.Delta{d}}, p).Generate(t.Context(), req) {
				if err != nil {
					t.Fatal(err)
				}
				if d.Response != nil && d.Response.Stop != want {
					t.Errorf("%s: %+v", d.Response.Stop, d.Response.Message)
				}
			}
		})
	}
}

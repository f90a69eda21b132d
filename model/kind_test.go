package model_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// TestKindOf checks how errors of providers are classified, and the advice for each kind.
func TestKindOf(t *testing.T) {
	object := func(typ, message string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":%q}}`, message, typ)
	}
	for name, c := range map[string]struct {
		wire  string
		reply reply
		want  model.Kind
	}{
		"no such key":       {"chat", reply{status: 401, body: object("invalid_api_key", "Incorrect API key provided")}, model.KindAuth},
		"forbidden":         {"anthropic", reply{status: 403, body: object("permission_error", "no")}, model.KindAuth},
		"gemini's 400":      {"gemini", reply{status: 400, body: `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"API key not valid. Please pass a valid API key."}}`}, model.KindAuth},
		"quota":             {"chat", reply{status: 429, body: object("insufficient_quota", "You exceeded your current quota")}, model.KindQuota},
		"credit":            {"anthropic", reply{status: 400, body: object("invalid_request_error", "Your credit balance is too low")}, model.KindQuota},
		"quota in stream":   {"responses", reply{body: `data: {"type":"error","error":{"type":"insufficient_quota","message":"no"}}` + "\n\n"}, model.KindQuota},
		"rate":              {"chat", reply{status: 429, body: object("rate_limit_exceeded", "slow down")}, model.KindRate},
		"gemini's rate":     {"gemini", reply{status: 429, body: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow"}}`}, model.KindRate},
		"overload":          {"anthropic", reply{status: 529, body: object("overloaded_error", "Overloaded")}, model.KindOverload},
		"overload inside":   {"anthropic", reply{body: `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n"}, model.KindOverload},
		"gemini's overload": {"gemini", reply{status: 503, body: `{"error":{"code":503,"status":"UNAVAILABLE","message":"overloaded"}}`}, model.KindOverload},
		"broken":            {"chat", reply{status: 500}, model.KindOverload},
		"too long":          {"chat", reply{status: 400, body: object("context_length_exceeded", "maximum context length")}, model.KindTooLong},
		"prompt too long":   {"anthropic", reply{status: 400, body: object("invalid_request_error", "prompt is too long: 210000 tokens")}, model.KindTooLong},
		"gemini too long":   {"gemini", reply{status: 400, body: `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."}}`}, model.KindTooLong},
		"llama.cpp":         {"chat", reply{status: 400, body: object("exceed_context_size_error", "the request exceeds the available context size, try increasing it")}, model.KindTooLong},
		"no such model":     {"chat", reply{status: 404, body: object("model_not_found", "no")}, model.KindRefused},
		"bad request":       {"anthropic", reply{status: 400, body: object("invalid_request_error", "tools.0: bad")}, model.KindRefused},
		"no JSON":           {"chat", reply{body: "data: {oops\n\n"}, model.KindMalformed},
		"a web page":        {"chat", reply{body: "<html>", header: map[string]string{"Content-Type": "text/html"}}, model.KindMalformed},
		"cut off":           {"gemini", reply{body: `data: {"candidates":[{"content":{"parts":[{"text":"x"}]}}]}` + "\n\n"}, model.KindCutOff},
		"broke":             {"chat", reply{body: `data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\n", cut: true}, model.KindCutOff},
		"nobody there":      {"chat", reply{err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, model.KindUnreachable},
		"408":               {"chat", reply{status: 408}, model.KindTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{replies: []reply{c.reply}}
			m := open(t, c.wire, "http://localhost", p.env())
			_, err := generate(t.Context(), m, question)
			if got := model.KindOf(err); got != c.want || got.Advice() == model.KindOther.Advice() {
				t.Errorf("%v is %s, want %s", err, got, c.want)
			}
		})
	}
	if got := model.KindOf(io.EOF); got != model.KindOther {
		t.Errorf("an error of somebody else is %s", got)
	}
	if got := model.KindOf(tenon.Errorf(tenon.CodeAuth, "x")); got != model.KindAuth {
		t.Errorf("an error without a kind is %s", got)
	}
}

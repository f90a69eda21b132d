package mcp

import (
	"context"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Caller is the client on whose behalf tenon makes a request, as the gateway does. The server is offered this
// client's capabilities, as far as [Answers] allows them, and its log messages go to this client.
type Caller struct {
	// Capabilities is the object of capabilities that the client declared.
	Capabilities json.RawMessage
	// LogLevel is the minimum level of the log messages that the client wants; "" means none.
	LogLevel string
	// Log receives the params of the server's log messages while the request is open. It must not block. It may be
	// nil.
	Log func(params json.RawMessage)
	// Ask answers questions of a legacy server during prompts/get, resources/read and completion/complete; nil refuses
	// them. Calls of tools have [tenon.Call.Ask].
	Ask AskFunc
	// Input answers what a modern server asked for during prompts/get or resources/read; nil on the first request.
	// [Client.Prompt] returns results that are input_required, and [Client.Read] returns them as an [*InputError],
	// because Ask or the client answers them.
	Input *tenon.InputAnswer
	// Check is called with the input schema of a tool before the client's call of it begins. Its error is the answer.
	// It may be nil; see [ToolRequest.CheckHeaders].
	Check func(schema json.RawMessage) error
	// Original receives the result of a call with the hidden characters that the server sent, if the journal has codes
	// in their place. Secrets and the members that rules name are masked. It must not block. It may be nil.
	Original func(r *tenon.Result)
}

type callerKey struct{}

// WithCaller returns a context whose requests are made for a client.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the client behind a request, or nil if there is none.
func CallerOf(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}

// can reports whether the client has declared a capability. It returns false for a nil Caller.
func (c *Caller) can(capability string) bool {
	return c != nil && rawjson.IsObject(rawjson.Field(c.Capabilities, capability))
}

// CanAnswer reports whether the client has declared that it answers a request of a server.
func (c *Caller) CanAnswer(method string, params json.RawMessage) bool {
	switch method {
	case MethodSample:
		return c.can("sampling")
	case MethodRoots:
		return c.can("roots")
	case MethodElicit:
		form, url := c.elicits()
		if rawjson.String(rawjson.Field(params, "mode")) == "url" {
			return url
		}
		return form
	}
	return false
}

// elicits returns the modes of elicitation that the client declared. An empty capability means forms.
func (c *Caller) elicits() (form, url bool) {
	if !c.can("elicitation") {
		return false, false
	}
	modes := rawjson.Field(c.Capabilities, "elicitation")
	form, url = rawjson.Field(modes, "form") != nil, rawjson.Field(modes, "url") != nil
	return form || !url, url
}

// ClientAnswers are the questions of a server that only the client behind a request answers. The server is offered
// them only if that client declared that it does.
type ClientAnswers struct{ Elicitation, Sampling, Roots bool }

// For returns the answers that a request offers to the server. c is the client behind the request, or nil if there is
// none.
func (a Answers) For(c *Caller) Answers {
	if a.Client == (ClientAnswers{}) {
		return a
	}
	if a.Client.Elicitation {
		a.Form, a.URL = c.elicits()
	}
	if a.Client.Sampling {
		a.Sampling = c.can("sampling")
	}
	if a.Client.Roots && c.can("roots") {
		a.Roots = []Root{}
	}
	return a
}

// all returns the answers that any request may offer. A legacy server is offered all of them, because its session is
// shared by all requests.
func (a Answers) all() Answers {
	if a.Client.Elicitation {
		a.Form, a.URL = true, true
	}
	a.Sampling = a.Sampling || a.Client.Sampling
	if a.Client.Roots && a.Roots == nil {
		a.Roots = []Root{}
	}
	return a
}

// AsksForRoots reports whether the client behind a request, not the configuration, has the roots.
func (a Answers) AsksForRoots(c *Caller) bool { return a.Client.Roots && c.can("roots") }

// logs passes a log message to the client behind an open request, if the client wants its level. It reports whether
// the message belongs to a request with a client.
func (o *openCall) logs(params json.RawMessage) bool {
	if o == nil || o.caller == nil || o.caller.Log == nil {
		return false
	}
	level := rawjson.String(rawjson.Field(params, "level"))
	if o.caller.LogLevel != "" && levelOf(level) >= levelOf(o.caller.LogLevel) {
		o.caller.Log(params)
	}
	return true
}

// logLevels are the levels of log messages, the lowest first.
var logLevels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// levelOf returns the rank of a level of log messages; an unknown one ranks as the highest.
func levelOf(level string) int {
	for i, l := range logLevels {
		if l == level {
			return i
		}
	}
	return len(logLevels)
}

package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// Toolsets and models of the program must keep the promises of the interfaces in package tenon. Their values are
// checked like values that a peer sends. A defect or a panic fails the call and not the process, in which other runs
// are at work.

// ownTools is a toolset of the program, or one that the program wrapped.
type ownTools struct {
	tenon.Toolset
	server string
	log    *slog.Logger

	mu         sync.Mutex
	last, once []tenon.Tool // the last list, and that list without repeated names
	repeated   []string     // remote names that the last list has more than once
}

func newOwnTools(server string, t tenon.Toolset, log *slog.Logger) *ownTools {
	return &ownTools{Toolset: t, server: server, log: log}
}

// Tools implements [tenon.Toolset]. If several tools have the same name, it returns the first one, as for servers.
func (o *ownTools) Tools(ctx context.Context) (tools []tenon.Tool, err error) {
	if !isolated(func() { tools, err = o.list(ctx) }) {
		o.log.Error("a toolset of the program "+exited, "server", o.server)
		return nil, tenon.Errorf(tenon.CodeInternal, "toolset '%s' %s when it was asked for its "+
			"tools", o.server, exited)
	}
	return tools, err
}

func (o *ownTools) list(ctx context.Context) (tools []tenon.Tool, err error) {
	defer func() {
		if p := recover(); p != nil {
			o.log.Error("a toolset of the program panicked", "server", o.server, "panic", fmt.Sprint(p), "stack",
				string(debug.Stack()))
			tools, err = nil, tenon.Errorf(tenon.CodeInternal, "toolset '%s' panicked when it was asked for "+
				"its tools", o.server)
		}
	}()
	if tools, err = o.Toolset.Tools(ctx); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !tenon.SameTools(o.last, tools) || len(tools) == 0 {
		o.last, o.repeated = tools, nil
		o.once = o.distinct(withRemotes(tools))
	}
	return o.once, nil
}

// problems are about the tools that the last list has more than once.
func (o *ownTools) problems() (list []error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range o.repeated {
		list = append(list, tenon.Errorf(tenon.CodeConfig, "tool '%s' of server '%s' is left out: it is the "+
			"second one of this name; the first one is offered", tenon.Visible(name), o.server))
	}
	return list
}

// withRemotes returns the tools with Remote set. If a program has set only Name, Remote becomes equal to Name.
func withRemotes(tools []tenon.Tool) []tenon.Tool {
	if !slices.ContainsFunc(tools, func(t tenon.Tool) bool { return t.Remote == "" && t.Name != "" }) {
		return tools
	}
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Remote = cmp.Or(tools[i].Remote, tools[i].Name)
	}
	return tools
}

func (o *ownTools) distinct(tools []tenon.Tool) []tenon.Tool {
	seen := make(map[string]bool, len(tools))
	twice := func(t tenon.Tool) bool {
		had := seen[t.Remote]
		seen[t.Remote] = true
		if had {
			o.log.Warn("left out a second tool of the same name", "server", o.server, "tool",
				strconv.QuoteToASCII(t.Remote))
			o.repeated = append(o.repeated, t.Remote)
		}
		return had
	}
	if i := slices.IndexFunc(tools, twice); i >= 0 {
		return append(slices.Clone(tools[:i]), slices.DeleteFunc(slices.Clone(tools[i+1:]), twice)...)
	}
	return tools
}

// Call implements [tenon.Toolset].
func (o *ownTools) Call(ctx context.Context, c tenon.Call) (r *tenon.Result, err error) {
	if !isolated(func() { r, err = o.call(ctx, c) }) {
		o.log.Error("a toolset of the program "+exited, "server", o.server, "tool", c.Tool)
		return tenon.ErrorResult("the tool failed"), nil
	}
	return r, err
}

func (o *ownTools) call(ctx context.Context, c tenon.Call) (r *tenon.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			o.log.Error("a toolset of the program panicked", "server", o.server, "tool", c.Tool, "panic",
				fmt.Sprint(p), "stack", string(debug.Stack()))
			r, err = tenon.ErrorResult("the tool failed"), nil
		}
	}()
	if r, err = o.Toolset.Call(ctx, c); err != nil {
		return nil, err
	}
	wrong := func(what string) (*tenon.Result, error) {
		return nil, tenon.Errorf(tenon.CodeProtocol, "tool '%s' of toolset '%s' gave %s", c.Tool, o.server, what)
	}
	switch {
	case r == nil:
		return wrong("neither a result nor an error")
	case len(r.Raw) > 0 && !json.Valid(r.Raw):
		return wrong("a result whose Raw is not JSON")
	case len(r.Structured) > 0 && !json.Valid(r.Structured):
		return wrong("a result whose Structured is not JSON")
	case len(r.Meta) > 0 && !json.Valid(r.Meta):
		return wrong("a result whose Meta is not JSON")
	}
	return r, nil
}

// ownModel is a model of the program.
type ownModel struct {
	tenon.Model
	key string // in [Config.Models]
	log *slog.Logger
}

// Name implements [tenon.Model]. If the model's method panics, the name is the one in [Config.Models].
func (o ownModel) Name() (name string) {
	defer func() {
		name = cmp.Or(name, o.key)
	}()
	defer guard(o.log, "Name of model "+o.key, nil)
	return o.Model.Name()
}

// Generate implements [tenon.Model].
func (o ownModel) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		var err error
		ended := false // what the model does after the end is ignored
		until := func(d tenon.Delta, err error) bool {
			more := yield(d, err)
			ended = !more || d.Response != nil
			return more
		}
		if !isolated(func() { err = o.pass(ctx, req, until) }) && !ended {
			o.log.Error("a model of the program "+exited, "model", o.key)
			err = tenon.Errorf(tenon.CodeInternal, "model %s %s", o.key, exited)
		}
		if err != nil {
			yield(tenon.Delta{}, err)
		}
	}
}

// pass yields the model's deltas until the model ends, fails, or has answered. It returns the error.
func (o ownModel) pass(ctx context.Context, req *tenon.Request, yield func(tenon.Delta, error) bool) (err error) {
	ended := false // a panic after the end is ignored
	defer func() {
		if p := recover(); p != nil && !ended {
			o.log.Error("a model of the program panicked", "model", o.Name(), "panic", fmt.Sprint(p), "stack",
				string(debug.Stack()))
			err = tenon.Errorf(tenon.CodeInternal, "model %s panicked", o.Name())
		}
	}()
	for d, err := range o.Model.Generate(ctx, req) {
		var known *tenon.Error
		switch {
		case err != nil && !errors.As(err, &known):
			return tenon.Errorf(tenon.CodeModel, "model %s: %w", o.Name(), err)
		case err != nil:
			return err
		case d.Response != nil:
			if d.Response, err = o.sound(d.Response); err != nil {
				return err
			}
			ended = true
			yield(d, nil)
			return nil
		}
		if ended = !yield(d, nil); ended {
			return nil
		}
	}
	return nil // the model ended without a response, which the caller reports
}

// sound checks the answer of a Go program's model. Mistakes that can be corrected are corrected in a copy, with a
// warning. Other mistakes are errors.
func (o ownModel) sound(r *tenon.Response) (*tenon.Response, error) {
	switch r.Stop {
	case tenon.StopEnd, tenon.StopToolUse, tenon.StopMaxTokens, tenon.StopContextFull, tenon.StopContentFilter,
		tenon.StopPause, tenon.StopBadCall, tenon.StopError:
	default:
		return nil, tenon.Errorf(tenon.CodeProtocol, "model %s gave an answer with the stop reason %q; "+
			"Response.Stop must be a stop reason of package tenon, such as %q, or %q with calls",
			o.Name(), r.Stop, tenon.StopEnd, tenon.StopToolUse)
	}
	out, m := *r, &tenon.Message{Role: tenon.RoleAssistant}
	out.Message, out.Warnings = m, slices.Clone(r.Warnings)
	if r.Message == nil {
		return &out, nil
	}
	if r.Message.Role != "" && r.Message.Role != tenon.RoleAssistant {
		return nil, tenon.Errorf(tenon.CodeProtocol, "model %s gave an answer with a message of role %q; the role of "+
			"Response.Message must be %q", o.Name(), r.Message.Role, tenon.RoleAssistant)
	}
	m.By = r.Message.By
	nameless := false
	for _, p := range r.Message.Parts {
		switch {
		case p.Type == tenon.PartCall && (p.Call == nil || p.Call.Name == ""):
			out.Warnings = append(out.Warnings, "a tool call without a name is left out")
			nameless = true
			continue
		case p.Type == tenon.PartResult:
			out.Warnings = append(out.Warnings, "a tool result in an answer of the model is left out")
			continue
		case p.Type == tenon.PartCall && p.Call.Malformed == "" && len(p.Call.Arguments) > 0 &&
			!json.Valid(p.Call.Arguments):
			c := *p.Call
			c.Arguments = nil
			model.SetArguments(&c, string(p.Call.Arguments))
			p.Call = &c
		}
		if len(p.Raw) > 0 && !json.Valid(p.Raw) {
			p.Wire, p.Raw = "", nil
		}
		m.Parts = append(m.Parts, p)
	}
	if nameless && len(m.Calls()) == 0 && (out.Stop == tenon.StopEnd || out.Stop == tenon.StopToolUse) {
		out.Stop, out.RawStop = tenon.StopBadCall, "the tool call has no name"
	}
	return &out, nil
}

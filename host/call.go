package host

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
)

// CallTool makes one tool call for a person and returns its result and the run
// that it was recorded as. The call is the person's consent; it is journaled
// as such. A failure that the tool reports is a result with IsError. Name is
// the exposed name. Arguments are an object, or empty. Progress may be nil. Errors: not_found, invalid (the
// arguments), denied, unreachable, auth_required, timeout, unknown_outcome,
// tool_error (a JSON-RPC error of the server), waiting (the server asks for input
// first: Decide and Resume answer, FollowCall goes on), cancelled.
func (h *Host) CallTool(ctx context.Context, name string, args json.RawMessage, progress func(tenon.Progress)) (*tenon.Result, string, error) {
	run, err := h.StartCall(ctx, name, args)
	if err != nil {
		return nil, "", err
	}
	result, err := h.FollowCall(ctx, run.ID, 0, func(e tenon.Event) {
		var p tenon.Progress
		if progress != nil && e.Kind == agent.LiveProgress && json.Unmarshal(e.Data, &p) == nil {
			progress(p)
		}
	})
	return result, run.ID, err
}

// StartCall begins the tool call of a person. See [Host.CallTool].
func (h *Host) StartCall(ctx context.Context, name string, args json.RawMessage) (tenon.Run, error) {
	return h.StartCallAs(ctx, tenon.PrincipalLocal, name, args)
}

// StartCallAs begins the tool call of a principal. See [Host.CallTool].
func (h *Host) StartCallAs(ctx context.Context, who tenon.Principal, name string, args json.RawMessage) (tenon.Run, error) {
	return h.StartToolCall(ctx, ToolCall{Name: name, Arguments: args, Principal: who})
}

// ToolCall is a tool call that a person makes.
type ToolCall struct {
	Name      string          // as it is exposed
	Arguments json.RawMessage // an object; empty: none
	Principal tenon.Principal
	// Server is the only one that is asked for its tools; empty: all.
	Server string
	// Of a workflow: its tables (Arrow files or streams, by port), who allowed beforehand
	// what its steps ask, and whether the folder of one that fails is kept. Arguments are its
	// parameters alone.
	Inputs map[string][]byte
	Grant  string
	Debug  bool
	// Credentials are what the caller has of its own at servers; see [Host.Accept].
	Credentials Credentials
}

// StartToolCall begins the tool call of a person. See [Host.CallTool].
func (h *Host) StartToolCall(ctx context.Context, c ToolCall) (tenon.Run, error) {
	var only []string
	if c.Server != "" {
		only = []string{c.Server}
	}
	snapshot, problems, err := h.Tools(ctx, only...)
	if err != nil {
		return tenon.Run{}, err
	}
	if len(c.Arguments) == 0 {
		c.Arguments = json.RawMessage("{}")
	}
	name, args, who := c.Name, c.Arguments, c.Principal
	spec := agent.DirectSpec{Name: name, By: string(who), MaxDepth: h.config.Limits.WithDefaults().MaxDepth, Inner: c.Grant, Debug: c.Debug}
	var blobs [][]byte
	if t, ok := snapshot.Lookup(name); ok && t.Server == catalog.WorkflowServer {
		if args, blobs, err = h.flowArguments(ctx, t.Remote, &c, &spec); err != nil {
			return tenon.Run{}, err
		}
	} else if ok && len(c.Inputs) > 0 {
		return tenon.Run{}, tenon.Errorf(tenon.CodeInvalid, "tool '%s' is no workflow and takes no tables", name)
	}
	if _, err := snapshot.Prepare(&tenon.ToolCall{Name: name, Arguments: args}); err != nil {
		if len(problems) > 0 && tenon.ErrorCode(err) == tenon.CodeNotFound {
			return tenon.Run{}, problems[0].Err // the tool may be one of that server's
		}
		return tenon.Run{}, err
	}
	spec.Arguments, spec.Tools, spec.Brought = args, snapshot.Digest(), c.Credentials.servers()
	h.remember(spec.Tools, snapshot)
	run := tenon.Run{ID: tenon.NewID("run", h.now()), Core: agent.DirectVersion, Principal: who, Title: shorten("call "+name, titleLen),
		State: tenon.RunWorking, Created: h.now(), Updated: h.now()}
	return run, h.startWith(ctx, engine.Spec{Run: run, Data: encode(spec), Fresh: true, Blobs: blobs}, snapshot, c.Credentials)
}

// FollowCall follows a call that StartCall began, from the event after the given
// one, and returns its result. Watch is given every event, the live ones too; it
// must not block for long. When ctx ends, so does the call, unless the cause is
// [tenon.ErrClosing]: it goes on then.
func (h *Host) FollowCall(ctx context.Context, run string, after uint64, watch func(tenon.Event)) (*tenon.Result, error) {
	result, err := CallResult(ctx, run, h.engine.Events(ctx, run, after), watch)
	if err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), tenon.ErrClosing) {
		// The caller gave up: so does the call. The server is told.
		_ = h.engine.Cancel(context.WithoutCancel(ctx), run, "the caller gave up")
	}
	return result, err
}

// CallResult reads the result of a call out of the events of its run, as
// [Host.FollowCall] does.
func CallResult(ctx context.Context, run string, events iter.Seq2[tenon.Event, error], watch func(tenon.Event)) (*tenon.Result, error) {
	var result *tenon.Result
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		watch(e)
		switch e.Kind {
		case agent.EventResult:
			var o agent.Outcome
			if err := json.Unmarshal(e.Data, &o); err != nil {
				return nil, tenon.Errorf(tenon.CodeStore, "run %s: the result cannot be read: %w", run, err)
			}
			result = o.Result
		case engine.EventWaiting:
			return nil, tenon.Errorf(tenon.CodeWaiting, "the call waits for a decision, or for what a server asks; answer with tenon approvals allow %s, then tenon runs resume %s", run, run)
		case tenon.EventDone:
			var d tenon.DoneData
			if err := json.Unmarshal(e.Data, &d); err != nil {
				return nil, tenon.Errorf(tenon.CodeStore, "run %s: its end cannot be read: %w", run, err)
			}
			if d.Error != nil {
				return nil, d.Error
			}
			return result, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, tenon.Errorf(tenon.CodeCancelled, "the call was cancelled: %w", err)
	}
	return nil, tenon.Errorf(tenon.CodeInternal, "run %s ended without saying how", run)
}

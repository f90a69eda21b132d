package host

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/view"
)

// CallTool makes one tool call and returns its result and the id of the run that records it. The call is the consent
// of its caller. A failure that the tool reports is a result with IsError. Name is the exposed name or SERVER.REMOTE,
// args an object or empty; progress may be nil. h is a *[Host], or the client of package httpapi. Errors: not_found,
// invalid (the arguments), denied, unreachable, auth_required, timeout, unknown_outcome, tool_error (a JSON-RPC error
// of the server), waiting (the server asks for input: decide, resume and use [FollowCall]), cancelled.
func CallTool(ctx context.Context, h interface {
	Tools() Tools
	Runs() Runs
}, name string, args json.RawMessage, progress func(tenon.Progress)) (*tenon.Result, string, error) {
	run, err := h.Tools().Start(ctx, ToolCall{Name: name, Arguments: args})
	if err != nil {
		return nil, "", err
	}
	result, err := FollowCall(ctx, h.Runs(), run.ID, 0, func(e tenon.Event) {
		if progress == nil || e.Kind != agent.LiveProgress {
			return
		}
		p, err := view.Try[tenon.Progress](e)
		if err == nil {
			progress(p)
		}
	})
	return result, run.ID, err
}

// ToolCall is a request to call a tool.
type ToolCall struct {
	Name      string          // the exposed name, or SERVER.REMOTE
	Arguments json.RawMessage // an object; empty means no arguments
	// Words are arguments that a person wrote on a command line. They replace Arguments; see [catalog.ReadWords].
	Words     []catalog.Word
	Principal tenon.Principal // empty: the local user
	// Server is the only server whose tools are listed to find the tool; empty means all.
	Server string
	// Of, if not empty, is the server of the tool. Name is then the tool's name there, or its exposed name. Other
	// servers are listed too, because they may change the exposed name.
	Of string
	// Inputs, Grant and Debug are for a workflow: its tables (Arrow files or streams, by port), the name of the person
	// who allowed its steps beforehand, and whether the folder of a failed run is kept. Arguments then has only the
	// workflow's parameters.
	Inputs map[string][]byte
	Files  map[string]*io.SectionReader // further tables, as [WorkflowCall.Files]
	Grant  string
	Debug  bool
	// Credentials are the caller's own credentials at servers; see [Callers.Accept].
	Credentials Credentials
	// Table is the tool table that defines the tool, if the configuration was made from one.
	Table *agent.ToolTable
	// Only is a tool table that selects the tool instead of Name; it must select one. The tool is one of the
	// configuration, as for a question.
	Only *OnlyTable
	// Ask has the call wait for approval where the rules ask, and has the budgets, max_calls of a session and the
	// limits of results hold for it. Otherwise the call is its caller's consent.
	Ask bool
}

// noArguments are the arguments of a call without any.
var noArguments = json.RawMessage("{}")

func (h toolsHandle) Start(ctx context.Context, c ToolCall) (tenon.Run, error) {
	call, err := h.host.directCall(ctx, &c)
	if err != nil {
		return tenon.Run{}, err
	}
	return call.spec.Run, h.host.startWith(ctx, call.encoded(), call.snapshot, c.Credentials)
}

// readWords sets the arguments of a call that are given as words. The workflow itself checks the names of its
// parameters. Words for a tool that does not exist are left out: the call fails anyway.
func (h *Host) readWords(snapshot *catalog.Snapshot, c *ToolCall) (err error) {
	t, ok := snapshot.Lookup(c.Name)
	if len(c.Words) == 0 || !ok {
		return nil
	}
	if f := h.callee(t); f != nil {
		c.Arguments = catalog.TypedWords(f.Schema(), c.Words)
		return nil
	}
	c.Arguments, err = catalog.ReadWords(t.Input, c.Words)
	return err
}

// fullName returns the exposed name for SERVER.REMOTE, and any other name unchanged. If there is no such tool, the
// error is about that server only.
func fullName(snapshot *catalog.Snapshot, problems []Problem, name string) (string, error) {
	if _, ok := snapshot.Lookup(name); ok {
		return name, nil
	}
	for _, t := range snapshot.Tools() {
		if t.Server+"."+t.Remote == name {
			return t.Name, nil
		}
	}
	for _, p := range problems {
		if p.Server != "" && strings.HasPrefix(name, p.Server+".") {
			return "", p.Err
		}
	}
	for _, t := range snapshot.Tools() {
		if remote, ok := strings.CutPrefix(name, t.Server+"."); ok {
			return "", tenon.Errorf(tenon.CodeNotFound, "server '%s' has no tool '%s'", t.Server, tenon.Visible(remote))
		}
	}
	return name, nil
}

// exposedName returns the exposed name of a server's tool, by that name or by its name on the server. Errors:
// not_found, unreachable (the server's tools are missing).
func exposedName(snapshot *catalog.Snapshot, problems []Problem, server, name string) (found string, err error) {
	for _, t := range snapshot.Tools() {
		if t.Server == server && (t.Remote == name || t.Name == name && found == "") {
			found = t.Name
		}
	}
	if found != "" {
		return found, nil
	}
	for _, p := range problems {
		if p.Server == server {
			return "", tenon.Errorf(tenon.CodeUnreachable, "the tools of server '%s' are missing: %w", server, p.Err)
		}
	}
	return "", tenon.Errorf(tenon.CodeNotFound, "server '%s' has no tool '%s'", tenon.Visible(server),
		tenon.Visible(name))
}

// FollowCall follows a tool call that was started as a run, from the event after the given one, and returns its
// result. Watch receives every event, live ones included; it must not block for long. When ctx ends, the call is
// cancelled, unless the cause is [tenon.ErrClosing].
func FollowCall(ctx context.Context, r Runs, run string, after uint64, watch func(tenon.Event)) (*tenon.Result, error) {
	result, err := callResult(ctx, run, r.Events(ctx, run, after), watch)
	if err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), tenon.ErrClosing) {
		_ = r.Cancel(context.WithoutCancel(ctx), run, "the caller gave up") // the caller receives err
	}
	return result, err
}

// callResult reads the result of a call from the events of its run.
func callResult(ctx context.Context, run string, events iter.Seq2[tenon.Event, error],
	watch func(tenon.Event)) (*tenon.Result, error) {
	var result *tenon.Result
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		watch(e)
		switch e.Kind {
		case agent.EventResult:
			o, err := view.Try[agent.Outcome](e)
			if err != nil {
				return nil, err
			}
			result = o.Result
		case engine.EventWaiting:
			return nil, tenon.Errorf(tenon.CodeWaiting, "the call waits for a decision, or for what a server asks; "+
				"answer with tenon approvals allow %s, then tenon runs resume %s", run, run)
		case tenon.EventDone:
			d, err := view.Try[tenon.DoneData](e)
			if err != nil {
				return nil, err
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

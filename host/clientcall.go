package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/view"
)

// ClientCall is a call that a client of the gateway has begun. Its run has the id Run.
type ClientCall struct {
	Run   string
	h     *Host
	light *executor.Light // nil: the call has been a run of the engine from the start
}

// StartClientCall begins a call of a client of the gateway, under the rules. A call that the rules allow, that no
// budget and no limit of a session counts and that durable does not demand is sent at once; its run is stored within
// 100 ms, and the call is never sent again. Every other call is a run of the engine, which is stored first. Progress
// receives the progress of the first kind of call. Errors: as [Tools.Start], and the ones of [mcp.Caller.Check].
func StartClientCall(ctx context.Context, h *Host, c ToolCall, durable bool,
	progress func(tenon.Progress)) (*ClientCall, error) {
	c.Ask = true
	direct, err := h.directCall(ctx, &c)
	if err != nil {
		return nil, err
	}
	call := &ClientCall{Run: direct.spec.Run.ID, h: h}
	t, ok := direct.snapshot.Lookup(c.Name)
	if by := mcp.CallerOf(ctx); ok && by != nil && by.Check != nil {
		if err := by.Check(t.Input); err != nil {
			return nil, err
		}
	}
	FollowClientCall(h, call.Run, mcp.CallerOf(ctx)) // until the caller's own ends
	if !durable && ok && h.callee(t) == nil {
		if call.light, err = h.startLight(ctx, direct, c.Credentials, progress); err != nil {
			return nil, err
		}
	}
	if call.light == nil {
		return call, h.startWith(ctx, direct.encoded(), direct.snapshot, c.Credentials)
	}
	return call, nil
}

// ClientTools returns the tools with everything that shaped them, as [Tools.Snapshot] does, but without the problems of
// the configuration. They do not concern clients, and looking for them takes longer than the list.
func ClientTools(ctx context.Context, h *Host) (*catalog.Snapshot, []Problem, error) {
	return h.listed(ctx, nil, nil)
}

// startLight begins a call without a journal. It returns nil if the call needs one.
func (h *Host) startLight(ctx context.Context, call directCall, c Credentials,
	progress func(tenon.Progress)) (*executor.Light, error) {
	if h.cfg.Untrusted || !h.audits.enter() {
		return nil, nil
	}
	spec := call.spec
	h.brought.hold(spec.Run.ID, spec.Run.Owner(), c)
	ctx = withRequest(ctx, spec.Run.ID, c)
	deciding := context.WithValue(ctx, preparedKey{}, call.ready)
	l, fits, err := h.executor.Light(deciding, executor.LightConfig{Row: spec.Run, Now: h.now,
		Core:  agent.NewDirect(call.input),
		Adopt: func(ctx context.Context) error { return h.start(ctx, call.encoded(), call.snapshot) },
		Progress: func(e tenon.Event) {
			if e.Kind != agent.LiveProgress {
				return
			}
			if p, err := view.Try[tenon.Progress](e); err == nil {
				progress(p)
			}
		},
		Ended: func(l *executor.Light) { h.audits.ended(audit{l, call}) }})
	if err != nil || !fits {
		h.brought.drop(spec.Run.ID)
		h.audits.leave(nil)
		return nil, err
	}
	if l.IsDecided() {
		h.audits.leave(nil)
		return l, nil
	}
	h.audits.begin(ctx, l)
	return l, nil
}

// IsLight reports whether the call was sent without a journal, or refused. Nothing waits for its decision.
func (c *ClientCall) IsLight() bool { return c.light != nil }

// Wait returns the result of the call. Moved reports that the engine continues the run of the call, which the caller
// then follows; see [FollowCall]. Errors: the error of the run; cancelled (ctx has ended, but the call has not).
func (c *ClientCall) Wait(ctx context.Context) (result *tenon.Result, moved bool, err error) {
	if c.light == nil {
		return nil, true, nil
	}
	return c.light.Wait(ctx)
}

// Cancel ends the call for a reason.
func (c *ClientCall) Cancel(ctx context.Context, reason string) error {
	if c.light != nil && c.light.Cancel(reason) {
		return nil
	}
	err := c.h.Runs().Cancel(ctx, c.Run, reason)
	if err != nil && c.light != nil {
		c.light.Stop(errors.New(reason))
	}
	return err
}

// directCall is a call whose run is prepared.
type directCall struct {
	spec     engine.Spec
	input    agent.DirectSpec
	snapshot *catalog.Snapshot
	ready    *preparedCall
}

// encoded returns the spec of the run, whose data is the encoded input. A call that is sent before it is journaled
// needs it only afterwards.
func (c *directCall) encoded() engine.Spec {
	spec := c.spec
	spec.Data = encode(c.input)
	return spec
}

// preparedCall is a call whose arguments were checked. Its decision need not check them again, if nothing has changed.
type preparedCall struct {
	tools string // digest of the snapshot
	rules *executor.Ruleset
	name  string
	args  json.RawMessage
	call  catalog.Prepared
}

// preparedKey is the key of a [preparedCall] in the context of its decision.
type preparedKey struct{}

// preparedIn returns a prepared call of a context, if it is this one.
func preparedIn(ctx context.Context, snapshot *catalog.Snapshot, rules *executor.Ruleset,
	c *tenon.ToolCall) (catalog.Prepared, bool) {
	p, _ := ctx.Value(preparedKey{}).(*preparedCall)
	if p == nil || p.tools != snapshot.Digest() || p.rules != rules || p.name != c.Name ||
		!bytes.Equal(p.args, c.Arguments) {
		return catalog.Prepared{}, false
	}
	return p.call, true
}

// listedFor lists tools for a call and returns the name of its tool. If a server lists a tool that may be this one, it
// does not wait long for the other servers. If it is another one after all, it waits.
func (h *Host) listedFor(ctx context.Context, c *ToolCall) (*catalog.Snapshot, []Problem, error) {
	var only []string
	if c.Server != "" {
		only = []string{c.Server}
	}
	if c.Name == "" { // of a tool table
		return h.listed(ctx, nil, nil, only...)
	}
	named := ToolCall{Name: c.Name, Of: c.Of} // a late server may look at it after the caller has changed c
	snapshot, problems, err := h.listed(ctx, nil, func(server string, tools []tenon.Tool) bool {
		return h.mayHave(server, tools, &named)
	}, only...)
	late := slices.ContainsFunc(problems, func(p Problem) bool {
		return p.Server != "" && (tenon.ErrorCode(p.Err) == tenon.CodeCancelled || errors.Is(p.Err, context.Canceled))
	})
	if err != nil || !late || ctx.Err() != nil {
		return snapshot, problems, err
	}
	if name, err := c.tool(snapshot, problems); err == nil {
		if _, ok := snapshot.Lookup(name); ok {
			return snapshot, problems, nil
		}
	}
	return h.listed(ctx, nil, nil, only...)
}

// mayHave reports whether a server that lists these tools may have the tool of a call. The tool is called by its name
// on the server, by its name in the last merge of all listings, or by its name of the configuration, unless another
// server has a tool of that name.
func (h *Host) mayHave(server string, tools []tenon.Tool, c *ToolCall) bool {
	if c.Of != "" && c.Of != server {
		return false
	}
	if slices.ContainsFunc(tools, func(t tenon.Tool) bool { return strings.HasSuffix(c.Name, t.Remote) }) {
		return true
	}
	if last := h.latest(); last != nil {
		if known, ok := last.Lookup(c.Name); ok && known.Server == server {
			return slices.ContainsFunc(tools, func(t tenon.Tool) bool { return t.Remote == known.Remote })
		}
	}
	_, sources := h.offerers()
	source := sources[server]
	if source == nil { // it was removed
		return false
	}
	src := *source
	src.Tools = tools
	var none *catalog.Snapshot
	alone, _ := none.Merge([]*catalog.Listing{catalog.Shape(src)})
	name, err := c.tool(alone, nil)
	if err != nil {
		return false
	}
	_, ok := alone.Lookup(name)
	return ok
}

// tool returns the exposed name of the call's tool. It returns an unknown name unchanged, unless the name has a server.
func (c *ToolCall) tool(snapshot *catalog.Snapshot, problems []Problem) (string, error) {
	if c.Of != "" {
		return exposedName(snapshot, problems, c.Of, c.Name)
	}
	return fullName(snapshot, problems, c.Name)
}

// directCall prepares the run of a call. The call has its full name and all its arguments afterwards.
func (h *Host) directCall(ctx context.Context, c *ToolCall) (directCall, error) {
	var none directCall
	if err := h.mayGrant(c.Grant); err != nil {
		return none, err
	}
	snapshot, problems, err := h.listedFor(ctx, c)
	if err != nil {
		return none, err
	}
	if len(c.Arguments) == 0 {
		c.Arguments = noArguments
	}
	if c.Only != nil {
		if snapshot, problems, err = h.onlyTable(ctx, *c.Only, snapshot, problems); err != nil {
			return none, err
		}
		names := snapshot.Names()
		if len(names) != 1 {
			return none, tenon.Errorf(tenon.CodeInvalid, "the tool table names %s, but a call needs one",
				counted(len(names), "tool"))
		}
		c.Name = names[0]
	}
	if c.Name, err = c.tool(snapshot, problems); err != nil {
		return none, err
	}
	if err := h.readWords(snapshot, c); err != nil {
		return none, err
	}
	name, args, who := c.Name, c.Arguments, cmp.Or(c.Principal, tenon.PrincipalLocal)
	spec := agent.DirectSpec{Name: name, By: string(who), MaxDepth: h.config.Limits.WithDefaults().MaxDepth,
		Inner: c.Grant, Debug: c.Debug, Table: c.Table, Ask: c.Ask}
	if c.Ask {
		spec.Budgets = h.config.Budgets
	}
	begin := engine.Spec{Fresh: true}
	if t, ok := snapshot.Lookup(name); ok && h.callee(t) != nil {
		if args, err = h.flowArguments(ctx, h.callee(t), c, &spec, &begin); err != nil {
			return none, err
		}
	} else if ok && len(c.Inputs)+len(c.Files) > 0 {
		return none, tenon.Errorf(tenon.CodeInvalid, "tool '%s' is no workflow and takes no tables", name)
	}
	rules := h.ruleset()
	ready, err := snapshot.Prepare(&tenon.ToolCall{Name: name, Arguments: args}, rules.Layers.Reads())
	if err != nil {
		if len(problems) > 0 && tenon.ErrorCode(err) == tenon.CodeNotFound {
			err = notListed(name, snapshot.Names(), problems[0].Err)
		}
		return none, err
	}
	spec.Arguments, spec.Tools, spec.Brought = args, snapshot.Digest(), c.Credentials.servers()
	h.remember(spec.Tools, snapshot)
	now := h.now()
	begin.Run = tenon.Run{ID: tenon.NewID("run", now), Core: agent.DirectVersion, Principal: who,
		Title: tenon.Shorten("call "+name, titleLen), State: tenon.RunWorking, Created: now, Updated: now}
	return directCall{begin, spec, snapshot, &preparedCall{snapshot.Digest(), rules, name, args, ready}}, nil
}

// notListed returns the error about a tool that no listed server has. The server with the problem may have it.
func notListed(name string, listed []string, problem error) error {
	if len(listed) == 0 {
		return problem
	}
	near := tenon.Nearest(name, listed)
	if near != "" {
		near = "; did you mean '" + tenon.Visible(near) + "'?"
	}
	return tenon.Errorf(tenon.ErrorCode(problem), "no listed server has the tool '%s'%s (tools are missing: %w)",
		tenon.Visible(name), near, problem)
}

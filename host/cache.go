package host

import (
	"context"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/workflow"
)

// cacheResult is the largest result that is kept, in bytes.
const cacheResult = 1 << 20

// cacheKey is what two calls have in common that may have one result: who has it
// (the scope, and whose run it is), which tool of which server as it is configured
// now, and the arguments.
func (h *Host) cacheKey(ctx context.Context, run tenon.Run, c *agent.ToolCommand, own servers.Overlay) (string, error) {
	same := policy.SameCall{Scope: c.Cache.Scope, Principal: string(principalOf(run)), Server: c.Server, Remote: c.Remote, Arguments: c.Arguments}
	switch c.Cache.Scope {
	case policy.ScopeSession:
		same.Owner = run.Session
	case policy.ScopeProject:
	default:
		same.Owner = run.ID
	}
	var err error
	if same.Access, err = h.reached(ctx, run, c); err != nil {
		return "", err
	}
	if h.Servers()[c.Server] != nil {
		same.Access += own.Key()
	}
	return same.Key()
}

// reached identifies what a call gets to, as it is configured now: a result that stands for
// another call must have come from there.
func (h *Host) reached(ctx context.Context, run tenon.Run, c *agent.ToolCommand) (string, error) {
	switch c.Server {
	case catalog.HTTPServer:
		if h.requests != nil {
			return digestOf(encode(h.requests.tools[c.Remote].Request)), nil
		}
	case workflow.StepServer:
		spec, err := h.flowSpec(ctx, run.ID)
		return spec.Workflow, err
	}
	if s := h.Servers()[c.Server]; s != nil {
		return s.Access(), nil
	}
	return "", nil
}

// cached returns a kept result for a call. Without one the caller is to make the
// call and to say with land that it has ended; equal calls wait for it. Key is ""
// where the call's result is not kept. Own is what the caller has of its own.
func (h *Host) cached(ctx context.Context, run tenon.Run, c *agent.ToolCommand, own servers.Overlay) (k *policy.Kept, key string, err error) {
	if c.Cache == nil || c.Round > 0 || c.View != nil {
		return nil, "", nil
	}
	if key, err = h.cacheKey(ctx, run, c, own); err != nil {
		return nil, "", err
	}
	for {
		k, wait := h.results.Find(key, h.now())
		if wait == nil {
			if k == nil && c.Cache.Scope != policy.ScopeRun {
				k = h.keptInStore(ctx, key)
			}
			return k, key, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, "", tenon.Errorf(tenon.CodeCancelled, "tool '%s' of server '%s' was not called: %w while an equal call was under way", c.Remote, c.Server, context.Cause(ctx))
		}
	}
}

// keptInStore looks for a result in the store. A store that cannot be read costs a call.
func (h *Host) keptInStore(ctx context.Context, key string) *policy.Kept {
	r, err := h.store.Result(ctx, key, h.now())
	if err != nil {
		if tenon.ErrorCode(err) != tenon.CodeNotFound {
			h.log.Warn("kept results cannot be read", "error", err)
		}
		return nil
	}
	k := &policy.Kept{Key: key, Run: r.Run, Step: r.Step, Expires: r.Expires, Result: new(tenon.Result), Bytes: len(r.Data)}
	if err := json.Unmarshal(r.Data, k.Result); err != nil {
		return nil
	}
	if row, err := h.store.Run(ctx, r.Run); err == nil {
		k.Session = row.Session
	}
	h.results.Put(k)
	h.results.Land(key)
	return k
}

// hit says that a call has the result of an equal one.
func (h *Host) hit(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, k *policy.Kept) ([]tenon.Event, error) {
	h.log.Info("Tool "+c.Name+" answered from the cache", "run", a.Row.ID, "step", a.Step, "of", k.Run+"/"+k.Step)
	block := h.law().rules.For(policy.ID{Server: c.Server, Remote: c.Remote}, a.Row.Agent)
	result, whole, err := h.bounded(ctx, a, block, k.Result)
	if err != nil {
		return nil, err
	}
	return []tenon.Event{{Step: a.Step, Kind: agent.EventResult,
		Data: encode(agent.Outcome{Result: result, Source: agent.SourceCache, Of: k.Run + "/" + k.Step, Whole: whole})}}, nil
}

// keep keeps the result of a call for equal ones.
func (h *Host) keep(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, key string, r *tenon.Result) {
	if r.IsError || r.Input != nil {
		return
	}
	raw := encode(r)
	if len(raw) > cacheResult {
		return
	}
	k := &policy.Kept{Key: key, Session: a.Row.Session, Run: a.Row.ID, Step: a.Step, Expires: h.now().Add(c.Cache.TTL), Result: r, Bytes: len(raw)}
	h.results.Put(k)
	if c.Cache.Scope == policy.ScopeRun {
		return
	}
	err := h.store.PutResult(ctx, store.KeptResult{Key: key, Run: k.Run, Step: k.Step, Expires: k.Expires, Data: raw})
	if err != nil {
		h.log.Warn("a result is not kept for other processes", "server", c.Server, "tool", c.Remote, "error", err)
	}
}

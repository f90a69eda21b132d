package executor

import (
	"context"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/store"
)

// cacheResult is the maximum size of a kept result, in bytes.
const cacheResult = 1 << 20

// CacheKey returns the key of a call's result: scope and owner, the tool and its server's current configuration, and
// the arguments.
func (x *Executor) CacheKey(ctx context.Context, run tenon.Run, c *agent.ToolCommand, own servers.Overlay) (string,
	error) {
	id, err := x.cfg.Tools.Identify(ctx, run.ID, c.Server, c.Remote)
	if err != nil {
		return "", err
	}
	same := policy.SameCall{Scope: c.Cache.Scope, Principal: string(run.Owner()), Server: id.Server,
		Remote: id.Remote, Output: c.Output, Arguments: c.Arguments}
	switch c.Cache.Scope {
	case policy.ScopeSession:
		same.Owner = run.Session
	case policy.ScopeProject:
	default:
		same.Owner = run.ID
	}
	if same.Access, err = x.cfg.Access(ctx, run, c, own); err != nil {
		return "", err
	}
	return same.Key()
}

// cached returns the kept result of an equal call. If there is none, the caller must make the call and then call Land
// with the key, because equal calls wait for it. The key is "" if results of the call are not kept.
func (x *Executor) cached(ctx context.Context, run tenon.Run, c *agent.ToolCommand,
	own servers.Overlay) (k *policy.Kept, key string, err error) {
	if c.Cache == nil || c.Round > 0 || c.View != nil {
		return nil, "", nil
	}
	if key, err = x.CacheKey(ctx, run, c, own); err != nil {
		return nil, "", err
	}
	for {
		k, wait := x.results.Find(key, x.cfg.Now())
		if wait == nil {
			if k == nil && c.Cache.Scope != policy.ScopeRun {
				k = x.keptInStore(ctx, key)
			}
			return k, key, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, "", tenon.Errorf(tenon.CodeCancelled,
				"tool '%s' of server '%s' was not called: %w while an equal call was under way",
				c.Remote, c.Server, context.Cause(ctx))
		}
	}
}

// keptInStore returns a kept result from the store, or nil. If the store cannot be read, it returns nil, so that the
// call is made.
func (x *Executor) keptInStore(ctx context.Context, key string) *policy.Kept {
	r, err := x.cfg.Store.Result(ctx, key, x.cfg.Now())
	if err != nil {
		if tenon.ErrorCode(err) != tenon.CodeNotFound {
			x.cfg.Logger.Warn("kept results cannot be read", "error", err)
		}
		return nil
	}
	k := &policy.Kept{Key: key, Run: r.Run, Step: r.Step, Expires: r.Expires, Result: new(tenon.Result),
		Bytes: len(r.Data)}
	if err := json.Unmarshal(r.Data, k.Result); err != nil {
		return nil
	}
	if row, err := x.cfg.Store.Run(ctx, r.Run); err == nil {
		k.Session = row.Session
	}
	x.results.Put(k)
	x.results.Land(key)
	return k
}

// hit returns the event of a call that receives the kept result of an equal call.
func (x *Executor) hit(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, block policy.Block,
	k *policy.Kept) ([]tenon.Event, error) {
	x.cfg.Logger.Info("Tool "+c.Name+" answered from the cache", "run", a.Row.ID, "step", a.Step, "of",
		k.Run+"/"+k.Step)
	result, whole, err := x.bounded(ctx, a, c, block, k.Result)
	if err != nil {
		return nil, err
	}
	return []tenon.Event{outcomeEvent(a, agent.Outcome{Result: result, Source: agent.SourceCache,
		Of: k.Run + "/" + k.Step, Whole: whole})}, nil
}

// keep stores the result of a call for equal calls.
func (x *Executor) keep(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, key string, r *tenon.Result) {
	if r.IsError || r.Input != nil {
		return
	}
	raw := tenon.EventData(r)
	if len(raw) > cacheResult {
		return
	}
	k := &policy.Kept{Key: key, Session: a.Row.Session, Run: a.Row.ID, Step: a.Step,
		Expires: x.cfg.Now().Add(c.Cache.TTL), Result: r, Bytes: len(raw)}
	x.results.Put(k)
	if c.Cache.Scope == policy.ScopeRun {
		return
	}
	err := stored(ctx, a)
	if err == nil {
		err = x.cfg.Store.PutResult(ctx, store.KeptResult{Key: key, Run: k.Run, Step: k.Step, Expires: k.Expires,
			Data: raw})
	}
	if err != nil {
		x.cfg.Logger.Warn("a result is not kept for other processes", "server", c.Server, "tool", c.Remote, "error",
			err)
	}
}

package host

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
)

// The bounds of the results that a process has in memory. The store has those that
// reach beyond a run.
const (
	cacheEntries = 1024
	cacheBytes   = 32 << 20
	cacheResult  = 1 << 20 // a larger one is not kept
)

// cache has results of tools that may stand for equal calls, the last used ones in
// memory. The zero value is ready.
type cache struct {
	mu      sync.Mutex
	entries map[string]*list.Element // of *kept
	used    list.List                // the last used first
	bytes   int
	flights map[string]chan struct{} // calls under way whose results will be kept; closed at their end
}

// kept is one result.
type kept struct {
	key, session string
	run, step    string // of the call that it came from
	expires      time.Time
	result       *tenon.Result
	bytes        int
}

// find returns a result that has not expired, or the end of a call under way that
// may bring one, or neither: then the caller makes the call, and lands it.
func (c *cache) find(key string, now time.Time) (k *kept, wait <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil {
		if k := e.Value.(*kept); now.Before(k.expires) {
			c.used.MoveToFront(e)
			return k, nil
		}
		c.remove(e)
	}
	if f := c.flights[key]; f != nil {
		return nil, f
	}
	if c.flights == nil {
		c.flights = map[string]chan struct{}{}
	}
	c.flights[key] = make(chan struct{})
	return nil, nil
}

// land says that the call that find left to the caller has ended.
func (c *cache) land(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[key]; f != nil {
		close(f)
		delete(c.flights, key)
	}
}

func (c *cache) put(k *kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[string]*list.Element{}
	}
	if e := c.entries[k.key]; e != nil {
		c.remove(e)
	}
	c.entries[k.key] = c.used.PushFront(k)
	for c.bytes += k.bytes; c.bytes > cacheBytes || c.used.Len() > cacheEntries; {
		c.remove(c.used.Back())
	}
}

func (c *cache) remove(e *list.Element) {
	k := c.used.Remove(e).(*kept)
	delete(c.entries, k.key)
	c.bytes -= k.bytes
}

// forget drops what came from a session that was deleted.
func (c *cache) forget(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.used.Front(); e != nil; {
		next := e.Next()
		if e.Value.(*kept).session == session {
			c.remove(e)
		}
		e = next
	}
}

// cacheKey is what two calls have in common that may have one result: who has it
// (the scope, and whose run it is), which tool of which server as it is configured
// now, and the arguments.
func (h *Host) cacheKey(run tenon.Run, c *agent.ToolCommand) (string, error) {
	args, err := policy.Canonical(c.Arguments)
	if err != nil {
		return "", err
	}
	owner := ""
	switch c.Cache.Scope {
	case policy.ScopeSession:
		owner = run.Session
	case policy.ScopeProject:
	default:
		owner = run.ID
	}
	access := ""
	if s := h.Servers()[c.Server]; s != nil {
		access = s.Access()
	}
	sum := sha256.New()
	for _, part := range []string{c.Cache.Scope, owner, string(principalOf(run)), access, c.Server, c.Remote} {
		// No name holds a zero byte, and a part is never a prefix of another's.
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	sum.Write(args)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// cached returns a kept result for a call. Without one the caller is to make the
// call and to say with land that it has ended; equal calls wait for it. Key is ""
// where the call's result is not kept.
func (h *Host) cached(ctx context.Context, run tenon.Run, c *agent.ToolCommand) (k *kept, key string, err error) {
	if c.Cache == nil || c.Round > 0 || c.View != nil {
		return nil, "", nil
	}
	if key, err = h.cacheKey(run, c); err != nil {
		return nil, "", err
	}
	for {
		k, wait := h.results.find(key, h.now())
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
func (h *Host) keptInStore(ctx context.Context, key string) *kept {
	r, err := h.store.Result(ctx, key, h.now())
	if err != nil {
		if tenon.ErrorCode(err) != tenon.CodeNotFound {
			h.log.Warn("kept results cannot be read", "error", err)
		}
		return nil
	}
	k := &kept{key: key, run: r.Run, step: r.Step, expires: r.Expires, result: new(tenon.Result), bytes: len(r.Data)}
	if err := json.Unmarshal(r.Data, k.result); err != nil {
		return nil
	}
	if row, err := h.store.Run(ctx, r.Run); err == nil {
		k.session = row.Session
	}
	h.results.put(k)
	h.results.land(key)
	return k
}

// hit says that a call has the result of an equal one.
func (h *Host) hit(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, k *kept) ([]tenon.Event, error) {
	h.log.Info("Tool "+c.Name+" answered from the cache", "run", a.Row.ID, "step", a.Step, "of", k.run+"/"+k.step)
	block := h.rules.For(policy.ID{Server: c.Server, Remote: c.Remote}, a.Row.Agent)
	result, whole, err := h.bounded(ctx, a, block, k.result)
	if err != nil {
		return nil, err
	}
	return []tenon.Event{{Step: a.Step, Kind: agent.EventResult,
		Data: encode(agent.Outcome{Result: result, Source: agent.SourceCache, Of: k.run + "/" + k.step, Whole: whole})}}, nil
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
	k := &kept{key: key, session: a.Row.Session, run: a.Row.ID, step: a.Step, expires: h.now().Add(c.Cache.TTL), result: r, bytes: len(raw)}
	h.results.put(k)
	if c.Cache.Scope == policy.ScopeRun {
		return
	}
	err := h.store.PutResult(ctx, store.KeptResult{Key: key, Run: k.run, Step: k.step, Expires: k.expires, Data: raw})
	if err != nil {
		h.log.Warn("a result is not kept for other processes", "server", c.Server, "tool", c.Remote, "error", err)
	}
}

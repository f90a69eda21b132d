package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

const (
	// parkedFor bounds the time for which a parked call is known by its key.
	parkedFor = 30 * 24 * time.Hour
	// parkedScope begins the keys of parked calls in the store, so that they differ from keys of kept results.
	parkedScope = "parked/"
)

// ParkedCalls records in the store which runs answer calls that wait for a person, so that an equal call finds the run
// in any process of the store, also after a restart. The caller chooses the keys: equal for equal calls.
type ParkedCalls interface {
	// Park records that a run answers a key. It returns the run that does so: another one if it was recorded before.
	Park(ctx context.Context, key, run string) (string, error)
	// Parked returns the run that answers a key, or "" if there is none. It ignores runs that ended longer than kept
	// ago, and may miss one that another process parked within the last 20 ms.
	Parked(ctx context.Context, key string, kept time.Duration) (tenon.Run, error)
	// Fetched records that the result of a run was delivered. The next equal call is a new one.
	Fetched(ctx context.Context, key, run string) error
	// Waiting passes on the calls of a principal, made with [ToolCall.Ask], whose runs wait.
	Waiting(ctx context.Context, who tenon.Principal, yield func(run, name string, args json.RawMessage)) error
}

func (h stateHandle) Parked() ParkedCalls { return parkedHandle(h) }

func (h parkedHandle) Park(ctx context.Context, key, run string) (string, error) {
	r, err := h.stored(ctx, key, parkedFor)
	if err != nil {
		return "", err
	}
	if r.ID != "" {
		return r.ID, nil
	}
	return run, h.put(ctx, key, run, h.host.now().Add(parkedFor))
}

func (h parkedHandle) put(ctx context.Context, key, run string, expires time.Time) error {
	defer h.host.parkedKeys.add(key) // also after an error: the write may have been made
	return h.host.store.PutResult(ctx, store.KeptResult{Key: parkedScope + key, Run: run, Expires: expires,
		Data: json.RawMessage("{}")})
}

func (h parkedHandle) Parked(ctx context.Context, key string, kept time.Duration) (tenon.Run, error) {
	if h.host.parkedKeys.isFree(ctx, h.host, key) {
		return tenon.Run{}, nil
	}
	return h.stored(ctx, key, kept)
}

// stored is [ParkedCalls.Parked] without the keys in memory.
func (h parkedHandle) stored(ctx context.Context, key string, kept time.Duration) (tenon.Run, error) {
	mark, err := h.host.store.Result(ctx, parkedScope+key, h.host.now())
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		return tenon.Run{}, nil
	}
	if err != nil {
		return tenon.Run{}, err
	}
	run, err := h.host.store.Run(ctx, mark.Run)
	if tenon.ErrorCode(err) == tenon.CodeNotFound || err == nil && (run.Foreign || run.State.Ended() &&
		h.host.now().Sub(run.Updated) > kept) {
		return tenon.Run{}, nil
	}
	return run, err
}

func (h parkedHandle) Fetched(ctx context.Context, key, run string) error {
	r, err := h.stored(ctx, key, parkedFor)
	if err != nil || r.ID != run {
		return err
	}
	return h.put(ctx, key, run, h.host.now())
}

func (h parkedHandle) Waiting(ctx context.Context, who tenon.Principal, yield func(run, name string,
	args json.RawMessage)) error {
	f := engine.Filter{Principal: who, State: tenon.RunInputRequired, Top: true}
	for {
		list, err := h.host.Runs().List(ctx, f)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, r := range list {
			f.Before = r.ID
			if r.Core != agent.DirectVersion || r.Foreign {
				continue
			}
			first, err := h.host.store.Events(ctx, r.ID, 0, 1)
			if err != nil {
				return err
			}
			var spec engine.Spec
			var call agent.DirectSpec
			if len(first) == 1 && json.Unmarshal(first[0].Data, &spec) == nil &&
				json.Unmarshal(spec.Data, &call) == nil && call.Ask {
				yield(r.ID, call.Name, call.Arguments)
			}
		}
	}
}

var _ ParkedCalls = parkedHandle{}

package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

// keyKind is the kind of the signal that holds which run a key led to.
const keyKind = "idempotency_key"

// StartOnce is [Host.Start] for a caller that may ask twice, because it could not
// see whether the first time arrived: for the same key it returns the run that
// the key led to, with again true, whichever process of the store is asked and
// however long ago that was. A question other than that run's is a conflict.
func (h *Host) StartOnce(ctx context.Context, key string, q Question) (run tenon.Run, problems []Problem, again bool, err error) {
	if key == "" {
		run, problems, err = h.Start(ctx, q)
		return run, problems, false, err
	}
	q.asked = q.digest()
	sum := sha256.Sum256([]byte(key))
	digest := hex.EncodeToString(sum[:])
	release, err := h.alone(ctx, "key/"+digest)
	if err != nil {
		return tenon.Run{}, nil, false, err
	}
	defer release()
	run, err = h.keyed(ctx, digest, &q)
	switch {
	case err != nil:
		return tenon.Run{}, nil, false, err
	case run.ID != "":
		return run, nil, true, h.sameQuestion(ctx, run.ID, q)
	}
	run, problems, err = h.Start(ctx, q)
	return run, problems, false, err
}

// keyed finds the run of a key. Where there is none it prepares the question, so
// that the run it will lead to is found by the key, whatever happens after that.
//
// The key names the session of a run that begins one. The id of a run that
// continues a session is written down with that session's last run first.
func (h *Host) keyed(ctx context.Context, digest string, q *Question) (tenon.Run, error) {
	if q.Session == "" || q.Fork {
		q.newSession = "ses_" + digest[:20]
		_, err := h.store.Session(ctx, q.newSession)
		if tenon.ErrorCode(err) == tenon.CodeNotFound {
			return tenon.Run{}, nil
		}
		if err != nil {
			return tenon.Run{}, err
		}
		runs, err := h.store.Runs(ctx, store.RunFilter{Session: q.newSession, Limit: maxListed})
		if err != nil || len(runs) == 0 {
			return tenon.Run{}, err
		}
		return runs[len(runs)-1], nil
	}
	id := "key_" + digest
	g, err := h.store.Signal(ctx, id)
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		g, err = h.writeKey(ctx, id, q.Session)
	}
	if err != nil {
		return tenon.Run{}, err
	}
	if err := json.Unmarshal(g.Data, &q.id); err != nil {
		return tenon.Run{}, tenon.Errorf(tenon.CodeStore, "what key %s led to cannot be read: %w", id, err)
	}
	run, err := h.store.Run(ctx, q.id)
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		return tenon.Run{}, nil
	}
	return run, err
}

func (h *Host) writeKey(ctx context.Context, id, session string) (store.Signal, error) {
	s, err := h.Session(ctx, session)
	if err != nil {
		return store.Signal{}, err
	}
	head, err := h.store.Run(ctx, s.Head)
	if err != nil {
		return store.Signal{}, err
	}
	if !head.State.Ended() {
		return store.Signal{}, tenon.Errorf(tenon.CodeConflict, "session %s has another run at work: %s", s.ID, head.ID)
	}
	g, err := h.store.PutSignal(ctx, store.Signal{ID: id, Run: head.ID, Kind: keyKind, Time: h.now(), Data: encode(tenon.NewID("run", h.now()))})
	if err != nil {
		return store.Signal{}, err
	}
	return g, h.store.SettleSignal(ctx, id, head.Seq) // it is for nobody's inbox
}

// digest tells questions apart. What files and tables hold is no part of it: what is read
// of a server for a question need not be the same the second time.
func (q *Question) digest() string {
	sum := sha256.Sum256(encode([]any{q.Text, q.Agent, q.Session, q.Fork, q.Model, q.NoTools, len(q.Files), q.Output, len(q.History), q.ToolChoice,
		q.MaxTurns, q.Groups, q.State, q.Mode, q.System, q.Sampling, len(q.Data), q.Grant}))
	return hex.EncodeToString(sum[:16])
}

// sameQuestion refuses a key that was used for another request.
func (h *Host) sameQuestion(ctx context.Context, run string, q Question) error {
	events, err := h.store.Events(ctx, run, 0, 1)
	if err != nil {
		return err
	}
	var spec engine.Spec
	var s agent.Spec
	if len(events) == 1 && json.Unmarshal(events[0].Data, &spec) == nil && json.Unmarshal(spec.Data, &s) == nil && s.Question == q.Text && (s.Asked == "" || s.Asked == q.asked) {
		return nil
	}
	return tenon.Errorf(tenon.CodeConflict, "the key was used for another request, which led to run %s; use a new key", run)
}

// alone waits for a lease that is held for moments only.
func (h *Host) alone(ctx context.Context, what string) (release func(), err error) {
	for {
		release, ok, err := h.Claim(what)
		if err != nil || ok {
			return release, err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
		}
	}
}

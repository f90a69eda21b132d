package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
)

// keyKind is the kind of the signal that records the run of an idempotency key.
const keyKind = "idempotency_key"

// keyPrefix begins the ids of these signals. The digest of the key follows.
const keyPrefix = "key_"

// startOnce starts a question with a key. A lease makes sure that one process at a time looks for the key.
func (h *Host) startOnce(ctx context.Context, q Question) (Started, error) {
	ctx = store.OwnOnly(ctx) // a foreign run answers no question
	q.asked = q.digest()
	digest := keyDigest(q.Key)
	if !q.delivering {
		if q.Session != "" { // the key may be on its way as a message into a run
			release, err := h.alone(ctx, "message/"+digest)
			if err != nil {
				return Started{}, err
			}
			defer release()
		}
		if s, err := h.delivered(ctx, q, digest); err != nil || s.ID != "" {
			return s, err
		}
	}
	release, err := h.alone(ctx, "key/"+digest)
	if err != nil {
		return Started{}, err
	}
	defer release()
	run, err := h.keyed(ctx, digest, &q)
	if err != nil {
		return Started{}, err
	}
	if run.ID != "" {
		if err = h.sameQuestion(ctx, run.ID, q); err == nil && !run.State.Ended() {
			h.given.hold(run.ID, q.tools)
			err = h.takeUp(ctx, run, q.Credentials)
		}
		return Started{Run: run, Again: true}, err
	}
	run, problems, err := h.startQuestion(ctx, q)
	return Started{Run: run, Problems: problems}, err
}

// keyDigest identifies a key in the store.
func keyDigest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// keyed finds the run of a key. If there is none, it prepares the question so that the run, when it begins, is found by
// the key even after a crash.
//
// If the question begins a session, the key determines the session's id. If it continues a session, the run's id is
// first recorded with the last run of the session. The run of a request of the other kind is found, too, so that it is
// compared with the question.
func (h *Host) keyed(ctx context.Context, digest string, q *Question) (tenon.Run, error) {
	began, err := h.keyedNew(ctx, digest)
	if err != nil || began.ID != "" {
		return began, err
	}
	if q.Session == "" || q.Fork {
		q.newSession = keyedSession(digest)
		return h.keyedIn(ctx, digest)
	}
	if q.id, err = h.recorded(ctx, digest, q.Session); err == nil && q.id == "" {
		q.id, err = h.writeKey(ctx, keyPrefix+digest, q.Session)
	}
	if err != nil {
		return tenon.Run{}, err
	}
	run, err := h.store.Run(ctx, q.id)
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		return tenon.Run{}, nil
	}
	return run, err
}

// keyedSession returns the id of the session that begins with a key.
func keyedSession(digest string) string { return "ses_" + digest[:20] }

// keyedNew returns the run that began a session with a key, or a zero one.
func (h *Host) keyedNew(ctx context.Context, digest string) (tenon.Run, error) {
	session := keyedSession(digest)
	_, err := h.store.Session(ctx, session)
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		return tenon.Run{}, nil
	}
	if err != nil {
		return tenon.Run{}, err
	}
	runs, err := h.store.Runs(ctx, store.RunFilter{Session: session, Limit: maxListed})
	if err != nil || len(runs) == 0 {
		return tenon.Run{}, err
	}
	first := runs[len(runs)-1]
	if first.Foreign {
		return tenon.Run{}, store.ErrForeign(first.ID)
	}
	return first, nil
}

// keyedIn returns the run that continued a session with a key, or a zero one.
func (h *Host) keyedIn(ctx context.Context, digest string) (tenon.Run, error) {
	id, err := h.keyRecord(ctx, digest)
	if err != nil || id == "" {
		return tenon.Run{}, err
	}
	run, err := h.store.Run(ctx, id)
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		return tenon.Run{}, nil
	}
	return run, err
}

// recorded returns the id of the run of a key in a session, or "" if nothing records one. A record belongs to a run.
// While the session has none, as a fork may, the key determines the id of its first run.
func (h *Host) recorded(ctx context.Context, digest, session string) (id string, err error) {
	if id, err = h.keyRecord(ctx, digest); err != nil || id != "" {
		return id, err
	}
	s, err := h.Sessions().Get(ctx, session)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(s.ID + "\x00" + digest))
	id = tenon.FixedID("run", s.Created, sum[:])
	if s.Head == "" {
		return id, nil
	}
	run, err := h.store.Run(ctx, id)
	if tenon.ErrorCode(err) == tenon.CodeNotFound || err == nil && run.Session != s.ID {
		return "", nil
	}
	return id, err
}

// keyRecord returns the id of the run in the record of a key, or "" if there is no record.
func (h *Host) keyRecord(ctx context.Context, digest string) (id string, err error) {
	g, err := h.store.Signal(ctx, keyPrefix+digest)
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return runOfKey(g)
}

// runOfKey reads the run in the record of a key.
func runOfKey(g store.Signal) (id string, err error) {
	if err := json.Unmarshal(g.Data, &id); err != nil {
		return "", tenon.Errorf(tenon.CodeStore, "the run of key %s cannot be read: %w", g.ID, err)
	}
	return id, nil
}

// writeKey records a new id for the run of a key with the last run of the session.
func (h *Host) writeKey(ctx context.Context, id, session string) (run string, err error) {
	s, err := h.Sessions().Get(ctx, session)
	if err != nil {
		return "", err
	}
	head, err := h.store.Run(ctx, s.Head)
	if err != nil {
		return "", err
	}
	if err := atRest(s, head); err != nil {
		return "", err
	}
	g, err := h.store.PutSignal(ctx, store.Signal{ID: id, Run: head.ID, Kind: keyKind, Time: h.now(),
		Data: encode(tenon.NewID("run", h.now()))})
	if err != nil {
		return "", err
	}
	if err := h.store.SettleSignal(ctx, id, head.Seq); err != nil { // so that no run receives it as a message
		return "", err
	}
	return runOfKey(g)
}

// digest identifies a question. The contents of files and tables are left out, because resources of a server may differ
// at the second reading.
func (q *Question) digest() string {
	parts := []any{q.Text, q.Agent, q.Session, q.Fork, q.Model, q.NoTools, len(q.Files), q.Output,
		len(q.History), q.ToolChoice,
		q.MaxTurns, q.Groups, q.State, q.Mode, q.System, q.Sampling, len(q.Data) + len(q.DataFiles), q.Grant}
	if len(q.tools) > 0 { // only then, so that digests of earlier releases stay the same
		parts = append(parts, slices.Sorted(maps.Keys(q.tools)))
	}
	if len(q.ClientTools) > 0 {
		parts = append(parts, q.ClientTools)
	}
	if q.OnlyTable != nil {
		parts = append(parts, q.OnlyTable.File, q.OnlyTable.Column, store.Digest(q.OnlyTable.Data))
	}
	sum := sha256.Sum256(encode(parts))
	return hex.EncodeToString(sum[:16])
}

// sameQuestion refuses a key that was used for another request.
func (h *Host) sameQuestion(ctx context.Context, run string, q Question) error {
	events, err := h.store.Events(ctx, run, 0, 1)
	if err != nil {
		return err
	}
	_, s, err := view.FirstSpec[agent.Spec](run, events)
	if err == nil && s.Question == q.Text && (s.Asked == "" || s.Asked == q.asked) {
		return nil
	}
	return tenon.Errorf(tenon.CodeConflict, "the key was used for another request, which led to run %s; use "+
		"a new key", run)
}

// alone waits for a lease that processes hold only briefly.
func (h *Host) alone(ctx context.Context, what string) (release func(), err error) {
	for {
		release, ok, err := h.Service().Storage().Claim(what)
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

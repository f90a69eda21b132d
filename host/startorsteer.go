package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/store"
)

// maxTurnsMissed bounds the runs that may end, one after the other, just before a message reaches them.
const maxTurnsMissed = 20

// StartOrSteer is [Host.Start], except that a session at work is no error: the text of the question then goes as a
// message into the run that is at work. The result is that run, and the number of the event with the message, after
// which the answer follows. The number is 0 if a run began with the question. By names the sender of the message.
//
// With a [Question.Key] the call can be repeated: calls with equal keys deliver the text once, and return the same run.
// Errors: as Start, and invalid (the run takes no messages).
func StartOrSteer(ctx context.Context, h *Host, q Question, by string) (s Started, after uint64, err error) {
	ctx = store.OwnOnly(ctx)
	send := delivery{h: h, q: q, by: by}
	if q.Key != "" {
		send.digest = keyDigest(q.Key)
		release, err := h.alone(ctx, "message/"+send.digest)
		if err != nil {
			return Started{}, 0, err
		}
		defer release()
	}
	for range maxTurnsMissed {
		s, after, err = send.once(ctx)
		if !IsBusy(err) {
			break
		}
	}
	return s, after, err
}

// delivery is a message on its way into a session.
type delivery struct {
	h      *Host
	q      Question
	by     string
	digest string // of the key; empty if there is none
	missed int    // runs that had ended before the message reached them
}

// id returns the id of the signal. It is different for each run, because a signal belongs to one run. With a key, every
// process and every repetition finds the same ids.
func (d *delivery) id() string {
	if d.digest == "" {
		return tenon.NewID("sig", d.h.now())
	}
	sum := sha256.Sum256([]byte("message\x00" + d.digest + "\x00" + strconv.Itoa(d.missed)))
	return "sig_" + hex.EncodeToString(sum[:16])
}

// once finds the run that has the message, or begins it, or sends the message. If the run ends before, the error is one
// of [IsBusy], and the next call looks at the session again.
func (d *delivery) once(ctx context.Context) (Started, uint64, error) {
	id := d.id()
	if d.digest != "" {
		sent, err := d.h.store.Signal(ctx, id)
		if err == nil {
			return d.again(ctx, sent)
		}
		if tenon.ErrorCode(err) != tenon.CodeNotFound {
			return Started{}, 0, err
		}
	}
	s, busy := d.h.Start(ctx, d.q)
	if !IsBusy(busy) {
		return s, 0, busy
	}
	run, err := d.h.atWork(ctx, d.q.Session)
	if err != nil || run.ID == "" {
		if err == nil {
			err = busy
		}
		return Started{}, 0, err
	}
	return d.steer(ctx, run.ID, id)
}

// again finds the event of a message that was sent before, perhaps by a process that died before its receipt.
func (d *delivery) again(ctx context.Context, sent store.Signal) (Started, uint64, error) {
	var was agent.Steer
	if json.Unmarshal(sent.Data, &was) != nil || was.Text != strings.TrimSpace(d.q.Text) {
		return Started{}, 0, tenon.Errorf(tenon.CodeConflict, "the key was used for another message, which went into "+
			"run %s; use a new key", sent.Run)
	}
	s, after, err := d.steer(ctx, sent.Run, sent.ID)
	s.Again = true
	return s, after, err
}

// steer sends the message into a run.
func (d *delivery) steer(ctx context.Context, run, id string) (Started, uint64, error) {
	e, err := d.h.steer(ctx, run, id, d.q.Text, d.by)
	row, rowErr := d.h.store.Run(ctx, run)
	switch {
	case tenon.ErrorCode(err) == tenon.CodeConflict && rowErr == nil && row.State.Ended():
		if _, err := d.h.store.Signal(ctx, id); err == nil { // it was stored, and is of that run for ever
			d.missed++
		}
		return Started{}, 0, store.ErrBusy(row.Session, run)
	case err != nil:
		return Started{}, 0, err
	}
	return Started{Run: row}, e.Seq, rowErr
}

// IsAsked reports whether the key of a question has led to a run, which Start would return.
func IsAsked(ctx context.Context, h *Host, q Question) (bool, error) {
	if q.Key == "" || q.Session == "" {
		return false, nil
	}
	run, err := h.recorded(ctx, keyDigest(q.Key), q.Session)
	if err == nil && run != "" {
		_, err = h.store.Run(ctx, run)
	}
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		return false, nil
	}
	return err == nil && run != "", err
}

package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// maxBehind bounds the attempts to begin a run in a session in which other runs begin all the time. Each failed attempt
// means that another question got its turn.
const maxBehind = 20

// behindOthers repeats the beginning of a run while other runs continue the session in between. Begin reads the end of
// the session each time.
func behindOthers(begin func() error) (err error) {
	for range maxBehind {
		if err = begin(); !errors.Is(err, store.ErrContinued) {
			break
		}
	}
	return err
}

// atRest returns an error if the last run of a session has not ended. The store decides this again when a run begins.
// The early look saves the work that precedes it, and the journal of that run is not read half.
func atRest(s tenon.Session, head tenon.Run) error {
	if head.Session == s.ID && !head.State.Ended() {
		return store.ErrBusy(s.ID, head.ID)
	}
	return nil
}

// IsBusy reports whether err, of [Host.Start], means that the session is at work on another run. The question can be
// asked again after the end of that run.
func IsBusy(err error) bool {
	return errors.Is(err, store.ErrAtWork) || errors.Is(err, store.ErrContinued)
}

// whyBusy replaces the error about a session whose run does not go on by itself. The new error says what the run needs.
func (h *Host) whyBusy(ctx context.Context, session string, err error) error {
	if !errors.Is(err, store.ErrAtWork) {
		return err
	}
	run, look := h.atWork(ctx, session)
	if look != nil || run.ID == "" {
		return err
	}
	text := ""
	if run.State == tenon.RunInputRequired {
		text = fmt.Sprintf("run %s of session %s waits for a decision: answer with tenon approvals allow %s, then "+
			"tenon runs resume %s", run.ID, run.Session, run.ID, run.ID)
	} else if owner, look := h.Runs().Open(run.ID).Owner(ctx); look == nil && !owner.Working && !owner.Served {
		text = fmt.Sprintf("no process works on run %s of session %s: continue it with tenon runs resume %s", run.ID,
			run.Session, run.ID)
	}
	if text == "" {
		return err
	}
	text += fmt.Sprintf(", ask in a fork: tenon run -s %s --fork, or cancel it: tenon runs cancel %s", run.Session,
		run.ID)
	return &tenon.Error{Code: tenon.CodeConflict, Err: store.ErrAtWork, Message: text}
}

// atWork returns the run that is at work in a session, or a zero one if the session is at rest.
func (h *Host) atWork(ctx context.Context, session string) (tenon.Run, error) {
	s, err := h.Sessions().Get(ctx, session)
	if err != nil || s.Head == "" {
		return tenon.Run{}, err
	}
	head, err := h.store.Run(ctx, s.Head)
	if err != nil || head.Session != s.ID || head.State.Ended() {
		return tenon.Run{}, err
	}
	return head, nil
}

package host

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// Fork says where a new session leaves another one. The zero value is the end of
// the session that was used last.
type Fork struct {
	Session string // see [Host.Session]; empty: that of the run that At names, else the last one
	// At is the last message that both have: its number (see [Host.Said]), or a run
	// of the session and, after a colon, the number of one of its events. Empty: all
	// that was said; of a run that is still at work what comes before calls without
	// a result.
	At    string
	Title string // empty: that of the session
}

// Fork begins a session that goes on from a message of another one, whose
// conversation both share up to there. A call is never parted from its result:
// what is named in the middle of a turn stands for the end of it. At is the number
// of the last message that they share, 0 for none. Errors: not_found, invalid (no
// such message), conflict (the message waits for the results of its calls), store.
func (h *Host) Fork(ctx context.Context, f Fork) (s tenon.Session, at int, err error) {
	if s, at, err = h.planFork(ctx, f); err == nil {
		err = h.store.PutSession(ctx, s)
	}
	return s, at, err
}

// planFork is a fork that is not stored yet.
func (h *Host) planFork(ctx context.Context, f Fork) (tenon.Session, int, error) {
	run, seq, err := h.forkRun(ctx, f.At)
	if err != nil {
		return tenon.Session{}, 0, err
	}
	if f.Session == "" && run != nil {
		f.Session = run.Session
	}
	from, err := h.Session(ctx, cmp.Or(f.Session, "-1"))
	if err != nil {
		return tenon.Session{}, 0, err
	}
	now := h.now()
	s := tenon.Session{ID: tenon.NewID("ses", now), Title: cmp.Or(f.Title, from.Title), Agent: from.Agent, Principal: from.Principal,
		Parent: from.ID, Created: now, Updated: now}
	if from.Head == "" {
		return s, 0, nil
	}
	list, err := h.said(ctx, from.Head, from.HeadSeq)
	if err != nil {
		return s, 0, err
	}
	i := len(list) - 1
	switch {
	case run != nil:
		if i, err = forkEvent(list, from, *run, seq); err != nil {
			return s, 0, err
		}
	case f.At != "":
		n, _ := strconv.Atoi(f.At) // forkRun has read it
		if n > len(list) {
			return s, 0, tenon.Errorf(tenon.CodeInvalid, "session %s has no message %d: it has %d; tenon sessions show %s --numbers shows them", from.ID, n, len(list), from.ID)
		}
		i = n - 1
	}
	if i = turnEnd(list, i); i < 0 {
		return s, 0, nil
	}
	holder, err := h.store.Run(ctx, list[i].Run)
	if err != nil {
		return s, 0, err
	}
	if list[i].open && !holder.State.Ended() {
		if f.At != "" {
			return s, 0, tenon.Errorf(tenon.CodeConflict, "message %d of session %s calls tools that have no result yet; wait for run %s, or name an earlier message", list[i-1].N, from.ID, holder.ID)
		}
		if i -= 2; i < 0 { // to what stood before those calls
			return s, 0, nil
		}
	}
	s.Head, s.HeadSeq = list[i].Run, list[i].Seq
	last, err := h.store.Run(ctx, from.Head)
	if err == nil && i == len(list)-1 && last.State.Ended() { // with what came after the last message, such as a summary
		s.Head, s.HeadSeq = last.ID, cmp.Or(from.HeadSeq, last.Seq)
	}
	return s, list[i].N, err
}

// forkRun reads what a fork names: a run and an event of it (0: the last), or nil
// for the number of a message.
func (h *Host) forkRun(ctx context.Context, at string) (*tenon.Run, uint64, error) {
	if n, err := strconv.Atoi(at); err == nil && n < 1 {
		return nil, 0, tenon.Errorf(tenon.CodeInvalid, "messages are numbered from 1; there is no message %d", n)
	} else if err == nil || at == "" {
		return nil, 0, nil
	}
	ref, text, found := strings.Cut(at, ":")
	var seq uint64
	if found {
		var err error
		if seq, err = strconv.ParseUint(text, 10, 63); err != nil || seq == 0 {
			return nil, 0, tenon.Errorf(tenon.CodeInvalid, "'%s' names no event: it is RUN:SEQ, and events are numbered from 1", at)
		}
	}
	run, err := h.RunRow(ctx, ref)
	if err != nil {
		return nil, 0, err
	}
	if seq > run.Seq {
		return nil, 0, tenon.Errorf(tenon.CodeInvalid, "run %s has no event %d: it has %d", run.ID, seq, run.Seq)
	}
	if run.Core != agent.Version || run.Caller != "" {
		return nil, 0, tenon.Errorf(tenon.CodeInvalid, "run %s is no question of a session, so that nothing can go on from it", run.ID)
	}
	return &run, seq, nil
}

// forkEvent returns the index of the last message that a run had brought when an
// event of it was stored.
func forkEvent(list []Said, from tenon.Session, run tenon.Run, seq uint64) (int, error) {
	at := -1
	for i, m := range list {
		if m.Run == run.ID && (seq == 0 || m.Seq <= seq) {
			at = i
		}
	}
	if at < 0 {
		return 0, tenon.Errorf(tenon.CodeInvalid, "run %s has said nothing in the conversation of session %s", run.ID, from.ID)
	}
	return at, nil
}

// turnEnd is the index of the message up to which a conversation goes that is cut
// after message i: the last of its event, and the results of its calls.
func turnEnd(list []Said, i int) int {
	for i >= 0 && i+1 < len(list) {
		here, next := list[i], list[i+1]
		if (here.Run != next.Run || here.Seq != next.Seq) && len(here.Calls()) == 0 {
			break
		}
		i++
	}
	return i
}

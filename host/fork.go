package host

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/transcript"
)

// Fork says where a new session leaves another one. The zero value is the end of the session that was used last.
type Fork struct {
	Session string // see [Sessions.Get]; if empty, the session of At's run, else the last one
	// At is the last shared message: its number (see [Transcripts.Messages]), or RUN:SEQ, a run of the session and the
	// number of one of its events. If empty, all messages are shared. If the session's run is still at work, calls
	// without a result, and everything after them, are left out.
	At    string
	Title string // empty: the title of the session
}

func (h sessionsHandle) Fork(ctx context.Context, f Fork) (s tenon.Session, at int, err error) {
	if s, at, err = h.host.planFork(ctx, f); err == nil {
		err = h.host.store.PutSession(ctx, s)
	}
	return s, at, err
}

// planFork prepares a fork without storing it.
func (h *Host) planFork(ctx context.Context, f Fork) (tenon.Session, int, error) {
	ctx = store.OwnOnly(ctx)
	run, seq, err := h.forkRun(ctx, f.At)
	if err != nil {
		return tenon.Session{}, 0, err
	}
	if f.Session == "" && run != nil {
		f.Session = run.Session
	}
	from, err := h.Sessions().Get(ctx, cmp.Or(f.Session, "-1"))
	if err != nil {
		return tenon.Session{}, 0, err
	}
	now := h.now()
	s := tenon.Session{ID: tenon.NewID("ses", now), Title: cmp.Or(f.Title, from.Title), Agent: from.Agent,
		Principal: from.Principal,
		Parent:    from.ID, Created: now, Updated: now}
	if from.Head == "" {
		return s, 0, nil
	}
	head, headSeq := from.Head, from.HeadSeq
	if run != nil && run.Session == from.ID { // it may have been resumed after the session had continued without it
		head, headSeq = run.ID, 0
	}
	list, err := h.transcripts.MessagesUpTo(ctx, head, headSeq)
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
		n, _ := strconv.Atoi(f.At) // forkRun has checked it
		if n > len(list) {
			return s, 0, tenon.Errorf(tenon.CodeInvalid, "session %s has no message %d: it has %d; tenon sessions "+
				"show %s --numbers shows them", from.ID, n, len(list), from.ID)
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
	if list[i].Open && !holder.State.Ended() {
		if f.At != "" {
			return s, 0, tenon.Errorf(tenon.CodeConflict, "message %d of session %s calls tools that have no result "+
				"yet; wait for run %s, or name an earlier message", list[i-1].N, from.ID, holder.ID)
		}
		if i -= 2; i < 0 { // fork at the message before these calls
			return s, 0, nil
		}
	}
	s.Head, s.HeadSeq = list[i].Run, list[i].Seq
	last, err := h.store.Run(ctx, head)
	// Include what follows the last message, such as a summary.
	if err == nil && i == len(list)-1 && last.State.Ended() {
		s.Head, s.HeadSeq = last.ID, cmp.Or(headSeq, last.Seq)
	}
	return s, list[i].N, err
}

// forkRun reads the place of a fork: a run and one of its events (0: the last), or nil for the number of a message.
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
			return nil, 0, tenon.Errorf(tenon.CodeInvalid, "'%s' names no event: it is RUN:SEQ, and events are "+
				"numbered from 1", at)
		}
	}
	run, err := h.Runs().Get(ctx, ref)
	if err != nil {
		return nil, 0, err
	}
	if seq > run.Seq {
		return nil, 0, tenon.Errorf(tenon.CodeInvalid, "run %s has no event %d: it has %d", run.ID, seq, run.Seq)
	}
	if run.Core != agent.Version || run.Caller != "" {
		return nil, 0, tenon.Errorf(tenon.CodeInvalid, "run %s is not a question of a session, so no session can "+
			"continue it", run.ID)
	}
	return &run, seq, nil
}

// forkEvent returns the index of the last message that a run had contributed when one of its events was stored.
func forkEvent(list []transcript.Message, from tenon.Session, run tenon.Run, seq uint64) (int, error) {
	at := -1
	for i, m := range list {
		if m.Run == run.ID && (seq == 0 || m.Seq <= seq) {
			at = i
		}
	}
	if at < 0 {
		return 0, tenon.Errorf(tenon.CodeInvalid, "run %s has said nothing in the conversation of session %s", run.ID,
			from.ID)
	}
	return at, nil
}

// turnEnd returns the index of the last message of a conversation that is cut after message i. This is the last message
// of the same event, with the results of its calls.
func turnEnd(list []transcript.Message, i int) int {
	for i >= 0 && i+1 < len(list) {
		here, next := list[i], list[i+1]
		if (here.Run != next.Run || here.Seq != next.Seq) && len(here.Calls()) == 0 {
			break
		}
		i++
	}
	return i
}

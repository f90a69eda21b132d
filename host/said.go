package host

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
)

// Said is a message of a conversation, with its number and where it stands in the
// journals.
type Said struct {
	*tenon.Message
	N    int       `json:"n"` // from 1, over all of the conversation
	Run  string    `json:"run"`
	Seq  uint64    `json:"seq"` // the event of Run that brought it
	Time time.Time `json:"time"`

	open bool // results of calls that had none when the journal was read
}

// link is a run of a conversation, with its events as far as they belong to it.
type link struct {
	run    string
	spec   agent.Spec
	events []tenon.Event
}

// Said returns all that was said in a session, numbered. Errors: not_found, store.
func (h *Host) Said(ctx context.Context, session string) ([]Said, error) {
	s, err := h.store.Session(ctx, session)
	if err != nil || s.Head == "" {
		return nil, err
	}
	return h.said(ctx, s.Head, s.HeadSeq)
}

// said folds the conversation that leads to an event of a run (0: to its last one).
func (h *Host) said(ctx context.Context, run string, upTo uint64) ([]Said, error) {
	links, err := h.links(ctx, run, upTo)
	if err != nil {
		return nil, err
	}
	var list []Said
	var s *agent.State
	for _, l := range links {
		s = agent.New(l.spec, s)
		var last tenon.Event
		for _, last = range l.events {
			if err := s.Apply(last); err != nil {
				return nil, err
			}
			for len(list) < s.Len() {
				list = append(list, Said{Run: l.run, Seq: last.Seq, Time: last.Time})
			}
		}
		for len(list) < len(s.History()) {
			list = append(list, Said{Run: l.run, Seq: last.Seq, Time: last.Time, open: true})
		}
	}
	for i, m := range s.History() {
		list[i].Message, list[i].N = m, i+1
	}
	return list, nil
}

// links returns the runs of a conversation, the first one first.
func (h *Host) links(ctx context.Context, run string, upTo uint64) ([]link, error) {
	var links []link
	for run != "" {
		events, err := h.Page(ctx, run, 0, int(upTo))
		if err != nil {
			return nil, err
		}
		l := link{run: run, events: events}
		spec, err := specOf(run, events)
		if err != nil {
			return nil, err
		}
		if spec.Run.Core != agent.Version {
			return nil, tenon.Errorf(tenon.CodeInvalid, "run %s is no run of an agent and has no conversation", run)
		}
		if err := json.Unmarshal(spec.Data, &l.spec); err != nil {
			return nil, tenon.Errorf(tenon.CodeStore, "run %s: its spec cannot be read: %w", run, err)
		}
		links = append(links, l)
		run, upTo = spec.Run.Parent, spec.Run.ParentSeq
	}
	slices.Reverse(links)
	return links, nil
}

// specOf reads the first event of a journal.
func specOf(run string, events []tenon.Event) (engine.Spec, error) {
	var spec engine.Spec
	if len(events) == 0 || events[0].Kind != tenon.EventRun {
		return spec, tenon.Errorf(tenon.CodeStore, "run %s has no first event; the journal is damaged", run)
	}
	if err := json.Unmarshal(events[0].Data, &spec); err != nil {
		return spec, tenon.Errorf(tenon.CodeStore, "run %s: its spec cannot be read: %w", run, err)
	}
	return spec, nil
}

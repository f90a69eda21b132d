// Package transcript reads, searches, exports and imports conversations. A conversation is not stored as such: it is
// folded from the journals of the runs of a session and of the sessions that it was forked from.
//
//	store ─► journals ─► Transcripts.Messages ─► numbered messages ─► terminal, HTTP, Markdown, search
//	file ─► Transcripts.Import ─► checks ─► store
//
// An export holds journals, so an import restores them exactly. A file with messages or Markdown only holds what was
// said; it becomes a session with one completed run.
//
// An imported file is not trusted: its ids, event order, digests and references are checked, and each journal is
// folded by the core that wrote it. Exports mask the values of known secrets and the arguments that redact rules
// name.
//
// Package host wires a Transcripts; httpapi and internal/cli reach it through host.
package transcript

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

// Store is the part of a store that transcripts use.
type Store interface {
	store.Journal
	store.Sessions
	store.Blobs
	store.Texts
}

// Config contains the dependencies of a [Transcripts]. All fields are required except Redact.
type Config struct {
	Store Store
	// Redactor masks the values of secrets in exports, conversations and search results.
	Redactor *tenon.Redactor
	// Redact contains the names of the arguments that are masked in events.
	Redact []string
	// Unpack reads the file of a workflow. An import must contain the files of the workflows that its runs use.
	Unpack  func(name string, data []byte) (*workflow.Workflow, error)
	Now     func() time.Time
	Logger  *slog.Logger
	Version string // of the program, for exports
}

// Transcripts reads and writes the conversations of a store. It is safe for concurrent use.
type Transcripts struct{ cfg Config }

// New returns the transcripts of a store.
func New(cfg Config) *Transcripts { return &Transcripts{cfg} }

const (
	maxTitle   = 200    // characters of a title
	shortTitle = 80     // characters of a question that becomes a title
	maxListed  = 10_000 // sessions or runs that are read at a time
)

// Message is a message of a conversation with its position in the journals.
type Message struct {
	*tenon.Message
	N    int       `json:"n"` // number in the conversation, from 1
	Run  string    `json:"run"`
	Seq  uint64    `json:"seq"` // the event of Run that holds the message
	Time time.Time `json:"time"`

	// Open marks the results of calls that had not ended when the journal was read.
	Open bool `json:"-"`

	unended []int // indexes of results that the core would add if the run continued without the calls
}

// link is a run of a conversation with the events that belong to the conversation.
type link struct {
	run    string
	spec   agent.Spec
	events []tenon.Event
}

// Messages returns the numbered messages of a session. A call that has not ended has no result. Errors: not_found,
// store.
func (t *Transcripts) Messages(ctx context.Context, session string) ([]Message, error) {
	s, err := t.cfg.Store.Session(ctx, session)
	if err != nil || s.Head == "" {
		return nil, err
	}
	list, err := t.MessagesUpTo(ctx, s.Head, s.HeadSeq)
	return withoutUnended(list), err
}

// withoutUnended returns a conversation without the results of calls that have not ended.
func withoutUnended(list []Message) []Message {
	last := len(list) - 1
	if last < 0 || len(list[last].unended) == 0 {
		return list
	}
	kept := without(list[last].Message, tenon.PartResult, list[last].unended)
	if len(kept.Parts) == 0 {
		return list[:last]
	}
	list[last].Message = kept
	return list
}

// without returns a copy of a message without some of the parts of a kind. places contains the positions of these parts
// among the parts of the kind, from 0.
func without(m *tenon.Message, kind string, places []int) *tenon.Message {
	out, n := &tenon.Message{Role: m.Role, By: m.By, Partial: m.Partial}, 0
	for _, p := range m.Parts {
		if p.Type == kind {
			if n++; slices.Contains(places, n-1) {
				continue
			}
		}
		out.Parts = append(out.Parts, p)
	}
	return out
}

// MessagesUpTo returns the conversation up to an event of a run. If upTo is 0, this is the run's last event. The last
// message contains a result for each call, even for a call that has not ended. Errors: not_found, invalid (not a run of
// an agent), store.
func (t *Transcripts) MessagesUpTo(ctx context.Context, run string, upTo uint64) ([]Message, error) {
	links, err := t.links(ctx, run, upTo)
	if err != nil {
		return nil, err
	}
	var list []Message
	var s *agent.State
	for _, l := range links {
		s = agent.New(l.spec, s)
		var last tenon.Event
		for _, last = range l.events {
			if err := s.Apply(last); err != nil {
				return nil, err
			}
			for len(list) < s.Len() {
				list = append(list, Message{Run: l.run, Seq: last.Seq, Time: last.Time})
			}
		}
		for _, m := range s.History()[len(list):] {
			late := Message{Run: l.run, Seq: last.Seq, Time: last.Time}
			if m.Role == tenon.RoleTool { // the other late messages are messages of the person
				late.Open, late.unended = true, s.Unended()
			}
			list = append(list, late)
		}
	}
	for i, m := range s.History() {
		list[i].Message, list[i].N = m, i+1
	}
	return list, nil
}

// links returns the runs of a conversation, oldest first.
func (t *Transcripts) links(ctx context.Context, run string, upTo uint64) ([]link, error) {
	var links []link
	for run != "" {
		events, err := t.events(ctx, run, int(upTo))
		if err != nil {
			return nil, err
		}
		l := link{run: run, events: events}
		spec, err := engine.ReadSpec(run, events)
		if err != nil {
			return nil, err
		}
		if spec.Run.Core != agent.Version {
			return nil, tenon.Errorf(tenon.CodeInvalid, "run %s is not a run of an agent, so it has no conversation",
				run)
		}
		if l.spec, err = view.SpecOf[agent.Spec](spec); err != nil {
			return nil, err
		}
		links = append(links, l)
		run, upTo = spec.Run.Parent, spec.Run.ParentSeq
	}
	slices.Reverse(links)
	return links, nil
}

// events returns the first events of a run, with masked arguments. If limit is 0, it returns all events.
func (t *Transcripts) events(ctx context.Context, run string, limit int) ([]tenon.Event, error) {
	events, err := t.cfg.Store.Events(ctx, run, 0, limit)
	return policy.MaskEvents(events, t.cfg.Redact), err
}

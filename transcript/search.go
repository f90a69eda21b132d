package transcript

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
)

// Query describes a search in conversations. Only Words is required.
type Query struct {
	Words   string // see [store.SearchFilter]
	Session string // id of the only session to search; if empty, all are searched
	Limit   int    // if 0, 20
	// Principal restricts the search to the sessions of one principal, if set.
	Principal tenon.Principal
	// Progress, if set, is called while runs are added to the index, with the number of runs read so far and in total.
	Progress func(done, total int)
	// Behind, if set, receives the number of runs that the search leaves out, because indexing them would take too
	// long now. It is not called if there are none.
	Behind func(runs int)
}

// Hit is a message, call or result that matches a query.
type Hit struct {
	store.Hit
	Title string `json:"title"`       // of the session
	Time  string `json:"time"`        // RFC 3339
	N     int    `json:"n,omitempty"` // number in the session (see [Message]); 0 for a called agent's
}

// The roles of texts in the index, in addition to the roles of messages.
const (
	roleCall    = "call"    // a tool's name and its arguments
	roleSummary = "summary" // the summary of a compacted conversation
)

// Search finds texts in questions, answers, tool calls and their results. It adds new events to the index first, the
// newest runs before older ones, for at most [indexFor].
// Errors: not_found, invalid (no words, or too many), store.
func (t *Transcripts) Search(ctx context.Context, q Query) ([]Hit, error) {
	f := store.SearchFilter{Query: q.Words, Limit: q.Limit, Principal: q.Principal, Session: q.Session}
	if err := t.index(ctx, q); err != nil {
		return nil, err
	}
	hits, err := t.cfg.Store.Search(ctx, f)
	if err != nil {
		return nil, err
	}
	list := make([]Hit, 0, len(hits))
	sessions := map[string]tenon.Session{}
	talks := map[string][]Message{}
	for _, hit := range hits {
		s, ok := sessions[hit.Session]
		if !ok && hit.Session != "" {
			s, err = t.cfg.Store.Session(ctx, hit.Session)
			if tenon.ErrorCode(err) == tenon.CodeNotFound {
				continue // the run was deleted after the index was read
			}
			if err != nil {
				return nil, err
			}
			if talks[s.ID], err = t.Messages(ctx, s.ID); err != nil {
				t.cfg.Logger.Warn("the messages of a session cannot be read", "session", s.ID, "error", err)
			}
			sessions[s.ID] = s
		}
		found := Hit{Hit: hit, Title: t.cfg.Redactor.Text(s.Title)}
		found.Snippet = t.cfg.Redactor.Text(hit.Snippet)
		events, err := t.cfg.Store.Events(ctx, hit.Run, hit.Seq-1, 1)
		if tenon.ErrorCode(err) == tenon.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(events) > 0 {
			found.Time = events[0].Time.UTC().Format("2006-01-02T15:04:05Z07:00")
		}
		found.N = number(talks[s.ID], hit)
		list = append(list, found)
	}
	return list, nil
}

// number returns the number of the message to which a hit belongs. This is the first message of the hit's role, at or
// after the hit's event, that contains the hit's text. If there is none, it is the first message of the role at or
// after the event.
func number(talk []Message, hit store.Hit) int {
	role := tenon.Role(hit.Role)
	if hit.Role == roleCall {
		role = tenon.RoleAssistant
	}
	first := 0
	for _, m := range talk {
		if m.Run != hit.Run || m.Seq < hit.Seq || m.Role != role {
			continue
		}
		first = cmp.Or(first, m.N)
		if snippet := strings.Trim(hit.Snippet, "…"); strings.Contains(strings.Join(strings.Fields(m.Text()), " "),
			snippet) {
			return m.N
		}
	}
	return first
}

const (
	// indexFor bounds the time that a search spends on the index. The next search, or tenon serve in the background,
	// continues the work.
	indexFor = time.Second
	// indexRuns and indexBytes bound what is indexed in one transaction.
	indexRuns  = 256
	indexBytes = 4 << 20
)

// index adds new events to the index of texts. If the store cannot be written, the existing index is searched.
func (t *Transcripts) index(ctx context.Context, q Query) error {
	deadline := time.Now().Add(indexFor)
	x := t.Indexer()
	for done := 0; ; {
		n, left, err := x.Next(ctx, store.GapFilter{Session: q.Session})
		if tenon.ErrorCode(err) == tenon.CodeStore {
			t.cfg.Logger.Warn("new messages are not found, because the index cannot be written", "error", err)
			return nil
		}
		if err != nil {
			return err
		}
		done += n
		if n > 0 && q.Progress != nil {
			q.Progress(done, done+left)
		}
		if n > 0 && left > 0 && time.Now().Before(deadline) {
			continue
		}
		if left > 0 && q.Behind != nil {
			q.Behind(left)
		}
		return nil
	}
}

// Indexer adds events to the index of texts in batches. It does not retry runs whose journals could not be read. Only
// one goroutine may use it.
type Indexer struct {
	t      *Transcripts
	failed map[string]bool
}

// Indexer returns an indexer of the store.
func (t *Transcripts) Indexer() *Indexer { return &Indexer{t: t, failed: map[string]bool{}} }

// Next indexes one batch of runs, newest first. done is the number of indexed runs, and left is the number of runs that
// still have events to index. done is 0 at the end. Errors: store, cancelled.
func (x *Indexer) Next(ctx context.Context, f store.GapFilter) (done, left int, err error) {
	f.Limit = indexRuns + 1 + len(x.failed)
	gaps, _, err := x.t.cfg.Store.Unindexed(ctx, f)
	if err != nil {
		return 0, 0, err
	}
	gaps = slices.DeleteFunc(gaps, func(g store.Gap) bool { return x.failed[g.Run] })
	var batch []store.RunTexts
	read := 0
	for size := 0; read < len(gaps) && len(batch) < indexRuns && size < indexBytes; read++ {
		texts, err := x.t.runTexts(ctx, gaps[read])
		switch {
		case ctx.Err() != nil:
			return 0, 0, tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
		case tenon.ErrorCode(err) == tenon.CodeNotFound: // the run was just deleted
		case err != nil:
			x.failed[gaps[read].Run] = true
			x.t.cfg.Logger.Warn("the messages of a run cannot be read, so the search leaves them out", "run",
				gaps[read].Run, "error", err)
		default:
			batch = append(batch, texts)
			for _, text := range texts.Texts {
				size += len(text.Text)
			}
		}
	}
	if err := x.t.cfg.Store.PutTexts(ctx, batch); err != nil {
		return 0, 0, err
	}
	if read == len(gaps) {
		return len(batch), 0, nil
	}
	f.Limit, f.Ended = 1, true
	_, left, err = x.t.cfg.Store.Unindexed(ctx, f)
	return len(batch), max(left-len(x.failed), 0), err
}

// runTexts reads the texts of the events of a run that are not indexed yet.
func (t *Transcripts) runTexts(ctx context.Context, g store.Gap) (store.RunTexts, error) {
	list := store.RunTexts{Run: g.Run, UpTo: g.Last}
	if g.Last == g.After {
		return list, nil
	}
	events, err := t.cfg.Store.Events(ctx, g.Run, g.After, int(g.Last-g.After))
	if err != nil {
		return list, err
	}
	list.Texts = t.Texts(events)
	return list, nil
}

// Texts returns the texts of events for the index, with the arguments masked that redact rules name. The list is
// never nil.
func (t *Transcripts) Texts(events []tenon.Event) []store.Text {
	list := []store.Text{}
	for _, e := range policy.MaskEvents(events, t.cfg.Redact) {
		list = append(list, textsOf(e)...)
	}
	return list
}

// textsOf returns the texts of an event for the index. It returns nil for an event that cannot be read.
func textsOf(e tenon.Event) []store.Text {
	var list []store.Text
	add := func(role, text string) {
		if text != "" {
			list = append(list, store.Text{Seq: e.Seq, Role: role, Text: text})
		}
	}
	switch e.Kind {
	case tenon.EventRun:
		_, s, err := view.Spec[struct {
			Question string
			History  []*tenon.Message
		}](e)
		if err == nil {
			for _, m := range s.History {
				addMessage(add, m)
			}
			add(string(tenon.RoleUser), s.Question)
		}
	case agent.EventMessage:
		add(string(tenon.RoleUser), view.As[agent.Steer](e).Text)
	case agent.EventModel:
		m := view.As[agent.Answered](e).Message
		if m != nil {
			addMessage(add, m)
		}
	case agent.EventResult:
		r := view.As[agent.Outcome](e).Result
		if r != nil {
			add(string(tenon.RoleTool), resultText(r))
		}
	case agent.EventFailed, tenon.EventUnknown:
		f := view.As[agent.Failure](e)
		if f.Partial != nil {
			add(string(tenon.RoleAssistant), f.Partial.Text)
		}
		if tenon.ParseStep(e.Step).Call != "" && f.Error != nil { // only tool calls are shown in a conversation
			add(string(tenon.RoleTool), f.Error.Message)
		}
	case tenon.EventInterrupted:
		add(string(tenon.RoleAssistant), view.As[agent.Partial](e).Text)
	case agent.EventCompacted:
		add(roleSummary, view.As[agent.Compacted](e).Summary)
	}
	return list
}

// addMessage adds the texts of a message.
func addMessage(add func(role, text string), m *tenon.Message) {
	add(string(m.Role), m.Text())
	for _, p := range m.Parts {
		if c := p.Call; c != nil {
			add(roleCall, c.Name+" "+string(c.Arguments)+c.Malformed)
		}
		if p.Result != nil {
			add(string(tenon.RoleTool), resultText(&tenon.Result{Content: p.Result.Content}))
		}
	}
}

// resultText returns all text of a result: content blocks, embedded resources and structured content.
func resultText(r *tenon.Result) string {
	var parts []string
	for _, c := range r.Content {
		for _, text := range []string{c.Name, c.URI, c.Text} {
			if text != "" {
				parts = append(parts, text)
			}
		}
	}
	return strings.Join(append(parts, string(r.Structured)), "\n")
}

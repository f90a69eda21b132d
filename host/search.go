package host

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

// Search says what is to be found in what was said. Only Words is required.
type Search struct {
	Words   string // see [store.SearchFilter]
	Session string // only in this one, see [Host.Session]
	Limit   int    // 0: 20
	// Principal, if set, is whose sessions are searched.
	Principal tenon.Principal
	// Progress, if set, is told how many of the runs that are not yet in the index
	// have been read.
	Progress func(done, total int)
}

// Found is a place where something was said.
type Found struct {
	store.Hit
	Title string `json:"title"`       // of the session
	Time  string `json:"time"`        // RFC 3339
	N     int    `json:"n,omitempty"` // the message's number in the session (see [Said]); 0 in what a called agent said
}

// The roles of texts in the index, beside those of messages.
const (
	roleCall    = "call"    // a tool's name and its arguments
	roleSummary = "summary" // of a conversation that was made shorter
)

// Search finds texts in all that was said: questions, answers, calls of tools and
// their results. What is not in the index yet is read first. Errors: not_found,
// invalid (no words, or too many), store.
func (h *Host) Search(ctx context.Context, q Search) ([]Found, error) {
	f := store.SearchFilter{Query: q.Words, Limit: q.Limit, Principal: q.Principal}
	if q.Session != "" {
		s, err := h.Session(ctx, q.Session)
		if err != nil {
			return nil, err
		}
		f.Session = s.ID
	}
	if err := h.index(ctx, q.Progress); err != nil {
		return nil, err
	}
	hits, err := h.store.Search(ctx, f)
	if err != nil {
		return nil, err
	}
	list := make([]Found, 0, len(hits))
	sessions := map[string]tenon.Session{}
	talks := map[string][]Said{}
	for _, hit := range hits {
		s, ok := sessions[hit.Session]
		if !ok && hit.Session != "" {
			if s, err = h.store.Session(ctx, hit.Session); err != nil {
				return nil, err
			}
			if talks[s.ID], err = h.Said(ctx, s.ID); err != nil {
				h.log.Warn("what was said in a session cannot be read", "session", s.ID, "error", err)
			}
			sessions[s.ID] = s
		}
		found := Found{Hit: hit, Title: h.redactor.Text(s.Title)}
		found.Snippet = h.redactor.Text(hit.Snippet)
		events, err := h.store.Events(ctx, hit.Run, hit.Seq-1, 1)
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

// number finds the message that a hit became: the first of its role that the run
// brought with the event or after it, and that holds what was found.
func number(talk []Said, hit store.Hit) int {
	role := tenon.Role(hit.Role)
	if hit.Role == roleCall {
		role = tenon.RoleAssistant
	}
	first := 0
	for _, m := range talk {
		if m.Run != hit.Run || m.Seq < hit.Seq || m.Role != role {
			continue
		}
		if first == 0 {
			first = m.N
		}
		if snippet := strings.Trim(hit.Snippet, "…"); strings.Contains(strings.Join(strings.Fields(m.Text()), " "), snippet) {
			return m.N
		}
	}
	return first
}

// indexed is how many runs are looked up at a time.
const indexed = 10_000

// index brings the index of texts up to date.
func (h *Host) index(ctx context.Context, progress func(done, total int)) error {
	for done := 0; ; {
		gaps, err := h.store.Unindexed(ctx, indexed)
		if err != nil {
			return err
		}
		total, read := done+len(gaps), 0
		for _, g := range gaps {
			switch err := h.indexRun(ctx, g); {
			case ctx.Err() != nil:
				return tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
			case err != nil && tenon.ErrorCode(err) != tenon.CodeNotFound: // else it was deleted in the meantime
				h.log.Warn("what was said in a run cannot be read, so that it is not found", "run", g.Run, "error", err)
			default:
				read++
			}
			if done++; progress != nil {
				progress(done, total)
			}
		}
		if len(gaps) < indexed || read == 0 {
			return nil
		}
	}
}

func (h *Host) indexRun(ctx context.Context, g store.Gap) error {
	events, err := h.store.Events(ctx, g.Run, g.After, int(g.Last-g.After))
	if err != nil {
		return err
	}
	var list []store.Text
	for _, e := range h.veil(events) {
		list = append(list, textsOf(e)...)
	}
	return h.store.PutText(ctx, g.Run, g.Last, list)
}

// textsOf is what an event says that a person may look for. An event that cannot
// be read says nothing.
func textsOf(e tenon.Event) []store.Text {
	var list []store.Text
	add := func(role, text string) {
		if text != "" {
			list = append(list, store.Text{Seq: e.Seq, Role: role, Text: text})
		}
	}
	switch e.Kind {
	case tenon.EventRun:
		var spec engine.Spec
		var s struct {
			Question string
			History  []*tenon.Message
		}
		if json.Unmarshal(e.Data, &spec) == nil && json.Unmarshal(spec.Data, &s) == nil {
			for _, m := range s.History {
				addMessage(add, m)
			}
			add(string(tenon.RoleUser), s.Question)
		}
	case agent.EventMessage:
		var m agent.Steer
		_ = json.Unmarshal(e.Data, &m) // no text: nothing to find
		add(string(tenon.RoleUser), m.Text)
	case agent.EventModel:
		var r tenon.Response
		if json.Unmarshal(e.Data, &r) == nil && r.Message != nil {
			addMessage(add, r.Message)
		}
	case agent.EventResult:
		var o agent.Outcome
		if json.Unmarshal(e.Data, &o) == nil && o.Result != nil {
			add(string(tenon.RoleTool), resultText(o.Result))
		}
	case agent.EventFailed, tenon.EventUnknown:
		if !strings.Contains(e.Step, ".") {
			break // of no tool call: nobody in the conversation said it
		}
		var f agent.Failure
		if json.Unmarshal(e.Data, &f) == nil && f.Error != nil {
			add(string(tenon.RoleTool), f.Error.Message)
		}
	case agent.EventCompacted:
		var c agent.Compacted
		_ = json.Unmarshal(e.Data, &c)
		add(roleSummary, c.Summary)
	}
	return list
}

// addMessage adds what a message says.
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

// resultText is all text of a result: that of its blocks, of embedded resources,
// and its structured content.
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

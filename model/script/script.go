package script

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// Model plays a script. It is immutable and safe for concurrent use.
type Model struct {
	name          string
	cfg           model.Config // zero unless made by New or NewFrom
	conversations []Conversation
}

// New loads the script of a model's config: models.NAME.path.
func New(cfg model.Config) (*Model, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m, err := Load(cfg.Path)
	if err == nil {
		m.cfg = cfg
	}
	return m, err
}

// NewFrom is New for the bytes of the file at cfg.Path, which the caller has read.
func NewFrom(cfg model.Config, data []byte) (*Model, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m, err := Parse(cfg.Path, data)
	if err == nil {
		m.cfg = cfg
	}
	return m, err
}

// Name returns "script/" and the base name of the file.
func (m *Model) Name() string { return "script/" + filepath.Base(m.name) }

// mark is the opaque part that names the step of an answer.
type mark struct {
	Conversation int `json:"conversation"`
	Step         int `json:"step"` // starts at 0 and counts repetitions
}

// Generate answers with the step for the messages; see the package comment. Errors have the code of
// the step's Error, or model_error if an expectation fails or the script has ended.
func (m *Model) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		ready := func(names Strings) bool { return missing(names, req) == "" }
		conv, at, err := m.position(req.Messages, ready)
		if err != nil {
			yield(tenon.Delta{}, err)
			return
		}
		s := m.step(conv, at)
		if s == nil {
			yield(tenon.Delta{}, tenon.Errorf(tenon.CodeModel,
				"script %s: no step %d; the request comes after the last step, so add one or end the run earlier",
				m.name, at+1))
			return
		}
		if err := m.expect(s, at, req); err != nil {
			yield(tenon.Delta{}, err)
			return
		}
		p := player{ctx: ctx, step: s, yield: yield}
		if !p.play() {
			if p.err != nil {
				yield(tenon.Delta{}, p.err)
			}
			return
		}
		if s.Error != nil {
			yield(tenon.Delta{}, s.Error.as(m.name))
			return
		}
		resp := m.response(s, mark{conv, at})
		resp.Model = m.Name()
		if m.cfg.Price != nil && resp.Usage != nil {
			cost := m.cfg.Price.Cost(*resp.Usage)
			resp.Cost = &cost
		}
		yield(tenon.Delta{Kind: tenon.DeltaResponse, Response: resp}, nil)
	}
}

// position returns the conversation and the step for the messages. ready reports whether tools are
// available.
func (m *Model) position(msgs []*tenon.Message, ready func(Strings) bool) (conv, step int, err error) {
	lastUser := -1
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == tenon.RoleUser && lastUser < 0 {
			lastUser = i
		}
		mk, ok := markOf(msgs[i])
		if !ok || mk.Conversation >= len(m.conversations) {
			continue
		}
		next := m.step(mk.Conversation, mk.Step+1)
		if lastUser > i && next == nil {
			break // the script has ended; a new question restarts it
		}
		if lastUser > i && next.Repeat == Forever && len(msgs[i].Calls()) == 0 {
			// The conversation repeats its last step forever. Its run has ended, so a new question may select another
			// conversation.
			if c := m.selected(msgs[lastUser].Text(), ready); c >= 0 && c != mk.Conversation {
				return c, 0, nil
			}
		}
		return mk.Conversation, mk.Step + 1, nil
	}
	question := ""
	if lastUser >= 0 {
		question = msgs[lastUser].Text()
	}
	for _, msg := range msgs[lastUser+1:] {
		if _, ok := markOf(msg); msg.Role == tenon.RoleAssistant && !ok {
			step++
		}
	}
	if c := m.selected(question, ready); c >= 0 {
		return c, step, nil
	}
	return 0, 0, tenon.Errorf(tenon.CodeModel, "script %s: no conversation matches %q", m.name, short(question))
}

// selected returns the first conversation that matches a question, or -1.
func (m *Model) selected(question string, ready func(Strings) bool) int {
	return slices.IndexFunc(m.conversations, func(c Conversation) bool {
		return c.fits(question) && ready(c.Tools)
	})
}

// fits reports whether the conversation matches the question.
func (c *Conversation) fits(question string) bool {
	return len(c.Match) == 0 || slices.ContainsFunc(c.Match, func(s string) bool {
		return strings.Contains(strings.ToLower(question), strings.ToLower(s))
	})
}

// missing returns the first name that is not among the available tools, or "".
func missing(names Strings, req *tenon.Request) string {
	for _, want := range names {
		hosted, ok := strings.CutPrefix(want, hostedPrefix)
		if ok && slices.Contains(req.Hosted, hosted) {
			continue
		}
		if !slices.ContainsFunc(req.Tools, func(t tenon.Tool) bool { return t.Name == want }) {
			return want
		}
	}
	return ""
}

// hostedPrefix begins the name of a tool of the provider in a list of tools.
const hostedPrefix = model.HostedServer + "/"

func markOf(msg *tenon.Message) (mark, bool) {
	for _, p := range msg.Parts {
		var mk mark
		if p.Type == tenon.PartOpaque && p.Wire == model.WireScript && json.Unmarshal(p.Raw, &mk) == nil &&
			mk.Conversation >= 0 && mk.Step >= 0 {
			return mk, true
		}
	}
	return mark{}, false
}

// step returns the step at a position, or nil after the last one. Positions count repetitions.
func (m *Model) step(conv, at int) *Step {
	steps := m.conversations[conv].Steps
	for i := range steps {
		n := max(1, int(steps[i].Repeat))
		if at < n || steps[i].Repeat == Forever {
			return &steps[i]
		}
		at -= n
	}
	return nil
}

func (m *Model) expect(s *Step, at int, req *tenon.Request) error {
	last := ""
	if n := len(req.Messages); n > 0 {
		last = textOf(req.Messages[n-1])
	}
	for _, want := range s.Expect {
		if !strings.Contains(last, want) && !strings.Contains(req.System, want) {
			return tenon.Errorf(tenon.CodeModel, "script %s:%d: step %d expects %q in the last message or the system "+
				"prompt; the last message is %q", m.name, s.line, at+1, want, short(last))
		}
	}
	needed := s.ExpectTools
	for _, u := range s.Uses {
		needed = append(slices.Clip(needed), hostedPrefix+u.Name)
	}
	for _, c := range s.Calls {
		if c.Connector != "" {
			needed = append(slices.Clip(needed), hostedPrefix+c.Connector)
		}
	}
	if want := missing(needed, req); want != "" {
		names := make([]string, len(req.Tools))
		for i, t := range req.Tools {
			names[i] = t.Name
		}
		for _, name := range req.Hosted {
			names = append(names, hostedPrefix+name)
		}
		return tenon.Errorf(tenon.CodeModel, "script %s:%d: step %d expects the tool %s; available tools: %s",
			m.name, s.line, at+1, want, short(strings.Join(names, ", ")))
	}
	return nil
}

func textOf(msg *tenon.Message) string {
	texts := []string{msg.Text()}
	for _, p := range msg.Parts {
		if p.Result != nil {
			texts = append(texts, model.ResultText(p.Result))
		}
	}
	return strings.Join(texts, "\n")
}

func short(s string) string {
	const most = 300
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

// Unconsumed returns an error that names the steps that the conversation did not reach, or nil if it reached all. msgs
// are all messages of a finished run. Steps that repeat forever are not checked.
func (m *Model) Unconsumed(msgs []*tenon.Message) error {
	conv, next := 0, 0
	for i := len(msgs) - 1; i >= 0; i-- {
		if mk, ok := markOf(msgs[i]); ok && mk.Conversation < len(m.conversations) {
			conv, next = mk.Conversation, mk.Step+1
			break
		}
	}
	if next == 0 {
		var err error
		if conv, next, err = m.position(msgs, func(Strings) bool { return true }); err != nil {
			return err
		}
	}
	var left []string
	at := 0
	for _, s := range m.conversations[conv].Steps {
		n := max(1, int(s.Repeat))
		if s.Repeat == Forever {
			break
		}
		at += n
		if at > next {
			left = append(left, fmt.Sprintf("step %d (line %d)", at, s.line))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return tenon.Errorf(tenon.CodeModel, "script %s: the run ended before %s; it expected more requests",
		m.name, strings.Join(left, ", "))
}

func (f *Failure) as(name string) error {
	code, text := f.Code, f.Message
	code = cmp.Or(code, tenon.CodeModel)
	text = cmp.Or(text, string(code))
	if f.Status != 0 {
		return tenon.Errorf(code, "script %s: HTTP %d: %s", name, f.Status, text)
	}
	return tenon.Errorf(code, "script %s: %s", name, text)
}

func (s *Step) citations() []tenon.Citation {
	var list model.Citations
	for _, c := range s.Citations {
		list.Add(tenon.Citation{Title: c.Title, URL: c.URL, File: c.File, Quote: c.Quote, Start: c.Start, End: c.End})
	}
	return list.In(s.Text)
}

func (m *Model) response(s *Step, mk mark) *tenon.Response {
	msg := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{}}
	if s.Thinking != "" {
		msg.Parts = append(msg.Parts, tenon.Part{Type: tenon.PartThinking, Text: s.Thinking, Wire: model.WireScript})
	}
	for _, u := range s.Uses {
		msg.Parts = append(msg.Parts, tenon.Part{Type: tenon.PartOpaque, Text: model.Use(u.Name, u.input),
			Wire: model.WireScript})
	}
	if s.Text != "" {
		msg.Parts = append(msg.Parts, tenon.Part{Type: tenon.PartText, Text: s.Text, Citations: s.citations()})
	}
	var media model.Media
	for _, d := range s.Media {
		if p := media.Add(d.MimeType, d.Data, "", nil); p != nil {
			msg.Parts = append(msg.Parts, *p)
		}
	}
	for i, c := range s.Calls {
		call := &tenon.ToolCall{ID: c.ID, Name: c.Name, Arguments: slices.Clone(c.args)}
		if c.Connector != "" {
			call.Name, call.Connector = c.Connector+"__"+c.Name, m.cfg.Connector(c.Connector, c.Name)
		}
		if call.ID == "" {
			call.ID = fmt.Sprintf("call_%d_%d", mk.Step+1, i+1)
		}
		if c.Raw != "" {
			if json.Valid([]byte(c.Raw)) {
				call.Arguments = json.RawMessage(c.Raw)
			} else {
				call.Malformed = c.Raw
			}
		}
		msg.Parts = append(msg.Parts, tenon.Part{Type: tenon.PartCall, Call: call})
	}
	raw, _ := json.Marshal(mk) // two integers always encode
	msg.Parts = append(msg.Parts, tenon.Part{Type: tenon.PartOpaque, Wire: model.WireScript, Raw: raw})
	id := fmt.Sprintf("script_%d", mk.Step+1)
	resp := &tenon.Response{Message: msg, Stop: s.Stop, RawStop: string(s.Stop), ID: id}
	if resp.Stop == "" {
		resp.Stop = tenon.StopEnd
		if len(s.Calls) > 0 {
			resp.Stop = tenon.StopToolUse
		}
	}
	if s.Usage != nil {
		resp.Usage = &tenon.Usage{Input: s.Usage.Input, Output: s.Usage.Output, Searches: s.Usage.Searches}
	}
	return resp
}

var _ tenon.Model = (*Model)(nil)

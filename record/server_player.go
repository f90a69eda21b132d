package record

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// serverTapes contains the recordings of one server in the order in which they began.
type serverTapes struct {
	tapes   []*serverTape
	answers []*answer
}

type serverTape struct {
	name string
	ServerExchange
	norm any
	used bool
}

// answer is the recorded answer to a request of a server.
type answer struct {
	method string
	params any
	Asked
	used bool
}

// load reads one recording. In the modern era, the answer to an input request is in the recording
// of the next attempt.
func (s *serverTapes) load(name string, data []byte) error {
	t := &serverTape{name: name}
	if err := decode(data, &t.ServerExchange); err != nil {
		return err
	}
	if m := t.Request.Method; !isKnown(m) {
		return fmt.Errorf("cassettes do not contain requests of method %q", m)
	}
	t.norm = plainRequest(t.Request)
	if t.Request.Method == methodCall { // the client itself answers the questions of a prompt
		for _, a := range t.Asked {
			s.answers = append(s.answers, &answer{method: a.Method, params: plain(a.Params), Asked: a})
		}
		if len(t.Request.Params.Responses) > 0 {
			s.join(t.Request.Params)
		}
	}
	s.tapes = append(s.tapes, t)
	return nil
}

// mask masks the secrets of a redactor in the recorded requests, and in the server's requests.
func (s *serverTapes) mask(r *tenon.Redactor) {
	for _, t := range s.tapes {
		if raw, err := json.Marshal(t.Request); err == nil {
			t.norm = plain(maskJSON(r, raw))
		}
	}
	for _, a := range s.answers {
		a.params = plain(maskJSON(r, a.Params))
	}
}

// join combines the answers of an attempt at a call with the input requests of the previous attempt.
func (s *serverTapes) join(p CallParams) {
	var responses map[string]json.RawMessage
	if json.Unmarshal(p.Responses, &responses) != nil {
		return
	}
	for i := len(s.tapes) - 1; i >= 0; i-- {
		t := s.tapes[i]
		if t.Request.Method != methodCall || t.Request.Params.Name != p.Name || t.Response == nil ||
			t.Response.Input == nil || t.Response.Input.State != p.State {
			continue
		}
		var questions map[string]Asked
		if json.Unmarshal(t.Response.Input.Requests, &questions) != nil {
			return
		}
		for key, q := range questions {
			if a, ok := responses[key]; ok {
				q.Answer = a
				s.answers = append(s.answers, &answer{method: q.Method, params: plain(q.Params), Asked: q})
			}
		}
		return
	}
}

// unused returns the names of the unused recordings. Lists and completions may be requested any number of times, so
// unused ones are not reported, except for the first list of tools.
func (s *serverTapes) unused(resumed bool) []string {
	var names []string
	listed, begun := false, !resumed
	for _, t := range s.tapes {
		first := t.Request.Method == methodList && !listed
		listed = listed || first
		begun = begun || t.used && !t.Request.isOptional() // a resumed run may list again
		if begun && !t.used && (first || !t.Request.isOptional()) {
			names = append(names, t.name)
		}
	}
	return names
}

// plain decodes JSON for comparison. Numbers keep their digits.
func plain(raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(raw)
	}
	return v
}

func plainRequest(r ServerRequest) any {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Sprint(r)
	}
	return plain(raw)
}

// HoldsServers reports whether the cassette contains the traffic of servers. A cassette of an older tenon does not, and
// its replay calls the servers.
func (p *Player) HoldsServers() bool { return p.version > 1 }

// Toolset returns a toolset that replays a server. During a call it repeats the recorded requests of the server. The
// answers to these requests must equal the recorded answers. An error that is not part of the recording is a
// *tenon.Error with code conflict.
func (p *Player) Toolset(server string) tenon.Toolset {
	return &playingTools{p: p, server: server, folder: serverFolder(server)}
}

type playingTools struct {
	p              *Player
	server, folder string
}

// listed returns the recorded answer to a list method at the current position of the replay, which is the last one
// before the next unused request. It marks the lists up to it as used. what names the items in errors.
func (t *playingTools) listed(method, what string) (*serverTape, error) {
	p := t.p
	p.mu.Lock()
	defer p.mu.Unlock()
	var list *serverTape
	if s := p.servers[t.folder]; s != nil {
		for _, tape := range s.tapes {
			if tape.Request.Method == method {
				list = tape
				tape.used = true
			} else if list != nil && !tape.used && !tape.Request.isOptional() {
				break
			}
		}
	}
	switch {
	case list == nil || list.Response == nil:
		return nil, p.fault(tenon.Errorf(tenon.CodeConflict,
			"replay: %s has no list of %s of server '%s'; record it again", p.dir, what, t.server))
	case list.Response.Error != nil:
		return nil, list.Response.Error
	}
	return list, nil
}

// Tools returns the recorded tools.
func (t *playingTools) Tools(context.Context) ([]tenon.Tool, error) {
	list, err := t.listed(methodList, "the tools")
	if err != nil {
		return nil, err
	}
	tools := make([]tenon.Tool, 0, len(list.Response.Tools))
	for _, raw := range list.Response.Tools {
		tool, err := mcp.ParseTool(raw)
		if err != nil {
			t.p.mu.Lock()
			defer t.p.mu.Unlock()
			return nil, t.p.fault(tenon.Errorf(tenon.CodeConfig, "replay: %s of %s: %w; record it again",
				list.name, t.p.dir, err))
		}
		tool.Server, tool.Kind = t.server, list.Response.Kinds[tool.Remote]
		tools = append(tools, tool)
	}
	return tools, nil
}

// Call answers with the first unused recording of an equal call.
func (t *playingTools) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	tape, err := t.takeRequest(requestOf(c), fmt.Sprintf("a call of '%s' of server '%s'", c.Tool, t.server))
	if err != nil {
		return nil, err
	}
	for _, n := range tape.Progress {
		if c.Progress != nil {
			c.Progress(n)
		}
	}
	for _, a := range tape.Asked {
		if err := t.ask(ctx, c, tape, a); err != nil {
			return nil, err
		}
	}
	switch r := tape.Response; {
	case ctx.Err() != nil:
		return nil, tenon.Errorf(tenon.CodeCancelled, "replay: %w", context.Cause(ctx))
	case r == nil || r.Error == nil && r.Result == nil:
		return nil, tenon.Errorf(tenon.CodeUnknown, "replay: %s has no answer: the recording ended during the call",
			tape.name)
	case r.Error != nil:
		return nil, r.Error
	default:
		result := *r.Result
		result.Input = r.Input
		return &result, nil
	}
}

// takeRequest returns the first unused recording of an equal request.
func (t *playingTools) takeRequest(r ServerRequest, who string) (*serverTape, error) {
	p := t.p
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "replay: %w", err)
	}
	var found *serverTape
	var near nearest
	recorded := 0
	find := func() bool {
		got := plain(maskJSON(p.redactor, raw))
		p.mu.Lock()
		defer p.mu.Unlock()
		near = nearest{}
		s := p.servers[t.folder]
		if s == nil {
			return false
		}
		recorded = len(s.tapes)
		for _, tape := range s.tapes {
			if !tape.used && tape.Request.Method == r.Method && near.compare(tape.name, tape.norm, got) {
				tape.used, found = true, tape
				break
			}
		}
		return found != nil
	}
	if p.retried(find) {
		return found, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return nil, p.unexpected(who, recorded, near)
}

// ask repeats a recorded request of the server and compares the answer with the recorded one.
func (t *playingTools) ask(ctx context.Context, c tenon.Call, tape *serverTape, a Asked) error {
	if c.Ask == nil {
		return nil // the request is refused; the recording contains the consequence
	}
	got, err := c.Ask(ctx, a.Method, a.Params)
	switch {
	case err != nil && a.Error != nil:
		return nil
	case ctx.Err() != nil:
		return tenon.Errorf(tenon.CodeCancelled, "replay: %w", context.Cause(ctx))
	case a.Error != nil:
		err = fmt.Errorf("it was refused in the recording: %w", a.Error)
	case err == nil:
		at := ""
		if t.p.retried(func() (same bool) {
			at, _, same = difference("", plain(maskJSON(t.p.redactor, a.Answer)), plain(maskJSON(t.p.redactor, got)))
			return same
		}) {
			return nil
		}
		err = fmt.Errorf("the answer differs at %s", at)
	}
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	return t.p.fault(tenon.Errorf(tenon.CodeConflict, "replay: %s: the answer to the request of server '%s' (%s) "+
		"differs from the recording: %w; record it again", tape.name, t.server, a.Method, err))
}

// Answer returns the recorded answer to a server's request during a call: the first matching answer
// that was not returned before. The error is the recorded refusal. The second result is false if
// there is no matching answer.
func (p *Player) Answer(server, method string, params json.RawMessage) (json.RawMessage, bool, error) {
	var found *answer
	p.retried(func() bool {
		found = p.findAnswer(server, method, plain(maskJSON(p.redactor, params)))
		return found != nil
	})
	switch {
	case found == nil:
		return nil, false, nil
	case found.Error != nil:
		return nil, true, found.Error
	}
	return found.Asked.Answer, true, nil
}

// findAnswer returns the first unused answer to an equal request of a server, or nil.
func (p *Player) findAnswer(server, method string, params any) *answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.servers[serverFolder(server)]
	if s == nil {
		return nil
	}
	for _, a := range s.answers {
		if a.used || a.method != method {
			continue
		}
		if _, _, same := difference("", a.params, params); same {
			a.used = true
			return a
		}
	}
	return nil
}

var _ tenon.Toolset = (*playingTools)(nil)

package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
)

// StartRequest is the body of POST /api/v1/runs. Only Question is required.
type StartRequest struct {
	Question string `json:"question"`
	Agent    string `json:"agent,omitempty"`
	Session  string `json:"session,omitempty"` // to continue: an id, the beginning of one, or "-1" for the last
	Fork     bool   `json:"fork,omitempty"`    // ask in a fork of the session, also where that is at work
	Model    string `json:"model,omitempty"`
	NoTools  bool   `json:"no_tools,omitempty"`
	// OutputSchema is a JSON Schema that the answer has to fit.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	ToolChoice   string          `json:"tool_choice,omitempty"`
	Groups       []string        `json:"groups,omitzero"` // of tools; absent: the agent's
	State        string          `json:"state,omitempty"` // in which the agent begins
	MaxTurns     int             `json:"max_turns,omitempty"`
	Mode         string          `json:"mode,omitempty"` // native or react; empty: the agent's
	// Files and Resources belong to the question: pictures, PDF documents, sounds and
	// texts, and what servers have to read.
	Files     []FileInput   `json:"files,omitempty"`
	Resources []ReadRequest `json:"resources,omitempty"`
	// Data are tables that the agent is given: Arrow files or streams, in base64.
	Data [][]byte `json:"data,omitempty"`
	// Yes allows beforehand every tool call that would ask; the value is who the
	// journal names.
	Yes string `json:"yes,omitempty"`
}

// StartResponse is the answer to it (202): the run's row, and what was missing
// when it began. The header Location names the run.
type StartResponse struct {
	Run      tenon.Run       `json:"run"`
	Problems []ServerProblem `json:"problems,omitempty"`
}

// ServerProblem is a server whose tools are missing, or a tool that was left out.
type ServerProblem struct {
	Server  string     `json:"server,omitempty"`
	Code    tenon.Code `json:"code"`
	Message string     `json:"message"`
}

func problemsOf(list []host.Problem) []ServerProblem {
	var out []ServerProblem
	for _, p := range list {
		out = append(out, ServerProblem{p.Server, tenon.ErrorCode(p.Err), p.Err.Error()})
	}
	return out
}

// RunInfo is the answer of GET /api/v1/runs/{id}: what the run came to, and what
// it spent its time on.
type RunInfo struct {
	agent.Report
	Steps []agent.StepRecord `json:"steps"`
}

// CancelRequest is the body of POST /api/v1/runs/{id}/cancel; it may be missing.
type CancelRequest struct {
	Reason string `json:"reason,omitempty"`
}

// SteerRequest is the body of POST /api/v1/runs/{id}/steer.
type SteerRequest struct {
	Text string `json:"text"`
}

// SteerResponse is the answer to it: the event that the message became.
type SteerResponse struct {
	Run string `json:"run"`
	Seq uint64 `json:"seq"`
}

// maxKey bounds an Idempotency-Key.
const maxKey = 255

func (c *call) start() error {
	var q StartRequest
	if err := c.decode(&q, false); err != nil {
		return err
	}
	key := c.req.Header.Get("Idempotency-Key")
	switch {
	case strings.TrimSpace(q.Question) == "":
		return tenon.Errorf(tenon.CodeInvalid, "question is missing")
	case q.MaxTurns < 0:
		return tenon.Errorf(tenon.CodeInvalid, "max_turns must be at least 1")
	case len(key) > maxKey || !utf8.ValidString(key):
		return tenon.Errorf(tenon.CodeInvalid, "Idempotency-Key must be UTF-8 of at most %d bytes", maxKey)
	}
	if key != "" {
		key = string(c.caller.Principal) + "/" + key
	}
	question := host.Question{Text: q.Question, Agent: q.Agent, Session: q.Session, Fork: q.Fork,
		Model: q.Model, NoTools: q.NoTools, Output: q.OutputSchema, ToolChoice: q.ToolChoice, Groups: q.Groups, State: q.State, MaxTurns: q.MaxTurns, Mode: q.Mode, Grant: q.Yes, Data: q.Data}
	if len(q.Data) > maxAttached {
		return tenon.Errorf(tenon.CodeInvalid, "%d tables; %d is the limit of one question", len(q.Data), maxAttached)
	}
	files, err := c.attached(q.Files, q.Resources)
	if err != nil {
		return err
	}
	question.Files = files
	run, problems, again, err := c.ask(key, question)
	if err != nil {
		return err
	}
	if again {
		c.w.Header().Set("Idempotency-Replayed", "true")
	}
	c.w.Header().Set("Location", prefix+"/runs/"+run.ID)
	return c.answer(http.StatusAccepted, StartResponse{run, problemsOf(problems)})
}

// ask begins a run for the caller.
func (c *call) ask(key string, q host.Question) (run tenon.Run, problems []host.Problem, again bool, err error) {
	q.Principal, q.Credentials = c.caller.Principal, c.brought
	if !c.caller.Any {
		if strings.HasPrefix(q.Model, "script:") && !c.caller.Owner {
			return run, nil, false, tenon.Errorf(tenon.CodeDenied, "only the owner of this tenon may name a script, which is a file")
		}
		if q.Session != "" {
			s, err := c.mySession(q.Session)
			if err != nil {
				return run, nil, false, err
			}
			q.Session = s.ID
		}
	}
	if err := c.admitRun(); err != nil {
		return run, nil, false, err
	}
	run, problems, again, err = c.h.StartOnce(c.ctx(), key, q)
	if err == nil && again && !run.State.Ended() {
		err = c.give(run.ID)
	}
	if err == nil && !again {
		c.h.Logger().Info("run "+run.ID+" begins", "run", run.ID, "title", run.Title, "principal", string(run.Principal))
	}
	return run, problems, again, err
}

// runStates are all there are.
var runStates = []string{string(tenon.RunWorking), string(tenon.RunInputRequired), string(tenon.RunCompleted), string(tenon.RunFailed), string(tenon.RunCancelled)}

// runs lists the caller's runs, newest first.
func (c *call) runs() error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	state, err := c.oneOf("state", runStates...)
	if err != nil {
		return err
	}
	q := c.req.URL.Query()
	f := engine.Filter{Principal: c.seen(), Session: q.Get("session"), State: tenon.RunState(state), Caller: q.Get("caller"), Prefix: q.Get("prefix"),
		Top: q.Get("caller") == "" && !strings.Contains(q.Get("prefix"), "/"), Before: q.Get("cursor"), Limit: limit + 1}
	if f.Before != "" && !strings.HasPrefix(f.Before, "run_") {
		return tenon.Errorf(tenon.CodeInvalid, "cursor must be the next_cursor of the page before, not '%s'", tenon.Visible(f.Before))
	}
	runs, err := c.h.Runs(c.ctx(), f)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, paged(runs, limit, func(r tenon.Run) string { return r.ID }))
}

// seen is whose runs and sessions the caller sees; "": everybody's.
func (c *call) seen() tenon.Principal {
	if c.caller.Any {
		return ""
	}
	return c.caller.Principal
}

// mine reports whether the caller sees what is of a principal.
func (c *call) mine(who tenon.Principal) bool {
	return c.caller.Any || who == c.caller.Principal || who == "" && c.caller.Principal == tenon.PrincipalLocal
}

func (c *call) show() error {
	run, err := c.run()
	if err != nil {
		return err
	}
	report, err := c.h.Report(c.ctx(), run.ID)
	if err != nil {
		return err
	}
	events, err := c.h.Journal(c.ctx(), run.ID, 0)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, RunInfo{report, agent.Steps(events, time.Now())})
}

// run finds the run of a request. One of somebody else is as one that is not there.
func (c *call) run() (tenon.Run, error) { return c.runOf(c.req.PathValue("id")) }

func (c *call) runOf(id string) (tenon.Run, error) {
	run, err := c.h.RunRow(c.ctx(), id)
	if err != nil && tenon.ErrorCode(err) != tenon.CodeConflict && tenon.ErrorCode(err) != tenon.CodeNotFound {
		return tenon.Run{}, err
	}
	if run.ID != id || id == "" || !c.mine(run.Principal) {
		return tenon.Run{}, tenon.Errorf(tenon.CodeNotFound, "there is no run '%s'", id)
	}
	return run, nil
}

func (c *call) runMessages() error {
	run, err := c.run()
	if err != nil {
		return err
	}
	list, err := c.h.Conversation(c.ctx(), run.ID)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, items(list))
}

// artifact sends what is kept under an id, as a file: a browser shows nothing of it.
func (c *call) artifact() error {
	run, err := c.run()
	if err != nil {
		return err
	}
	data, kind, err := c.h.Artifact(c.ctx(), run.ID, c.req.PathValue("artifact"))
	if err != nil {
		return err
	}
	if kind == "" {
		kind = "application/octet-stream"
	}
	c.w.Header().Set("Content-Disposition", "attachment")
	c.w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	c.sendBytes(http.StatusOK, kind, c.h.Masked(data))
	return nil
}

func (c *call) resume() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	run, err := c.run()
	if err != nil {
		return err
	}
	if run.State == tenon.RunCompleted || run.State == tenon.RunCancelled {
		return tenon.Errorf(tenon.CodeConflict, "run %s has ended (%s)", run.ID, run.State)
	}
	if err := c.admitRun(); err != nil {
		return err
	}
	if err := c.give(run.ID); err != nil {
		return err
	}
	if err := c.h.Resume(c.ctx(), run.ID); err != nil {
		return err
	}
	return c.accepted()
}

func (c *call) cancel() error {
	var r CancelRequest
	if err := c.decode(&r, true); err != nil {
		return err
	}
	run, err := c.run()
	if err != nil {
		return err
	}
	if run.State.Ended() {
		return tenon.Errorf(tenon.CodeConflict, "run %s has ended (%s)", run.ID, run.State)
	}
	if err := c.h.Cancel(c.ctx(), run.ID, r.Reason); err != nil {
		return err
	}
	return c.accepted()
}

// accepted answers with the run's row as it is by now.
func (c *call) accepted() error {
	run, err := c.run()
	if err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, run)
}

func (c *call) steer() error {
	var s SteerRequest
	if err := c.decode(&s, false); err != nil {
		return err
	}
	if strings.TrimSpace(s.Text) == "" {
		return tenon.Errorf(tenon.CodeInvalid, "the message is empty")
	}
	run, err := c.run()
	if err != nil {
		return err
	}
	e, err := c.h.Steer(c.ctx(), run.ID, s.Text, string(c.caller.Principal))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, SteerResponse{e.Run, e.Seq})
}

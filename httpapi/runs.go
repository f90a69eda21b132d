package httpapi

import (
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

// StartRequest is the body of POST /api/v1/runs. Only Question is required.
type StartRequest struct {
	Question   string   `json:"question"`
	Agent      string   `json:"agent,omitempty"`
	Session    string   `json:"session,omitempty"` // to continue: an id, the beginning of one, or "-1" for the last
	Fork       bool     `json:"fork,omitempty"`    // ask in a fork of the session, also where that is at work
	Model      string   `json:"model,omitempty"`
	NoTools    bool     `json:"no_tools,omitempty"`
	ToolChoice string   `json:"tool_choice,omitempty"`
	Groups     []string `json:"groups,omitzero"` // of tools; absent: the agent's
	State      string   `json:"state,omitempty"` // in which the agent begins
	MaxTurns   int      `json:"max_turns,omitempty"`
	Mode       string   `json:"mode,omitempty"` // native or react; empty: the agent's
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

// Health is the answer of GET /healthz.
type Health struct {
	Status  string `json:"status"` // ok
	Version string `json:"version"`
}

// maxKey bounds an Idempotency-Key.
const maxKey = 255

func (a *api) health(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, http.StatusOK, Health{"ok", a.h.Version()})
}

func (a *api) start(w http.ResponseWriter, req *http.Request) error {
	var q StartRequest
	if err := decode(w, req, &q, false); err != nil {
		return err
	}
	key := req.Header.Get("Idempotency-Key")
	switch {
	case strings.TrimSpace(q.Question) == "":
		return tenon.Errorf(tenon.CodeInvalid, "question is missing")
	case q.MaxTurns < 0:
		return tenon.Errorf(tenon.CodeInvalid, "max_turns must be at least 1")
	case len(key) > maxKey || !utf8.ValidString(key):
		return tenon.Errorf(tenon.CodeInvalid, "Idempotency-Key must be UTF-8 of at most %d bytes", maxKey)
	}
	if key != "" {
		key = string(tenon.PrincipalLocal) + "/" + key
	}
	run, problems, again, err := a.h.StartOnce(req.Context(), key, host.Question{Text: q.Question, Agent: q.Agent, Session: q.Session, Fork: q.Fork,
		Model: q.Model, NoTools: q.NoTools, ToolChoice: q.ToolChoice, Groups: q.Groups, State: q.State, MaxTurns: q.MaxTurns, Mode: q.Mode, Grant: q.Yes})
	if err != nil {
		return err
	}
	if again {
		w.Header().Set("Idempotency-Replayed", "true")
	} else {
		a.h.Logger().Info("run "+run.ID+" begins", "run", run.ID, "title", run.Title)
	}
	w.Header().Set("Location", "/api/v1/runs/"+run.ID)
	out := StartResponse{Run: run}
	for _, p := range problems {
		out.Problems = append(out.Problems, ServerProblem{p.Server, tenon.ErrorCode(p.Err), p.Err.Error()})
	}
	return answer(w, http.StatusAccepted, out)
}

func (a *api) show(w http.ResponseWriter, req *http.Request) error {
	id := req.PathValue("id")
	report, err := a.h.Report(req.Context(), id)
	if err != nil {
		return err
	}
	events, err := a.h.Journal(req.Context(), id, 0)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, RunInfo{report, agent.Steps(events, time.Now())})
}

// row finds the run of a request.
func (a *api) row(req *http.Request) (tenon.Run, error) {
	id := req.PathValue("id")
	run, err := a.h.RunRow(req.Context(), id)
	if err != nil && tenon.ErrorCode(err) != tenon.CodeConflict {
		return tenon.Run{}, err
	}
	if run.ID != id {
		return tenon.Run{}, tenon.Errorf(tenon.CodeNotFound, "there is no run '%s'", id)
	}
	return run, nil
}

func (a *api) resume(w http.ResponseWriter, req *http.Request) error {
	if err := decode(w, req, &struct{}{}, true); err != nil {
		return err
	}
	run, err := a.row(req)
	if err != nil {
		return err
	}
	if run.State == tenon.RunCompleted || run.State == tenon.RunCancelled {
		return tenon.Errorf(tenon.CodeConflict, "run %s has ended (%s)", run.ID, run.State)
	}
	if err := a.h.Resume(req.Context(), run.ID); err != nil {
		return err
	}
	return a.accepted(w, req)
}

func (a *api) cancel(w http.ResponseWriter, req *http.Request) error {
	var c CancelRequest
	if err := decode(w, req, &c, true); err != nil {
		return err
	}
	run, err := a.row(req)
	if err != nil {
		return err
	}
	if run.State.Ended() {
		return tenon.Errorf(tenon.CodeConflict, "run %s has ended (%s)", run.ID, run.State)
	}
	if err := a.h.Cancel(req.Context(), run.ID, c.Reason); err != nil {
		return err
	}
	return a.accepted(w, req)
}

// accepted answers with the run's row as it is by now.
func (a *api) accepted(w http.ResponseWriter, req *http.Request) error {
	run, err := a.row(req)
	if err != nil {
		return err
	}
	return answer(w, http.StatusAccepted, run)
}

func (a *api) steer(w http.ResponseWriter, req *http.Request) error {
	var s SteerRequest
	if err := decode(w, req, &s, false); err != nil {
		return err
	}
	e, err := a.h.Steer(req.Context(), req.PathValue("id"), s.Text, string(tenon.PrincipalLocal))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, SteerResponse{e.Run, e.Seq})
}

package httpapi

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/view"
)

// StartRequest is the body of POST /api/v1/runs. Only Question is required.
type StartRequest struct {
	Question string `json:"question"`
	Agent    string `json:"agent,omitempty"`
	Session  string `json:"session,omitempty"` // session to continue: an id, a prefix of one, or "-1" for the last
	Fork     bool   `json:"fork,omitempty"`    // ask in a fork of the session, which may have a run at work
	Model    string `json:"model,omitempty"`
	NoTools  bool   `json:"no_tools,omitempty"`
	// OutputSchema is a JSON Schema that the answer must match.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	ToolChoice   string          `json:"tool_choice,omitempty"`
	Groups       []string        `json:"groups,omitzero"` // tool groups; absent: the agent's
	State        string          `json:"state,omitempty"` // the first state of the agent
	MaxTurns     int             `json:"max_turns,omitempty"`
	Mode         string          `json:"mode,omitempty"` // native or react; empty: the agent's
	// Files and Resources are attached to the question. Files are pictures, PDF documents, sounds or texts. Resources
	// are read from servers.
	Files     []FileInput   `json:"files,omitempty"`
	Resources []ReadRequest `json:"resources,omitempty"`
	// Data are tables for the agent: Arrow files or streams, in base64.
	Data [][]byte `json:"data,omitempty"`
	// ToolTable is a tool table, as an Arrow file or stream in base64. Alternatively, ToolTableFile is the id of a
	// table in GET /tables. The run gets only the configured tools that the rows of the table name.
	ToolTable     []byte `json:"tool_table,omitempty"`
	ToolTableFile string `json:"tool_table_file,omitempty"`
	ToolColumn    string `json:"tool_column,omitempty"` // column of the table; if empty, the last tool column
	// Yes, if not empty, allows every tool call that would need an approval. The journal names its value as the
	// approver.
	Yes string `json:"yes,omitempty"`
}

// StartResponse is the answer to a StartRequest, with status 202. Problems are the servers and tools that were missing
// at the start of the run. The header Location has the path of the run.
type StartResponse struct {
	Run      tenon.Run       `json:"run"`
	Problems []ServerProblem `json:"problems,omitempty"`
}

// ServerProblem is the reason why a server's tools, or a single tool, are missing.
type ServerProblem struct {
	Server  string     `json:"server,omitempty"`
	Code    tenon.Code `json:"code"`
	Message string     `json:"message"`
}

// Problems converts problems of an answer to the host's type.
func Problems(list []ServerProblem) (out []host.Problem) {
	for _, p := range list {
		out = append(out, host.Problem{Server: p.Server, Err: &tenon.Error{Code: p.Code, Message: p.Message}})
	}
	return out
}

func (c *call) problemsOf(list []host.Problem) []ServerProblem {
	var out []ServerProblem
	for _, p := range list {
		out = append(out, ServerProblem{p.Server, tenon.ErrorCode(p.Err), c.advice(p.Err.Error())})
	}
	return out
}

// RunInfo is the answer of GET /api/v1/runs/{id}: the report of the run, and its steps with their durations.
type RunInfo struct {
	view.Report
	Steps []view.Step `json:"steps"`
	// Interrupted reports that no process works on the run although its state is working, because its process died.
	Interrupted bool `json:"interrupted,omitempty"`
}

// CancelRequest is the body of POST /api/v1/runs/{id}/cancel; it may be missing.
type CancelRequest struct {
	Reason string `json:"reason,omitempty"`
	// Withdraw also withdraws the messages into the run that no model call has sent; see [host.Withdraw].
	Withdraw bool `json:"withdraw,omitempty"`
}

// SteerRequest is the body of POST /api/v1/runs/{id}/steer.
type SteerRequest struct {
	Text string `json:"text"`
}

// SteerResponse is the answer to a SteerRequest. It identifies the event that records the message.
type SteerResponse struct {
	Run string `json:"run"`
	Seq uint64 `json:"seq"`
}

// maxKey is the longest Idempotency-Key, in bytes.
const maxKey = 255

func (c *call) start() error {
	var q StartRequest
	if err := c.decode(&q, false); err != nil {
		return err
	}
	key, err := c.key()
	switch {
	case err != nil:
		return err
	case strings.TrimSpace(q.Question) == "":
		return tenon.Errorf(tenon.CodeInvalid, "question is missing")
	case q.MaxTurns < 0, q.MaxTurns == 0 && !rawjson.IsNull(rawjson.Field(c.body, "max_turns")):
		return tenon.Errorf(tenon.CodeInvalid, "max_turns must be at least 1, not %d; without it, limits.max_turns of "+
			"the configuration counts", q.MaxTurns)
	}
	question := host.Question{Text: q.Question, Agent: q.Agent, Session: q.Session, Fork: q.Fork,
		Model: q.Model, NoTools: q.NoTools, Output: q.OutputSchema, ToolChoice: q.ToolChoice, Groups: q.Groups,
		State: q.State, MaxTurns: q.MaxTurns, Mode: q.Mode, Grant: q.Yes, Data: q.Data}
	switch {
	case len(q.ToolTable) > 0 && q.ToolTableFile != "":
		return tenon.Errorf(tenon.CodeInvalid, "tool_table and tool_table_file exclude each other")
	case len(q.ToolTable) > 0 || q.ToolTableFile != "":
		question.OnlyTable = &host.OnlyTable{Data: q.ToolTable, File: q.ToolTableFile, Column: q.ToolColumn}
	case q.ToolColumn != "":
		return tenon.Errorf(tenon.CodeInvalid, "tool_column needs tool_table or tool_table_file")
	}
	if q.ToolTableFile != "" {
		if !c.caller.Owner {
			return tenon.Errorf(tenon.CodeDenied, "tool_table_file is for the owner; send the table as tool_table")
		}
	}
	if len(q.Data) > maxAttached {
		return tenon.Errorf(tenon.CodeInvalid, "%d tables; %d is the limit of one question", len(q.Data), maxAttached)
	}
	files, err := c.attached(q.Files, q.Resources)
	if err != nil {
		return err
	}
	question.Files = files
	started, _, err := c.ask(key, question, false)
	if err != nil {
		return err
	}
	if started.Again {
		c.w.Header().Set("Idempotency-Replayed", "true")
	}
	c.w.Header().Set("Location", prefix+"/runs/"+started.ID)
	return c.answer(http.StatusAccepted, StartResponse{started.Run, c.problemsOf(started.Problems)})
}

// ask starts a run for the caller. It returns the run of the first request if the Idempotency-Key was used before. With
// steer, a session at work gets the question as a message into its run; after is then the number of the event with the
// message.
func (c *call) ask(key string, q host.Question, steer bool) (started host.Started, after uint64, err error) {
	q.Principal, q.Credentials = c.caller.Principal, c.brought
	if err := c.mayUse(q.Model); err != nil {
		return started, 0, err
	}
	if !c.caller.Any && q.Session != "" {
		s, err := c.mySession(q.Session)
		if err != nil {
			return started, 0, err
		}
		q.Session = s.ID
	}
	if err := c.admitRun(); err != nil {
		return started, 0, err
	}
	q.Key = key
	if steer {
		started, after, err = host.StartOrSteer(c.ctx(), c.h, q, string(c.caller.Principal))
	} else {
		started, err = c.h.Start(c.ctx(), q)
		after = started.After
	}
	switch {
	case err != nil || after > 0: // a message into a run of another request
	case started.Again:
		if !started.State.Ended() {
			err = c.give(started.ID)
		}
	default:
		c.h.Service().Info().Logger.Info("run "+started.ID+" begins",
			"run", started.ID, "title", started.Title, "principal", string(started.Principal))
	}
	return started, after, err
}

// mayUse refuses the model of a request if it is a file and the caller is not the owner.
func (c *call) mayUse(model string) error {
	if strings.HasPrefix(model, "script:") && !c.caller.Any && !c.caller.Owner {
		return tenon.Errorf(tenon.CodeDenied, "only the owner of this tenon may name a script, which is a file")
	}
	return nil
}

// runStates are the values of ?state=.
var runStates = []string{string(tenon.RunWorking), string(tenon.RunInputRequired), string(tenon.RunCompleted),
	string(tenon.RunFailed), string(tenon.RunCancelled)}

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
	f := engine.Filter{Principal: c.seen(), Session: q.Get("session"), State: tenon.RunState(state),
		Caller: q.Get("caller"), Prefix: q.Get("prefix"),
		Top: q.Get("caller") == "" && !strings.Contains(q.Get("prefix"), "/"), Before: q.Get("cursor"), Limit: limit +
			1}
	if f.Before != "" && !strings.HasPrefix(f.Before, "run_") {
		return tenon.Errorf(tenon.CodeInvalid, "cursor must be the next_cursor of the page before, not '%s'",
			tenon.Visible(f.Before))
	}
	runs, err := c.h.Runs().List(c.ctx(), f)
	if err != nil {
		return err
	}
	rows, err := c.rows(runs)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, paged(rows, limit, func(r RunRow) string { return r.ID }))
}

// RunRow is a run in a list.
type RunRow struct {
	tenon.Run
	// Interrupted reports that no process works on the run although its state is working, because its process died.
	Interrupted bool `json:"interrupted,omitempty"`
}

// rows adds to each run whether it is interrupted.
func (c *call) rows(runs []tenon.Run) ([]RunRow, error) {
	rows := make([]RunRow, len(runs))
	for i, r := range runs {
		rows[i].Run = r
		if r.State != tenon.RunWorking || r.Foreign {
			continue
		}
		owner, err := c.h.Runs().Open(r.ID).Owner(c.ctx())
		if err != nil {
			return nil, err
		}
		rows[i].Interrupted = !owner.Working
	}
	return rows, nil
}

// seen returns the principal whose runs and sessions the caller sees. It returns "" if the caller sees the runs and
// sessions of all principals.
func (c *call) seen() tenon.Principal {
	if c.caller.Any {
		return ""
	}
	return c.caller.Principal
}

// mine reports whether the caller sees the runs and sessions of a principal.
func (c *call) mine(who tenon.Principal) bool {
	return c.caller.Any || who == c.caller.Principal || who == "" && c.caller.Principal == tenon.PrincipalLocal
}

func (c *call) show() error {
	run, err := c.run()
	if err != nil {
		return err
	}
	report, err := c.h.Runs().Open(run.ID).Report(c.ctx())
	if err != nil {
		return err
	}
	events, err := c.h.Runs().Open(run.ID).Journal(c.ctx(), 0, 0)
	if err != nil {
		return err
	}
	report.Error = c.advised(report.Error)
	rows, err := c.rows([]tenon.Run{run})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, RunInfo{report, view.Of(events).Steps(time.Now()), rows[0].Interrupted})
}

// run returns the run in the request's path. A run of another principal is not found.
func (c *call) run() (tenon.Run, error) { return c.runOf(c.req.PathValue("id")) }

func (c *call) runOf(id string) (tenon.Run, error) {
	run, err := c.h.Runs().Get(c.ctx(), id)
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
	list, err := c.h.Runs().Open(run.ID).Conversation(c.ctx())
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, items(list))
}

// artifact sends an artifact as a download. Browsers must not display it, because the content is not trusted.
func (c *call) artifact() error {
	run, err := c.run()
	if err != nil {
		return err
	}
	data, kind, err := c.h.Runs().Open(run.ID).Artifact(c.ctx(), c.req.PathValue("artifact"))
	if err != nil {
		return err
	}
	kind = cmp.Or(kind, "application/octet-stream")
	c.w.Header().Set("Content-Disposition", "attachment")
	c.w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	c.sendBytes(http.StatusOK, kind, c.h.Service().Callers().Mask(data))
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
	if err := c.h.Runs().Resume(c.ctx(), run.ID); err != nil {
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
	if r.Withdraw {
		err = host.Withdraw(c.ctx(), c.h, run.ID, r.Reason)
	} else {
		err = c.h.Runs().Cancel(c.ctx(), run.ID, r.Reason)
	}
	if err != nil {
		return err
	}
	return c.accepted()
}

// accepted answers 202 with the current row of the run.
func (c *call) accepted() error {
	run, err := c.run()
	if err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, run)
}

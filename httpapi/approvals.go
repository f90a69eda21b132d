package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

// DecideRequest is the body of POST /api/v1/approvals/{id}/decide, and, with Step, of
// POST /api/v1/runs/{id}/decide.
type DecideRequest struct {
	Step    string        `json:"step,omitempty"`
	Verdict tenon.Verdict `json:"verdict"` // allow or deny
	Reason  string        `json:"reason,omitempty"`
	// Arguments are, for a tool call, edited ones; where a server asks for input, the
	// content of the answer.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Remember  string          `json:"remember,omitempty"` // session or always; empty: this once
}

// Decided is the answer to it: who decided and what, which is somebody else's decision
// where that one came first, and the run as it is now.
type Decided struct {
	Mine bool         `json:"mine"`
	Won  agent.Ruling `json:"won"`
	Run  tenon.Run    `json:"run"`
	// Kind and Time are those of the event that decided: decision, answer, expired.
	Kind string    `json:"kind"`
	Time time.Time `json:"time"`
}

// approvals lists what waits for the caller, oldest first.
func (c *call) approvals() error {
	all, err := c.h.Approvals(c.ctx())
	if err != nil {
		return err
	}
	run := c.req.URL.Query().Get("run")
	all = slices.DeleteFunc(all, func(a host.Approval) bool {
		return !c.mine(a.Principal) || run != "" && a.Run != run && !strings.HasPrefix(a.Run, run+"/")
	})
	return c.answer(http.StatusOK, items(all))
}

func (c *call) decide() error {
	var r DecideRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	if r.Step == "" {
		return tenon.Errorf(tenon.CodeInvalid, "step is missing: what of the run is decided")
	}
	return c.settle(c.req.PathValue("id"), r)
}

func (c *call) decideApproval() error {
	var r DecideRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	run, step, err := c.approval(c.req.PathValue("id"))
	if err != nil {
		return err
	}
	r.Step = step
	return c.settle(run.ID, r)
}

// approval takes the id of an approval, RUN/STEP, apart. The id of a run that another one
// called has slashes of its own, and so has the step of a question, so that only the
// runs that there are tell where the step begins.
func (c *call) approval(id string) (run tenon.Run, step string, err error) {
	for end := strings.LastIndexByte(id, '/'); end > 0; end = strings.LastIndexByte(id[:end], '/') {
		run, err := c.runOf(id[:end])
		if tenon.ErrorCode(err) == tenon.CodeNotFound {
			continue
		}
		return run, id[end+1:], err
	}
	return run, "", tenon.Errorf(tenon.CodeNotFound, "there is no approval '%s'; an id is RUN/STEP, in a path with the slash as %%2F", tenon.Visible(id))
}

// settle decides and has the run go on.
func (c *call) settle(id string, r DecideRequest) error {
	switch {
	case r.Verdict != tenon.Allow && r.Verdict != tenon.Deny:
		return tenon.Errorf(tenon.CodeInvalid, "verdict must be allow or deny, not '%s'", r.Verdict)
	case r.Remember != "" && r.Remember != agent.RememberSession && r.Remember != agent.RememberAlways:
		return tenon.Errorf(tenon.CodeInvalid, "remember must be session or always, not '%s'", r.Remember)
	}
	run, err := c.runOf(id)
	if err != nil {
		return err
	}
	if err := c.give(run.ID); err != nil { // else it would be decided and could not go on
		return err
	}
	won, mine, err := c.h.Settle(c.ctx(), run.ID, r.Step, agent.Ruling{Verdict: r.Verdict, By: string(c.caller.Principal),
		Reason: r.Reason, Arguments: r.Arguments, Remember: r.Remember})
	if err != nil {
		return err
	}
	d := Decided{Mine: mine, Kind: won.Kind, Time: won.Time}
	if won.Kind == agent.EventDecision || won.Kind == agent.EventAnswer {
		_ = json.Unmarshal(won.Data, &d.Won) // what the journal holds is one
	}
	if d.Run, err = c.goOn(run.ID); err != nil {
		return err
	}
	return c.answer(http.StatusOK, d)
}

// goOn has a run that was decided go on where nobody works on it, and returns its row.
func (c *call) goOn(id string) (tenon.Run, error) {
	run, err := c.runOf(id)
	if err != nil || run.State.Ended() {
		return run, err
	}
	if owned, err := c.h.Owned(id); err != nil || owned {
		return run, err
	}
	if err := c.h.Resume(c.ctx(), id); err != nil {
		return run, err
	}
	return c.runOf(id)
}

func (c *call) grants() error {
	list, err := c.h.Grants(c.ctx(), c.seen())
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, items(list))
}

// RevokeRequest is the body of POST /api/v1/grants/revoke.
type RevokeRequest struct {
	Server string `json:"server"`
	Remote string `json:"remote_name"`
}

func (c *call) revoke() error {
	var r RevokeRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	if err := c.h.Revoke(c.ctx(), host.Grant{Principal: c.caller.Principal, Server: r.Server, Remote: r.Remote}); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

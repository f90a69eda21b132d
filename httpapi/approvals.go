package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// DecideRequest is the body of POST /api/v1/approvals/{id}/decide and of POST /api/v1/runs/{id}/decide. Only the second
// one needs Step.
type DecideRequest struct {
	Step    string        `json:"step,omitempty"`
	Verdict tenon.Verdict `json:"verdict"` // allow or deny
	Reason  string        `json:"reason,omitempty"`
	// Arguments replace the arguments of the tool call. If a server asks for input, they are the content of the answer.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Cancel, with the verdict deny, neither accepts nor declines the forms and pages of a server.
	Cancel   bool   `json:"cancel,omitempty"`
	Remember string `json:"remember,omitempty"` // session or always; empty: only this call
	// If, Uses and For restrict a permanent approval: a condition on the arguments of later calls (CEL), their number,
	// and a duration such as 24h or 30d.
	If   string `json:"if,omitempty"`
	Uses int    `json:"uses,omitempty"`
	For  string `json:"for,omitempty"`
}

// Decided is the answer to a DecideRequest. The first decision about a call wins: Won is that decision, and Mine
// reports whether it is the decision of this request. Run is the run's state afterwards.
type Decided struct {
	Mine bool         `json:"mine"`
	Won  agent.Ruling `json:"won"`
	Run  tenon.Run    `json:"run"`
	// Kind and Time are copied from the event of the decision. The kinds are decision, answer and expired.
	Kind string    `json:"kind"`
	Time time.Time `json:"time"`
}

// approvals lists the approvals that the caller can decide, oldest first.
func (c *call) approvals() error {
	all, err := c.h.Approvals().List(c.ctx(), "")
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
		return tenon.Errorf(tenon.CodeInvalid, "step is missing: it names the step of the run to decide")
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

// approval splits the id of an approval, RUN/STEP, into the run and the step. Both can contain slashes: the id of a
// called run, and the step of a server's question. So approval tries each slash from the right until the part before
// it is the id of an existing run.
func (c *call) approval(id string) (run tenon.Run, step string, err error) {
	for end := strings.LastIndexByte(id, '/'); end > 0; end = strings.LastIndexByte(id[:end], '/') {
		run, err := c.runOf(id[:end])
		if tenon.ErrorCode(err) == tenon.CodeNotFound {
			continue
		}
		return run, id[end+1:], err
	}
	return run, "", tenon.Errorf(tenon.CodeNotFound, "there is no approval '%s'; an id is RUN/STEP, in a path with "+
		"the slash as %%2F", tenon.Visible(id))
}

// settle records the decision and resumes the run.
func (c *call) settle(id string, r DecideRequest) error {
	switch {
	case r.Verdict != tenon.Allow && r.Verdict != tenon.Deny:
		return tenon.Errorf(tenon.CodeInvalid, "verdict must be allow or deny, not '%s'", r.Verdict)
	case r.Cancel && r.Verdict != tenon.Deny:
		return tenon.Errorf(tenon.CodeInvalid, "cancel needs the verdict deny")
	case r.Remember != "" && r.Remember != agent.RememberSession && r.Remember != agent.RememberAlways:
		return tenon.Errorf(tenon.CodeInvalid, "remember must be session or always, not '%s'", r.Remember)
	}
	ruling := agent.Ruling{Verdict: r.Verdict, By: string(c.caller.Principal), Reason: r.Reason, Arguments: r.Arguments,
		Cancel: r.Cancel, Remember: r.Remember, If: r.If, Uses: r.Uses}
	if r.For != "" {
		var err error
		if ruling.For, err = config.ParseDuration(r.For); err != nil || ruling.For <= 0 {
			return tenon.Errorf(tenon.CodeInvalid, "for must be a time such as 24h or 30d, not '%s'",
				tenon.Visible(r.For))
		}
	}
	run, err := c.runOf(id)
	if err != nil {
		return err
	}
	if err := c.give(run.ID); err != nil { // before the decision, because the decision can resume the run
		return err
	}
	won, mine, err := c.h.Approvals().Decide(c.ctx(), run.ID, r.Step, ruling)
	if err != nil {
		return err
	}
	d := Decided{Mine: mine, Kind: won.Kind, Time: won.Time}
	if won.Kind == agent.EventDecision || won.Kind == agent.EventAnswer {
		_ = json.Unmarshal(won.Data, &d.Won) // events of these kinds contain a Ruling
	}
	if d.Run, err = c.goOn(run.ID); err != nil {
		return err
	}
	return c.answer(http.StatusOK, d)
}

// goOn resumes a run after a decision, unless it has ended or a process works on it. It returns the run's row. A
// process that holds the run only to record another decision does not work on it; Resume waits until that process has
// finished.
func (c *call) goOn(id string) (tenon.Run, error) {
	run, err := c.runOf(id)
	if err != nil || run.State.Ended() {
		return run, err
	}
	if err := c.h.Runs().Resume(c.ctx(), id); err != nil {
		return run, err
	}
	return c.runOf(id)
}

func (c *call) grants() error {
	list, err := c.h.Approvals().Grants(c.ctx(), c.seen())
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, items(list))
}

// RevokeRequest is the body of POST /api/v1/grants/revoke. It names a grant by its id, or by its tool if the tool has
// only one grant.
type RevokeRequest struct {
	ID     string `json:"id,omitempty"`
	Server string `json:"server,omitempty"` // the server's name, as in the list of grants
	Remote string `json:"remote_name,omitempty"`
}

func (c *call) revoke() error {
	var r RevokeRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	if r.ID == "" {
		list, err := c.h.Approvals().Grants(c.ctx(), c.seen())
		if err != nil {
			return err
		}
		g, err := host.FindGrant(list, r.Server+"."+r.Remote)
		if err != nil {
			return err
		}
		r.ID = g.ID
	}
	if err := c.h.Approvals().Revoke(c.ctx(), c.seen(), r.ID); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

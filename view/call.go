package view

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// The outcomes of a [Call].
const (
	CallOpen    = "open"    // not ended yet
	CallDone    = "result"  // the tool returned a result or a tool error
	CallUnknown = "unknown" // the call may have taken effect
	CallDenied  = "denied"  // a rule, a limit or a person denied it
	CallInvalid = "invalid" // the tool does not exist, or the arguments do not fit its schema
	CallFailed  = "failed"  // the server did not receive or did not answer it
	// CallInterrupted is the outcome of a call that was under way when its run ended and that is safe to repeat. If it
	// is not safe to repeat, the outcome is CallUnknown.
	CallInterrupted = "interrupted"
)

// Call is the audit record of one tool call.
type Call struct {
	Run        string          `json:"run"`
	Step       string          `json:"step"`
	ID         string          `json:"id,omitempty"` // the provider's
	Kind       string          `json:"kind"`         // kind of the tool (see [tenon.Tool]), handoff, search
	Name       string          `json:"name"`
	Server     string          `json:"server,omitempty"`
	Identity   string          `json:"server_identity,omitempty"` // see [agent.Decision.Identity]
	Remote     string          `json:"remote_name,omitempty"`
	Args       json.RawMessage `json:"args"`
	Verdict    tenon.Verdict   `json:"decision,omitempty"`
	By         string          `json:"decided_by,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Outcome    string          `json:"outcome"`
	Success    bool            `json:"success"`
	Error      string          `json:"error,omitempty"`
	Result     *tenon.Result   `json:"result,omitempty"`
	Misfit     string          `json:"misfit,omitempty"`      // why the structured result does not fit its schema
	ResultHash string          `json:"result_hash,omitempty"` // sha256 of the result's bytes
	Cached     bool            `json:"cached,omitempty"`      // the result was taken from an equal call
	From       string          `json:"from,omitempty"`        // RUN/STEP of that call
	Cost       tenon.USD       `json:"cost,omitempty"`        // by the tool's rules
	Attempts   int             `json:"attempts,omitempty"`
	Started    time.Time       `json:"started,omitzero"`
	Millis     int64           `json:"duration_ms"`
	Questions  []Asked         `json:"questions,omitempty"` // of the server, in order

	price tenon.USD // price of an attempt that may have taken effect
	// limit is the reason if the call exceeds the limit of its tool in the run. session is the reason if it may exceed
	// the limit of its tool in the session.
	limit, session string
	number         int  // number of the call since the run's limits were reset
	asked          bool // the call waits for input
}

// newCall returns the record of a proposed call.
func newCall(e tenon.Event, data any) *Call {
	t, ok := data.(*tenon.ToolCall)
	if !ok {
		t = &tenon.ToolCall{}
	}
	c := &Call{Run: e.Run, Step: e.Step, ID: t.ID, Kind: "mcp", Name: t.Name, Args: t.Arguments, Outcome: CallOpen}
	if len(c.Args) == 0 {
		c.Args = json.RawMessage("{}")
	}
	return c
}

// expired is the error of a call whose approval expired.
const expired = "nobody answered in time"

// apply folds an event of the call.
func (c *Call) apply(e tenon.Event, data any) {
	switch d := data.(type) {
	case *agent.Decision:
		c.decided(d)
	case *agent.Admitted:
		if d.Refused != "" {
			c.Outcome, c.Error = CallDenied, d.Refused
		}
	case *agent.Ruling:
		c.Verdict, c.By, c.Reason = d.Verdict, d.By, d.Reason
		if len(d.Arguments) > 0 {
			c.Args = d.Arguments
		}
		if d.Verdict != tenon.Allow {
			c.Outcome, c.Error = CallDenied, agent.RefusalText(d.By, d.Reason)
		}
	case *tenon.ExpiredData:
		c.Outcome, c.Error = CallDenied, expired
	case *tenon.StartedData:
		c.Attempts, c.Started, c.asked = e.Attempt, e.Time, false
	case *agent.Failure:
		c.failed(e.Kind, d)
	case *agent.Handoff:
		c.Outcome, c.Success = CallDone, true
	case *agent.Outcome:
		c.ended(d)
	}
}

func (c *Call) decided(d *agent.Decision) {
	c.price = d.Cost
	c.Server, c.Identity, c.Remote = d.Server, d.Identity, d.Remote
	c.Verdict, c.By, c.Reason = d.Verdict, d.By, d.Reason
	switch {
	case d.ToolKind != "":
		c.Kind = d.ToolKind
	case d.Kind != "":
		c.Kind = d.Kind
	}
	if len(d.Arguments) > 0 {
		c.Args = d.Arguments
	}
	if d.Verdict != tenon.Deny {
		return
	}
	c.Outcome, c.Error = CallDenied, agent.RefusalText(d.By, d.Reason)
	if d.By == agent.ByCatalog {
		c.Outcome = CallInvalid
	}
}

func (c *Call) failed(kind string, f *agent.Failure) {
	c.Outcome, c.Error = CallFailed, ""
	if f.Error != nil {
		c.Error = f.Error.Message
	}
	if kind == tenon.EventUnknown {
		c.Outcome, c.Error, c.Cost = CallUnknown, agent.UnknownText(f.Error), c.price
	}
	c.Millis = f.Duration.Milliseconds()
}

func (c *Call) ended(o *agent.Outcome) {
	c.Outcome, c.Result, c.Millis = CallDone, o.Result, o.Duration.Milliseconds()
	c.Cached, c.From, c.Misfit = o.Source == agent.SourceCache, o.Of, o.Misfit
	if !c.Cached {
		c.Cost = c.price
	}
	if o.Result == nil {
		return
	}
	c.Success = !o.Result.IsError
	c.Error = ""
	if o.Result.IsError {
		c.Error = o.Result.Text()
	}
	raw, err := json.Marshal(o.Result)
	if err == nil {
		sum := sha256.Sum256(raw)
		c.ResultHash = "sha256:" + hex.EncodeToString(sum[:])
	}
}

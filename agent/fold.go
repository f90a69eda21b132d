package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
)

// The outcomes of a [CallRecord].
const (
	CallOpen    = "open"    // not ended yet
	CallDone    = "result"  // the tool answered, well or with an error
	CallUnknown = "unknown" // it may or may not have taken effect
	CallDenied  = "denied"  // a rule, a limit or a person said no
	CallInvalid = "invalid" // there is no such tool, or the arguments do not fit it
	CallFailed  = "failed"  // it could not be made
)

// CallRecord is the audit record of one tool call: a fold of its events.
type CallRecord struct {
	Run        string          `json:"run"`
	Step       string          `json:"step"`
	ID         string          `json:"id,omitempty"` // the provider's
	Kind       string          `json:"kind"`         // of the tool (see [tenon.Tool]), handoff, search
	Name       string          `json:"name"`
	Server     string          `json:"server,omitempty"`
	Remote     string          `json:"remote_name,omitempty"`
	Args       json.RawMessage `json:"args"`
	Verdict    tenon.Verdict   `json:"decision,omitempty"`
	By         string          `json:"decided_by,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Outcome    string          `json:"outcome"`
	Success    bool            `json:"success"`
	Error      string          `json:"error,omitempty"`
	Result     *tenon.Result   `json:"result,omitempty"`
	ResultHash string          `json:"result_hash,omitempty"` // sha256 of the result's bytes
	Cached     bool            `json:"cached,omitempty"`      // the result is that of an equal call
	From       string          `json:"from,omitempty"`        // RUN/STEP of that call
	Cost       tenon.USD       `json:"cost,omitempty"`        // by the tool's rules
	Attempts   int             `json:"attempts,omitempty"`
	Started    time.Time       `json:"started,omitzero"`
	Millis     int64           `json:"duration_ms"`
	Questions  []Asked         `json:"questions,omitempty"` // of the server, in order

	price tenon.USD
}

// Asked is the record of one question of a server during a call, or of one round
// of requests for input.
type Asked struct {
	Step     string          `json:"step"`
	Requests json.RawMessage `json:"requests,omitempty"`
	// Outcome is answered, declined, expired, or open.
	Outcome string `json:"outcome"`
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Model   string `json:"model,omitempty"` // that answered

	answered json.RawMessage // without a person
}

// Calls folds a run's events into the records of its tool calls, in the order
// in which they were proposed.
func Calls(events []tenon.Event) []CallRecord {
	var list []*CallRecord
	byStep := map[string]*CallRecord{}
	for _, e := range events {
		if e.Kind == EventProposed {
			var t tenon.ToolCall
			_ = json.Unmarshal(e.Data, &t) // an unreadable one shows as a record without a name
			c := &CallRecord{Run: e.Run, Step: e.Step, ID: t.ID, Kind: "mcp", Name: t.Name, Args: t.Arguments, Outcome: CallOpen}
			if len(c.Args) == 0 {
				c.Args = json.RawMessage("{}")
			}
			list = append(list, c)
			byStep[e.Step] = c
			continue
		}
		if e.Kind == EventModel || e.Kind == tenon.EventDone {
			for _, c := range list {
				c.passOver(e)
			}
		}
		step, isQuestion := parentStep(e.Step)
		if c := byStep[step]; c != nil && (isQuestion || e.Kind == EventInput || e.Kind == EventAnswer) {
			c.foldQuestion(e)
		} else if c != nil {
			c.fold(e)
		}
	}
	records := make([]CallRecord, len(list))
	for i, c := range list {
		records[i] = *c
	}
	return records
}

// passOver ends the record of a call that nobody made although the run has gone on: the
// core has settled it and told the model so, which is no event.
func (c *CallRecord) passOver(e tenon.Event) {
	if c.Outcome != CallOpen || c.Attempts > 0 {
		return
	}
	if c.Outcome, c.Error = CallDenied, passedOver; e.Kind == tenon.EventDone {
		c.Error = "not run: the run has ended"
	}
}

// passedOver says why nobody made a call although the model was asked again.
const passedOver = "not run: a limit was reached, or the answer that asked for it was cut off"

func (c *CallRecord) fold(e tenon.Event) {
	switch e.Kind {
	case EventDecided:
		var d Decision
		_ = json.Unmarshal(e.Data, &d)
		c.price = d.Cost
		c.Server, c.Remote, c.Verdict, c.By, c.Reason = d.Server, d.Remote, d.Verdict, d.By, d.Reason
		switch {
		case d.ToolKind != "":
			c.Kind = d.ToolKind
		case d.Kind != "":
			c.Kind = d.Kind
		}
		if len(d.Arguments) > 0 {
			c.Args = d.Arguments
		}
		if d.Verdict == tenon.Deny {
			c.Outcome, c.Error = CallDenied, refusal(d.By, d.Reason)
			if d.By == ByCatalog {
				c.Outcome = CallInvalid
			}
		}
	case EventAdmitted:
		var a Admitted
		if _ = json.Unmarshal(e.Data, &a); a.Refused != "" {
			c.Outcome, c.Error = CallDenied, a.Refused
		}
	case EventDecision:
		var r Ruling
		_ = json.Unmarshal(e.Data, &r)
		c.Verdict, c.By, c.Reason = r.Verdict, r.By, r.Reason
		if len(r.Arguments) > 0 {
			c.Args = r.Arguments
		}
		if r.Verdict != tenon.Allow {
			c.Outcome, c.Error = CallDenied, refusal(r.By, r.Reason)
		}
	case tenon.EventExpired:
		c.Outcome, c.Error = CallDenied, "nobody answered in time"
	case tenon.EventStarted:
		c.Attempts, c.Started = e.Attempt, e.Time
	case tenon.EventUnknown, EventFailed:
		var f Failure
		_ = json.Unmarshal(e.Data, &f)
		c.Outcome, c.Error = CallFailed, ""
		if f.Error != nil {
			c.Error = f.Error.Message
		}
		if e.Kind == tenon.EventUnknown {
			c.Outcome, c.Error, c.Cost = CallUnknown, unknownText(f.Error), c.price
		}
		c.Millis = f.Duration.Milliseconds()
	case EventHandoff:
		c.Outcome, c.Success = CallDone, true
	case EventResult:
		var o Outcome
		_ = json.Unmarshal(e.Data, &o)
		c.Outcome, c.Result, c.Millis = CallDone, o.Result, o.Duration.Milliseconds()
		if c.Cached, c.From = o.Source == SourceCache, o.Of; !c.Cached {
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
}

// Report is what a run came to, for one JSON object.
type Report struct {
	Run       string           `json:"run"`
	Session   string           `json:"session"`
	State     tenon.RunState   `json:"state"`
	Stop      tenon.StopReason `json:"stop_reason,omitempty"`
	Answer    string           `json:"answer"`
	Output    json.RawMessage  `json:"output,omitempty"` // the answer as JSON, where the run has an output schema
	Turns     int              `json:"turns"`
	ToolCalls []CallRecord     `json:"tool_calls"`
	Usage     tenon.Usage      `json:"usage"`
	Cost      *tenon.USD       `json:"cost"` // nil: no price is known
	Error     *tenon.Error     `json:"error,omitempty"`
	Waiting   []tenon.Waiting  `json:"waiting,omitempty"`
	Model     string           `json:"model,omitempty"`
	Agent     string           `json:"agent,omitempty"`
}

// Fold makes the report of a run from its row and events. A run that has not
// ended is reported as far as it came.
func Fold(run tenon.Run, events []tenon.Event) Report {
	r := Report{Run: run.ID, Session: run.Session, State: run.State, Stop: run.Stop, Waiting: run.Waiting,
		Model: run.Model, Agent: run.Agent, ToolCalls: Calls(events)}
	for _, c := range r.ToolCalls {
		if c.Cost > 0 {
			r.use(nil, &c.Cost)
		}
	}
	for _, e := range events {
		switch e.Kind {
		case EventAnswer, EventInput:
			var a Answer // an Input has its figures under the same names
			if json.Unmarshal(e.Data, &a) == nil {
				r.use(a.Usage, a.Cost)
			}
		case EventModel:
			var m Answered
			if json.Unmarshal(e.Data, &m) == nil && m.Message != nil {
				r.Turns++
				r.use(m.Usage, m.Cost)
				if text := m.Message.Text(); text != "" {
					r.Answer = text
				}
				if r.Output = m.Output; len(m.Output) > 0 {
					r.Answer = string(m.Output)
				}
			}
		case EventCompacted:
			var c Compacted
			if json.Unmarshal(e.Data, &c) == nil {
				r.use(c.Usage, c.Cost)
				if c.Why == CompactAsked {
					r.Answer = c.Summary
				}
			}
		case EventResult:
			var o Outcome
			if json.Unmarshal(e.Data, &o) == nil && o.Spent != nil {
				cost := &o.Spent.Cost
				if *cost == 0 { // of a workflow, or a model whose price is not known
					cost = nil
				}
				r.use(&o.Spent.Usage, cost)
			}
		case tenon.EventDone:
			var d tenon.DoneData
			if json.Unmarshal(e.Data, &d) == nil {
				r.State, r.Stop, r.Error = d.State, d.Stop, d.Error
				if r.Answer == "" { // no model gave it: a workflow's message
					r.Answer = d.Answer
				}
			}
		case tenon.EventRetry:
			r.State, r.Stop, r.Error = run.State, run.Stop, nil
		}
	}
	return r
}

// use counts what a model call used.
func (r *Report) use(u *tenon.Usage, cost *tenon.USD) {
	r.Usage.Add(u)
	if cost == nil {
		return
	}
	if r.Cost == nil {
		r.Cost = new(tenon.USD)
	}
	*r.Cost += *cost
}

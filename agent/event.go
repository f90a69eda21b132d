package agent

import (
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
)

// The kinds of event of this core, beside those of every engine.
const (
	EventModel    = "model"          // a model's answer; data: Answered
	EventProposed = "proposed"       // a tool call of that answer; data: tenon.ToolCall
	EventReserved = "reserved"       // whether the budgets have room for a model call; data: Reserved
	EventDecided  = "decided"        // the policy's verdict about it; data: Decision
	EventAdmitted = "admitted"       // when the call has its turn under the tool's rate; data: Admitted
	EventDecision = "decision"       // a person's verdict, a signal; data: Ruling
	EventResult   = "result"         // a tool call ended; data: Outcome
	EventFailed   = "failed"         // an attempt failed; data: Failure
	EventInput    = "input_required" // the server asks for more; data: Input
	EventAnswer   = "answer"         // the answer to that or to a question, a signal; data: Answer
	EventMessage  = "message"        // a message into the running run, a signal; data: Steer
)

// LiveProgress is the kind of the live event (Seq 0) that tells how a tool call
// gets on; data: tenon.Progress. What a model says while it says it comes as
// engine.LiveDelta.
const LiveProgress = "progress"

// The kinds of command of this core.
const (
	CommandModel   = "model"   // ask the model; Local is a *Prompt
	CommandDecide  = "decide"  // evaluate the policy, ask the budgets; data, or in its place Local: DecideCommand
	CommandReserve = "reserve" // wait until the budgets have room for the model call, or have none any more; data: DecideCommand
	CommandTool    = "tool"    // run a tool; Local in place of data: ToolCommand
)

// Who decided, in a [Decision], where it was not a person.
const (
	ByPolicy  = "policy"  // the rules
	ByCatalog = "catalog" // there is no such tool, or the arguments do not fit it
	ByBudget  = "budget"  // a budget is used up
)

// DecideCommand is the data of a [CommandDecide]: about a tool call, or, where it
// is for a turn's own step, about the model call of that turn (Local is its
// *Prompt).
type DecideCommand struct {
	View
	Call  tenon.ToolCall `json:"call,omitzero"`
	Grant string         `json:"grant,omitempty"` // who allowed beforehand whatever would ask
	// Grants are the tools that were allowed for the session: "server/remote" → by
	// whom.
	Grants map[string]string `json:"grants,omitempty"`
	// Budgets are to have room for the step. Beyond says that a person let the run
	// go on although they have not: what is used is counted and never refused.
	Budgets Budgets `json:"budgets,omitzero"`
	Beyond  bool    `json:"beyond,omitempty"`
	// NoCalls says that the model was not to call any tool: its tool choice is none, which
	// not every server of models obeys.
	NoCalls bool `json:"no_calls,omitempty"`
	// Propose has the call journaled as proposed first; no model did.
	Propose bool `json:"propose,omitempty"`
	// Admit asks, in place of all else, when a call that was let through has its turn.
	Admit *Admission `json:"admit,omitempty"`
	// Tool is the tool of the call where no snapshot has it: a step of a workflow that
	// is none of a server's. Its arguments are not checked.
	Tool *tenon.Tool `json:"tool,omitempty"`
}

// Admission is what the turn of a call depends on.
type Admission struct {
	Server string        `json:"server"`
	Remote string        `json:"remote_name"`
	Rate   string        `json:"rate"`            // such as 10/m
	After  time.Duration `json:"after,omitempty"` // nanoseconds that the call waits in any case
}

// Admitted is the data of an [EventAdmitted].
type Admitted struct {
	Wait    time.Duration `json:"wait,omitempty"`    // nanoseconds until the call may begin
	Refused string        `json:"refused,omitempty"` // why it is not run: its turn would come too late
}

// GrantFor says who allowed a tool beforehand, or "".
func (c *DecideCommand) GrantFor(server, remote string) string {
	if by, ok := c.Grants[grantKey(server, remote)]; ok {
		return by + " (for the session)"
	}
	return c.Grant
}

// Decision is what the policy said about a tool call, and all that is needed to
// run it: which tool it is, the arguments that were checked and will be sent,
// whether a repeat is safe.
type Decision struct {
	Verdict    tenon.Verdict   `json:"verdict"`
	Kind       string          `json:"kind,omitempty"` // KindAgent, KindWorkflow, KindHandoff, KindSearch, KindQuery; empty: a tool
	By         string          `json:"by"`             // policy, catalog (not a tool, bad arguments), or who said so
	Reason     string          `json:"reason,omitempty"`
	Policy     string          `json:"policy,omitempty"`    // digest of the rules that were read
	ToolKind   string          `json:"tool_kind,omitempty"` // of the tool; empty: mcp
	Server     string          `json:"server,omitempty"`
	Remote     string          `json:"remote_name,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	Idempotent bool            `json:"idempotent,omitempty"`
	Timeout    time.Duration   `json:"timeout,omitempty"`           // nanoseconds; 0: the server's
	Expires    time.Duration   `json:"expires,omitempty"`           // nanoseconds that a question waits for a person; 0: for ever
	MaxCalls   int             `json:"max_calls,omitempty"`         // of this tool in the run; 0: no limit
	MaxSession int             `json:"max_session_calls,omitempty"` // of this tool in the session; 0: no limit
	NextState  string          `json:"next_state,omitempty"`        // of the agent, after the call has succeeded
	Refused    *Refusal        `json:"refused,omitempty"`           // by ByBudget: what there is no room for
	Rate       string          `json:"rate,omitempty"`              // such as 10/m: the call waits for its turn
	Cost       tenon.USD       `json:"cost,omitempty"`              // of the call
	Cache      *Caching        `json:"cache,omitempty"`             // nil: no other call's result will do
}

// Caching says which equal calls may have one result, and for how long.
type Caching struct {
	TTL   time.Duration `json:"ttl"`   // nanoseconds
	Scope string        `json:"scope"` // run, session, project
}

// Reserved is the data of an [EventReserved].
type Reserved struct {
	Refused *Refusal `json:"refused,omitempty"` // nil: there is room
	// Queued says that other steps hold what is left until they have ended: a
	// CommandReserve waits for them.
	Queued bool `json:"queued,omitempty"`
}

// Refusal is what a budget has no room for.
type Refusal struct {
	Budget string           `json:"budget"` // session, day, principal
	Limit  tenon.StopReason `json:"limit"`  // what is used up: limit_turns and so on
	Reason string           `json:"reason"`
}

// Ruling is a person's decision about a call that was asked about.
type Ruling struct {
	Verdict   tenon.Verdict   `json:"verdict"`      // allow or deny
	By        string          `json:"by,omitempty"` // empty: the local user
	Reason    string          `json:"reason,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // edited; empty: as proposed
	// Remember says how long an allowed tool is to ask no more, whatever its
	// arguments are.
	Remember string `json:"remember,omitempty"`
}

// The values of [Ruling.Remember]. Empty: this once.
const (
	RememberSession = "session" // for the rest of the session
	RememberAlways  = "always"  // until the grant is taken back; whoever executes keeps it
)

// grantKey is a tool's identity in the grants of a session.
func grantKey(server, remote string) string { return server + "/" + remote }

// The kinds of [Asking].
const (
	AskApproval = "approval" // may this call run?
	AskInput    = "input"    // what the server wants to know
	AskLimit    = "limit"    // may the run go on past its limit?
	AskSampling = "sampling" // may the server have an answer of the model?
)

// Asking is the data of a wait command: what a person is asked to decide.
type Asking struct {
	Kind      string          `json:"kind"` // AskApproval, AskInput, AskLimit, AskSampling, AskChild
	Name      string          `json:"name"`
	Server    string          `json:"server"`
	Remote    string          `json:"remote_name"`
	Arguments json.RawMessage `json:"arguments"`
	Reason    string          `json:"reason,omitempty"`
	Requests  json.RawMessage `json:"requests,omitempty"` // input, sampling: what the server asks for
	Live      bool            `json:"live,omitempty"`     // the call is under way and waits for the answer
	Run       string          `json:"run,omitempty"`      // child: the run that waits
}

// ToolCommand is the data of a [CommandTool].
type ToolCommand struct {
	Name      string             `json:"name"`
	Server    string             `json:"server"`
	Remote    string             `json:"remote_name"`
	Arguments json.RawMessage    `json:"arguments"`
	Timeout   time.Duration      `json:"timeout,omitempty"`
	Input     *tenon.InputAnswer `json:"input,omitempty"`
	Budgets   Budgets            `json:"budgets,omitzero"`
	Round     int                `json:"round,omitempty"` // how often the server asked for input before
	View      *View              `json:"view,omitempty"`  // of KindSearch: among what it finds
	Data      []tenon.Table      `json:"data,omitempty"`  // of KindQuery: the tables of the conversation
	Cost      tenon.USD          `json:"cost,omitempty"`
	Cache     *Caching           `json:"cache,omitempty"`
	// Resume says that the call is at work already, and this asks after it; see
	// [tenon.InputRequired.Resume].
	Resume bool `json:"resume,omitempty"`
}

// Outcome is how a tool call ended.
type Outcome struct {
	Result   *tenon.Result `json:"result"`
	Source   string        `json:"source,omitempty"`  // "" for a call, or SourceCache
	Of       string        `json:"of,omitempty"`      // SourceCache: RUN/STEP of the call that gave the result
	Spent    *Summary      `json:"spent,omitempty"`   // by the agent that was called
	Whole    *Artifact     `json:"whole,omitempty"`   // the text that Result holds only a part of
	Found    []string      `json:"found,omitempty"`   // tools that the model can call from here on
	Outputs  []tenon.Table `json:"outputs,omitempty"` // of a workflow
	Duration time.Duration `json:"duration_ns,omitempty"`
}

// SourceCache is the source of a result that an equal call gave before.
const SourceCache = "cache"

// Artifact is a text that is kept apart from the result that it belongs to.
type Artifact struct {
	ID     string `json:"id"`     // see [tenon.ArtifactID]
	Digest string `json:"digest"` // of the blob
	Bytes  int    `json:"bytes"`
}

// Failure is an attempt that came to nothing: the call was not made, or the model
// gave no answer.
type Failure struct {
	Error *tenon.Error `json:"error"`
	// Retry says that another attempt may help and that this one had no effect.
	Retry    bool          `json:"retry,omitempty"`
	Duration time.Duration `json:"duration_ns,omitempty"`
}

// Steer is a message that a person sends into a running run.
type Steer struct {
	Text string `json:"text"`
	By   string `json:"by,omitempty"`
}

// Prompt is what a model is to be asked. It shares the messages with the state
// it came from; they never change.
type Prompt struct {
	View
	Model      string
	System     string
	Messages   []*tenon.Message
	ToolChoice string
	Output     json.RawMessage // the schema that the last answer has to fit; empty: any text
	React      *React          // nil: the model calls tools itself
	Deadline   time.Time       // when the run's time is up; zero: never
	Budgets    Budgets         // that the request is charged to
	Tokens     int             // an estimate of what the request comes to, without tools
	Sampling   *Sampling       // nil: as the model is configured
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		// Only values of this package get here, and their raw parts were
		// checked when they were decoded.
		panic("agent: " + err.Error())
	}
	return b
}

package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
)

// Kinds of event of this core, in addition to the kinds of every engine.
const (
	EventModel    = "model"          // the model answered; data: Answered
	EventProposed = "proposed"       // a tool call of that answer; data: tenon.ToolCall
	EventReserved = "reserved"       // whether the budgets have room for a model call; data: Reserved
	EventDecided  = "decided"        // the policy's verdict about a call; data: Decision
	EventAdmitted = "admitted"       // when a call may begin under its tool's rate; data: Admitted
	EventDecision = "decision"       // a person's verdict, a signal; data: Ruling
	EventResult   = "result"         // a tool call ended; data: Outcome
	EventFailed   = "failed"         // an attempt failed; data: Failure
	EventInput    = "input_required" // the server needs input; data: Input
	EventAnswer   = "answer"         // the answer to input_required or to a question, a signal; data: Answer
	EventMessage  = "message"        // a person's message to a running run, a signal; data: Steer
)

// LiveProgress is the kind of the live event (Seq 0) that reports progress of a tool call; data: tenon.Progress. The
// partial text of a model's answer has the kind engine.LiveDelta.
const LiveProgress = "progress"

// Kinds of command of this core.
const (
	CommandModel  = "model"  // ask the model; Local is a *Prompt
	CommandDecide = "decide" // evaluate the policy and ask the budgets; data or Local: DecideCommand
	// wait until the budgets have room for the model call or refuse it; data: DecideCommand
	CommandReserve = "reserve"
	CommandTool    = "tool" // run a tool; Local: ToolCommand
)

// Values of By in a [Decision] that no person made.
const (
	ByPolicy  = "policy"  // the rules
	ByCatalog = "catalog" // the tool does not exist, or the arguments do not fit it
	ByBudget  = "budget"  // a budget is used up
	ByClient  = "client"  // the client executes its tool itself, so nobody else is asked
)

// DecideCommand is the data of a [CommandDecide] about a tool call. At the step of a turn, it is about the turn's
// model call, and Local is its *Prompt.
type DecideCommand struct {
	View
	Call  tenon.ToolCall `json:"call,omitzero"`
	Grant string         `json:"grant,omitempty"` // who approved all calls in advance
	// Grants are the tools that were allowed for the session: key of the [Subject] → who allowed it.
	Grants map[string]string `json:"grants,omitempty"`
	// Budgets must have room for the step. If Beyond is set, a person has let the run continue past its budgets:
	// usage is counted but never refused.
	Budgets Budgets `json:"budgets,omitzero"`
	Beyond  bool    `json:"beyond,omitempty"`
	// NoCalls says that the tool choice is none, so that calls are refused. Some model servers ignore the tool
	// choice.
	NoCalls bool `json:"no_calls,omitempty"`
	// Only is the list of tools to which the tool choice limits the run. If nil, the run can use all tools.
	Only []string `json:"only,omitempty"`
	// Removed says that the tool's server removed it during the run.
	Removed bool `json:"removed,omitempty"`
	// Client says that a client of the gateway makes the call, whose calls of a day count as one session.
	Client bool `json:"client,omitempty"`
	// Propose adds a proposed event, because no model proposed the call.
	Propose bool `json:"propose,omitempty"`
	// Admit checks the rate limit of an allowed call. If it is set, the other fields are ignored.
	Admit *Admission `json:"admit,omitempty"`
	// Tool is the tool of a workflow step that is in no snapshot, because no server has it. Its arguments are not
	// checked.
	Tool *tenon.Tool `json:"tool,omitempty"`
	// Again says that the call repeats one with an unknown outcome. A person is asked, whoever allowed such calls,
	// unless a repeat is safe.
	Again bool `json:"again,omitempty"`
}

// Admission asks when a call may begin under its tool's rate.
type Admission struct {
	Server string        `json:"server"`
	Remote string        `json:"remote_name"`
	Rate   string        `json:"rate"`            // such as 10/m
	After  time.Duration `json:"after,omitempty"` // nanoseconds that the call waits for another reason
}

// Admitted is the data of an [EventAdmitted].
type Admitted struct {
	Wait    time.Duration `json:"wait,omitempty"`    // nanoseconds until the call may begin
	Refused string        `json:"refused,omitempty"` // why the call is not run: it would have to wait too long
}

// SessionKey returns the key by which the approvals of a session know the tool.
func (s *Subject) SessionKey(server, remote string) string { return s.key(server, remote) }

// SessionGrant returns who allowed a tool for the session, with the key of the approval, or "" for both. Whether the
// approval was withdrawn since is not in the journal.
func (c *DecideCommand) SessionGrant(server, remote string, s *Subject) (key, by string) {
	key = s.key(server, remote)
	by, ok := c.Grants[key]
	if !ok {
		return "", ""
	}
	return key, by + " (for the session)"
}

// GrantFor returns the person who allowed a tool for the session or for the run, or "". s identifies the current
// tool; it is nil if it is unknown.
func (c *DecideCommand) GrantFor(server, remote string, s *Subject) string {
	if by, ok := c.Grants[s.key(server, remote)]; ok {
		return by + " (for the session)"
	}
	return c.Grant
}

// Subject identifies a tool for grants. A name is not enough: another server may get the same name, and a tool may
// change. A grant is valid only for an equal subject.
type Subject struct {
	Server     string `json:"server_id"`            // the server's identity
	Target     string `json:"target,omitempty"`     // digest of what the server starts or calls
	Definition string `json:"definition,omitempty"` // digest of the tool's definition
}

// key returns the key of the tool in the grants of a session.
func (s *Subject) key(server, remote string) string {
	if s == nil {
		return grantKey(server, remote)
	}
	sum := sha256.Sum256(mustJSON([]string{s.Server, remote, s.Target, s.Definition}))
	return grantKey(s.Server, remote) + "#" + hex.EncodeToString(sum[:16])
}

// Decision is the policy's verdict about a tool call, with all that is needed to run it: the tool, the checked
// arguments to send, and whether a repeat is safe.
type Decision struct {
	Verdict tenon.Verdict `json:"verdict"`
	// KindAgent, KindWorkflow, KindHandoff, KindSearch, KindQuery, KindClient; empty for a tool
	Kind       string          `json:"kind,omitempty"`
	By         string          `json:"by"` // policy, catalog (unknown tool, bad arguments), budget, or a person
	Reason     string          `json:"reason,omitempty"`
	Policy     string          `json:"policy,omitempty"`    // digest of the rules
	ToolKind   string          `json:"tool_kind,omitempty"` // kind of the tool; empty means mcp
	Server     string          `json:"server,omitempty"`
	Remote     string          `json:"remote_name,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	Idempotent bool            `json:"idempotent,omitempty"`
	Timeout    time.Duration   `json:"timeout,omitempty"` // nanoseconds; 0 means the server's
	// nanoseconds that a question waits for a person; 0 means without end
	Expires    time.Duration `json:"expires,omitempty"`
	MaxCalls   int           `json:"max_calls,omitempty"`         // limit for this tool in the run; 0 means no limit
	MaxSession int           `json:"max_session_calls,omitempty"` // limit in the session; 0 means no limit
	NextState  string        `json:"next_state,omitempty"`        // state of the agent after the call has succeeded
	Refused    *Refusal      `json:"refused,omitempty"`           // with ByBudget: the budget that has no room
	Rate       string        `json:"rate,omitempty"`              // such as 10/m: the call waits for its turn
	Cost       tenon.USD     `json:"cost,omitempty"`              // of the call
	Cache      *Caching      `json:"cache,omitempty"`             // nil: cached results are not used
	// identifies the tool for a grant, or nil if no question is asked
	Subject *Subject `json:"subject,omitempty"`
	// Identity is the server's identity, the key of records and limits. Target is the digest of what the server
	// starts or calls: the call is not made if it has changed since the decision. Both are empty in journals of
	// earlier releases.
	Identity string `json:"server_identity,omitempty"`
	Target   string `json:"target,omitempty"`
	// New is the digest of the tool's definition if the server added the tool after its tools were pinned. If the
	// call is allowed, the definition is pinned.
	New string `json:"new,omitempty"`
	// Output is the digest of the tool's output schema, see [OutputDigest]. Structured results are checked against it.
	Output string `json:"output,omitempty"`
	// Again says that the question is whether to repeat a call with an unknown outcome. Subject is then nil, because
	// the answer is about this call only.
	Again bool `json:"again,omitempty"`
}

// AgainReason is the reason of a question about a call with [Decision.Again].
const AgainReason = "this call was made before, and its outcome is unknown: it may have taken effect. Check that; " +
	"to allow it makes the call again, to deny it ends the run"

// OutputDigest returns the digest of an output schema, or "" if there is none.
func OutputDigest(schema json.RawMessage) string {
	if len(schema) == 0 {
		return ""
	}
	sum := sha256.Sum256(schema)
	return hex.EncodeToString(sum[:16])
}

// Caching says which equal calls may share a result, and for how long.
type Caching struct {
	TTL   time.Duration `json:"ttl"`   // nanoseconds
	Scope string        `json:"scope"` // run, session, project
}

// Reserved is the data of an [EventReserved].
type Reserved struct {
	Refused *Refusal `json:"refused,omitempty"` // nil: the budgets have room
	// Queued says that other steps have reserved the remaining budget. A CommandReserve waits for them.
	Queued bool `json:"queued,omitempty"`
}

// Refusal names the budget that has no room for a step.
type Refusal struct {
	Budget string           `json:"budget"` // session, day, principal
	Limit  tenon.StopReason `json:"limit"`  // the limit that is reached: limit_turns and so on
	Reason string           `json:"reason"`
}

// Ruling is a person's decision about a call.
type Ruling struct {
	Verdict   tenon.Verdict   `json:"verdict"`      // allow or deny
	By        string          `json:"by,omitempty"` // empty: the local user
	Reason    string          `json:"reason,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // edited; empty if they are as proposed
	// Cancel, with the verdict deny, says that a person neither accepted nor declined the forms and pages of a server.
	// The server receives the action cancel instead of decline (2025-06-18, elicitation).
	Cancel bool `json:"cancel,omitempty"`
	// Responses are the answers of a client to a server's requests, by their keys, as the server gets them. They
	// replace Arguments, and a model's answer. Only the gateway sets them.
	Responses json.RawMessage `json:"-"`
	// Remember is the scope of an approval: empty for this call, RememberSession or RememberAlways for later calls.
	Remember string `json:"remember,omitempty"`
	// If, Uses and For narrow [RememberAlways]: a condition on the call's arguments (CEL),
	// how many calls, and how long, in nanoseconds. Empty and 0 do not narrow it.
	If   string        `json:"if,omitempty"`
	Uses int           `json:"uses,omitempty"`
	For  time.Duration `json:"for,omitempty"`
}

// IsNarrow reports whether a ruling allows less than every later call of its tool.
func (r *Ruling) IsNarrow() bool { return r.If != "" || r.Uses != 0 || r.For != 0 }

// Values of [Ruling.Remember]. Empty means this call only.
const (
	RememberSession = "session" // the decision holds for the rest of the session
	RememberAlways  = "always"  // until the grant is revoked; the executor stores it
)

// grantKey returns the key under which a tool is counted.
func grantKey(server, remote string) string { return server + "/" + remote }

// Kinds of [Asking].
const (
	AskApproval = "approval" // may this call run?
	AskInput    = "input"    // the server needs input
	AskLimit    = "limit"    // may the run continue past its limit?
	AskSampling = "sampling" // may a model answer the server?
	AskClient   = "client"   // the client executes the call and sends the result
)

// Asking is the data of a wait command: a question to a person.
type Asking struct {
	Kind      string          `json:"kind"` // AskApproval, AskInput, AskLimit, AskSampling, AskClient, AskChild
	Name      string          `json:"name"`
	Server    string          `json:"server"`
	Remote    string          `json:"remote_name"`
	Arguments json.RawMessage `json:"arguments"`
	Reason    string          `json:"reason,omitempty"`
	Requests  json.RawMessage `json:"requests,omitempty"` // input, sampling: the server's requests
	Live      bool            `json:"live,omitempty"`     // the call is under way and waits for the answer
	Run       string          `json:"run,omitempty"`      // child: the run that waits
	Subject   *Subject        `json:"subject,omitempty"`  // approval: identifies the tool for a grant
	Again     bool            `json:"again,omitempty"`    // approval: see [Decision.Again]
	// Connector is the MCP server that the model's provider calls, with its address; nil for other calls.
	Connector *tenon.Connector `json:"connector,omitempty"`
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
	Round     int                `json:"round,omitempty"` // how often the server has asked for input so far
	View      *View              `json:"view,omitempty"`  // KindSearch: the tools to search
	Data      []tenon.Table      `json:"data,omitempty"`  // KindQuery: the tables of the conversation
	Cost      tenon.USD          `json:"cost,omitempty"`
	Cache     *Caching           `json:"cache,omitempty"`
	Target    string             `json:"target,omitempty"` // see [Decision.Target]
	New       string             `json:"new,omitempty"`    // see [Decision.New]
	Output    string             `json:"output,omitempty"` // see [Decision.Output]
	// Allowed says that a person or a grant allowed a call for which the rules required a question.
	Allowed bool `json:"allowed,omitempty"`
	// Resume says that the server is working on the call already, and that its state is requested; see
	// [tenon.InputRequired.Resume].
	Resume bool `json:"resume,omitempty"`
	// Client says that a client of the gateway made the call and gets the result. After a crash such a call is not
	// sent again. Unsent says that the rules allow another attempt if the call did not reach the server.
	Client bool `json:"client,omitempty"`
	Unsent bool `json:"unsent,omitempty"`
}

// Outcome is how a tool call ended.
type Outcome struct {
	Result  *tenon.Result `json:"result"`
	Source  string        `json:"source,omitempty"`  // "" for a call, or SourceCache
	Of      string        `json:"of,omitempty"`      // SourceCache: RUN/STEP of the call with the result
	Spent   *Summary      `json:"spent,omitempty"`   // by a child run
	Whole   *Artifact     `json:"whole,omitempty"`   // the full text if Result holds a part
	Found   []string      `json:"found,omitempty"`   // tools that the model can call from now on
	Outputs []tenon.Table `json:"outputs,omitempty"` // of a workflow
	Misfit  string        `json:"misfit,omitempty"`  // why the structured result does not fit the output schema
	// Unknown says that a child run failed, and that a call of it may or may not have taken effect.
	Unknown  bool          `json:"unknown,omitempty"`
	Duration time.Duration `json:"duration_ns,omitempty"`
}

// SourceCache is the source of a result that was taken from an earlier equal call.
const SourceCache = "cache"

// ArtifactURI begins the URI of the full text of a result that was too large for a client of the gateway. The run and
// the id of the [Artifact] follow.
const ArtifactURI = "tenon://artifacts/"

// Artifact is a text that is stored apart from its result.
type Artifact struct {
	ID     string `json:"id"`     // see [tenon.ArtifactID]
	Digest string `json:"digest"` // of the blob
	Bytes  int    `json:"bytes"`
}

// Failure is the data of an [EventFailed]: a tool call that was not made, or a model call without an answer.
type Failure struct {
	Error *tenon.Error `json:"error"`
	// Retry says that the attempt had no effect and that another one may succeed.
	Retry    bool          `json:"retry,omitempty"`
	Duration time.Duration `json:"duration_ns,omitempty"`
	Partial  *Partial      `json:"partial,omitempty"` // the incomplete answer of a model call that failed
}

// Steer is a person's message to a running run.
type Steer struct {
	Text string `json:"text"`
	By   string `json:"by,omitempty"`
}

// Prompt is a model request. It shares its messages with the state, which never changes them.
type Prompt struct {
	View
	Agent      string
	Groups     *[]string // groups of tools that the question names; nil means the agent's groups
	Selected   bool      // the question selected its tools one by one: none are added
	Excluded   string    // see [Spec.Excluded]
	Model      string
	System     string
	Messages   []*tenon.Message
	ToolChoice string
	Output     json.RawMessage // JSON Schema of the last answer; empty if any text is valid
	React      *React          // nil: the model calls tools natively
	Timeout    time.Duration   // rest of the run's time; 0 means no limit
	Budgets    Budgets         // budgets to which the request is charged
	Tokens     int             // estimated tokens of the request, without tools
	Sampling   *Sampling       // nil: the model's configured settings
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		// The values are of types of this package. Their raw JSON was checked when it was decoded.
		panic("agent: " + err.Error())
	}
	return b
}

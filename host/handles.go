package host

import (
	"context"
	"encoding/json"
	"io"
	"iter"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/transcript"
	"github.com/tenonhq/tenon/view"
)

// Handles is a tenon in this process or another one: *[Host] and the client of package httpapi implement it. A method
// that is not available over HTTP returns an error of code invalid that says so.
type Handles interface {
	Records
	Offers
	// Stats counts what models and tools used.
	Stats(ctx context.Context, q StatsQuery) ([]Stat, error)
	io.Closer
}

// Records are the handles for what is stored of runs and conversations.
type Records interface {
	Runs() Runs
	Sessions() Sessions
	Approvals() Approvals
	Tables() Tables
}

// Offers are the handles for what runs can use.
type Offers interface {
	Servers() Servers
	Tools() Tools
	Workflows() Workflows
	Models() Models
}

// Runs lists, follows and controls runs. *[Host] and the client of package httpapi return one.
type Runs interface {
	// List returns runs, newest first.
	List(ctx context.Context, f engine.Filter) ([]tenon.Run, error)
	// Get finds a run by its id, by a unique prefix of the id, or counted from the last ("-1").
	// Errors: not_found, conflict (several ids have the prefix).
	Get(ctx context.Context, ref string) (tenon.Run, error)
	// Events yields the events of a run after the given sequence number and follows the run until it ends or waits.
	// Live events (Seq 0) are not stored and may be missed. See [engine.Engine].
	Events(ctx context.Context, run string, after uint64) iter.Seq2[tenon.Event, error]
	// Resume continues a run that no process works on: its process died, it was decided while at rest, or it failed.
	// A run that another run called resumes together with its caller. Errors: not_found, conflict.
	Resume(ctx context.Context, run string) error
	// Cancel asks a run to end, together with the runs that it called.
	Cancel(ctx context.Context, run, reason string) error
	// Steer sends a message into a run that has not ended and returns its event. The model reads it before its next
	// request. By names the sender; over HTTP it is the principal of the token. Errors: invalid (no text, or the run
	// takes no messages), too_large, not_found, conflict (the run has ended), store.
	Steer(ctx context.Context, run, text, by string) (tenon.Event, error)
	// Open returns the view of a run by its whole id. It reads nothing yet.
	Open(run string) View
}

// View reads what is stored of one run. Every method returns not_found where the run does not exist.
type View interface {
	// Journal returns up to limit stored events after the given sequence number; limit 0 returns all of them.
	Journal(ctx context.Context, after uint64, limit int) ([]tenon.Event, error)
	// Report returns the result of the run, or its state so far.
	Report(ctx context.Context) (view.Report, error)
	// Conversation returns all messages of the session up to this run and in it.
	Conversation(ctx context.Context) ([]*tenon.Message, error)
	// Replay applies the journal to a new core and compares the result with the stored result. It executes nothing.
	Replay(ctx context.Context) (Replay, error)
	// Artifact returns a stored part of a tool result and its MIME type.
	Artifact(ctx context.Context, id string) (data []byte, mimeType string, err error)
	// Owner reports which processes look after the run.
	Owner(ctx context.Context) (Owner, error)
	// Data returns the tables and the workflow of the run.
	Data() RunData
}

// RunData reads the tables of one run, and the workflow that it executes.
type RunData interface {
	// Tables lists the tables of the run: its inputs, the outputs of its steps, its own outputs.
	Tables(ctx context.Context) ([]RunTable, error)
	// OpenTable opens a table of any size, an Arrow file or stream. The end of ctx ends reading. Errors: not_found,
	// store.
	OpenTable(ctx context.Context, digest string) (*TableReader, error)
	// Page returns rows of a table. Errors: not_found.
	Page(ctx context.Context, digest string, o PageOptions) (TablePage, error)
	// ToolTable returns the table that the run took its tools from, or nil if none, and the servers of that table
	// that this process does not have.
	ToolTable(ctx context.Context) (t *agent.ToolTable, missing []string, err error)
	// Workflow returns the workflow that the run executes. Errors: invalid (the run is no workflow).
	Workflow(ctx context.Context) (WorkflowView, error)
	// Export writes the tool calls of the run as a workflow file, which repeats them without a model. The calls of a
	// turn run in parallel, turns in sequence; refused calls are left out. Redacted arguments and secrets are masked.
	// Errors: auth_required (a secret), invalid (the run made no call, or a table cannot be named).
	Export(ctx context.Context) ([]byte, error)
	// Result returns the result of a workflow run. Errors: conflict (the run has not ended), invalid.
	Result(ctx context.Context) (WorkflowResult, error)
}

// Sessions lists and changes conversations. A reference to a session is its id, a unique prefix of the id, or a number
// counted from the last ("-1").
type Sessions interface {
	// List returns the sessions that a filter selects, most recently used first. Errors: not_found (Before).
	List(ctx context.Context, f SessionFilter) ([]tenon.Session, error)
	// Get finds a session. Errors: not_found, conflict (several ids have the prefix).
	Get(ctx context.Context, ref string) (tenon.Session, error)
	// Fork begins a session that shares the conversation of another one up to a message. A call stays with its
	// result: a message within a turn means the end of the turn. At is the number of the last shared message, or 0 if
	// there is none. Errors: not_found, invalid (no such message), conflict (the message waits for results), store.
	Fork(ctx context.Context, f Fork) (s tenon.Session, at int, err error)
	// Rename sets the title of a session, one line of at most 200 characters. Errors: not_found, invalid, store.
	Rename(ctx context.Context, session, title string) (tenon.Session, error)
	// Delete deletes a session, its runs and all data that only they need. Errors: not_found, conflict (one of its
	// runs is at work, or another session continues it), store.
	Delete(ctx context.Context, session string) error
	// Compact begins a run that replaces the conversation so far by a summary, for the model; the messages stay
	// readable. An empty model means the model of the session's agent. The answer of the run is the summary, or "" if
	// there was nothing to summarize. Errors: not_found, conflict (the session is at work), store.
	Compact(ctx context.Context, session, model string) (tenon.Run, error)
	// Transcripts returns the messages of the sessions.
	Transcripts() Transcripts
}

// Transcripts reads, searches, exports and imports conversations.
type Transcripts interface {
	// Messages returns all messages of a session, numbered. Errors: not_found, store.
	Messages(ctx context.Context, session string) ([]transcript.Message, error)
	// Context returns the conversation of a session up to its head; with seen, what the model sees of it after
	// compactions. Errors: not_found, store.
	Context(ctx context.Context, session string, seen bool) ([]*tenon.Message, error)
	// Calls returns the audit records of all tool calls of a session, oldest first.
	Calls(ctx context.Context, session string) ([]view.Call, error)
	// Search finds words in messages, tool calls and their results. Errors: not_found, invalid (no words, or too many),
	// store.
	Search(ctx context.Context, q transcript.Query) ([]transcript.Hit, error)
	// Export writes a session as one document, JSON or Markdown. Configured secrets are read and masked. Errors:
	// not_found, auth_required (a secret cannot be read), store.
	Export(ctx context.Context, w io.Writer, session string, f Format) error
	// Import stores the session of an exported document, whole or not at all. The document is checked completely: its
	// grants do not count, and its runs never continue. Errors: invalid (with the place), too_large, conflict (it
	// exists), store.
	Import(ctx context.Context, im transcript.Import) (transcript.ImportReport, error)
}

// Format is the format of an exported session.
type Format string

// The formats of [Transcripts.Export].
const (
	FormatJSON     Format = "json"
	FormatMarkdown Format = "markdown"
)

// Approvals lists and decides what waits for a person, and manages the grants that allow calls without asking again.
type Approvals interface {
	// List returns what a run, or a run that it called, waits for; with an empty run, what all runs wait for, oldest
	// first. Expired questions are left out.
	List(ctx context.Context, run string) ([]Approval, error)
	// Decide answers what a run waits for at a step. It returns the event that decided, and whether that event is the
	// caller's own: the first decision wins. A run at rest continues with [Runs.Resume]; one at work continues by
	// itself.
	//
	// For a tool call the ruling allows or denies it; edited arguments must fit the tool's schema. Where a server asks
	// for input, Arguments are the content of the answer; for several forms, an object of contents by request key. Deny
	// declines. At a limit, and where a server asks for an answer of the model, the verdict says yes or no.
	//
	// A call allowed for the session or for good also allows the other calls of the session that wait for the same
	// tool, as far as the grant's condition and count allow them. Errors: not_found, conflict (it does not wait for
	// this), invalid (the verdict, the arguments), store.
	Decide(ctx context.Context, run, step string, r agent.Ruling) (won tenon.Event, mine bool, err error)
	// Grants returns the approvals of a principal for later calls, both permanent ones and ones for a session; with
	// an empty principal, all. Over HTTP, the principal is the token's.
	Grants(ctx context.Context, of tenon.Principal) ([]Grant, error)
	// Revoke deletes a grant, so that the tool asks again, also in a session under way. The principal is as for
	// Grants. Errors: not_found.
	Revoke(ctx context.Context, of tenon.Principal, id string) error
	// Rules explains the rules that decide about calls.
	Rules() Rules
}

// Rules evaluates the configured rules without a run.
type Rules interface {
	// Judge returns the decision about a call in a run without any grant. It calls nothing. Errors: not_found, invalid
	// (the arguments do not fit the tool).
	Judge(ctx context.Context, p Proposal) (policy.Opinion, error)
	// Verdicts returns the decision of each layer about a call of a tool without arguments, the most trusted layer
	// first.
	Verdicts(t *tenon.Tool, agent string) []policy.LayerVerdict
	// Forbids reports whether the rules deny every call of a tool by a principal, whatever its arguments are, and why.
	// Rules that depend on arguments are left to the call.
	Forbids(t *tenon.Tool, agent string, who tenon.Principal) (reason string, forbidden bool)
	// JudgeTool returns the decision about a call of a tool by a principal, without any grant. The tool need not be one
	// of the catalog: a resource or a prompt of a server is judged as one, too. Nil arguments are not known: rules that
	// depend on them ask.
	JudgeTool(t *tenon.Tool, who tenon.Principal, args json.RawMessage) policy.Opinion
	// Unused names the rule of a tool that has no effect, and the reason, or "" if all rules have an effect.
	Unused(t *tenon.Tool, agent string) string
	// ReadsPrincipal reports whether a rule reads the principal, so that decisions can differ between principals.
	ReadsPrincipal() bool
	// Digest identifies the rules: equal rules have equal digests.
	Digest() string
}

// Owner says which processes look after a run.
type Owner struct {
	Working bool // a process works on the run now
	Served  bool // a tenon serve resumes the runs of this store
}

// Runs returns the handle for runs.
func (h *Host) Runs() Runs { return runsHandle{h} }

// Open implements [Runs].
func (h runsHandle) Open(run string) View { return viewHandle{h.host, run} }

// Data implements [View].
func (h viewHandle) Data() RunData { return runDataHandle(h) }

// Sessions returns the handle for conversations.
func (h *Host) Sessions() Sessions { return sessionsHandle{h} }

// Transcripts implements [Sessions].
func (h sessionsHandle) Transcripts() Transcripts { return transcriptsHandle(h) }

// Approvals returns the handle for approvals and grants.
func (h *Host) Approvals() Approvals { return approvalsHandle{h} }

// Rules implements [Approvals].
func (h approvalsHandle) Rules() Rules { return rulesHandle(h) }

// The handles do not embed the host. Each would get its 300 methods, and to compile these took longer than the rest of
// the package.
type (
	runsHandle struct{ host *Host }
	viewHandle struct {
		host *Host
		id   string
	}
	runDataHandle     viewHandle
	sessionsHandle    struct{ host *Host }
	transcriptsHandle struct{ host *Host }
	approvalsHandle   struct{ host *Host }
	rulesHandle       struct{ host *Host }
)

var (
	_ Handles     = (*Host)(nil)
	_ Runs        = runsHandle{}
	_ View        = viewHandle{}
	_ RunData     = runDataHandle{}
	_ Sessions    = sessionsHandle{}
	_ Transcripts = transcriptsHandle{}
	_ Approvals   = approvalsHandle{}
	_ Rules       = rulesHandle{}
)

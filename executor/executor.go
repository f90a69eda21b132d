// Package executor carries out the commands of cores: it asks models, decides about tool calls, calls tools, and
// answers the questions that servers ask during calls.
//
//	engine ─► Executor.Do(command) ─► model | rules, pins, budgets | tool ─► events ─► journal
//
// An Executor keeps no state about runs, so that any process can continue any run. A command contains everything that
// it needs, or says what to read from the store. In memory are only data of the process: how many calls of a tool are
// running, kept results of calls, and the rates of sampling.
//
// Package host provides everything else as dependencies: see [Config]. Every call of a tool goes through one table of
// toolsets ([Tools.Toolset]), whose entries carry out the steps ([Toolset]): tools of servers, requests and functions
// are called, agents and workflows begin runs. Commands about tables of workflows are registered by kind
// ([Config.Commands]).
package executor

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/pins"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/store"
)

// Config contains the dependencies of an [Executor]. All fields are required, unless their comments say what nil
// means.
type Config struct {
	Store         store.Store
	Redactor      *tenon.Redactor
	Logger        *slog.Logger
	Now           func() time.Time
	Models        Models
	Conversations Conversations
	Tools         Tools
	Rules         Rules
	Grants        Grants
	Pins          Pins
	// Attempts records attempts at allowed calls outside of the store. If nil, they are not recorded.
	Attempts store.Attempts
	// Commands contains functions for further kinds of commands.
	Commands map[string]Command
	// Tables converts a large result to tables, if it is a list of rows.
	Tables func(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, r *tenon.Result) ([]tenon.Table, error)
	// Access returns a digest of what a call reaches in the current configuration. A result that was kept under
	// another digest is not used.
	Access func(ctx context.Context, run tenon.Run, c *agent.ToolCommand, own servers.Overlay) (string, error)
	// KindOf returns the kind of a decision about a tool, and the kind of the tool in its record; see
	// [agent.Decision].
	KindOf func(t *tenon.Tool) (decision, tool string)
	// Server returns the configuration of a server, with defaults.
	Server func(name string) servers.Config
	// Caller returns the client that waits for the call of a run, or nil if there is none. The function may be nil.
	Caller func(run string) *mcp.Caller
	// TimeoutKey returns the key of the configuration that limits the time of a tool's calls, and the place where it
	// is set.
	TimeoutKey func(server, remote, agent string) string
	// Replay returns the recorded answer to a server's question, and false if there is none. The function is nil
	// unless this is a replay.
	Replay func(server, method string, params json.RawMessage) (json.RawMessage, bool, error)
	// Trace returns the trace context of a step for servers, or "" if traces are not exported.
	Trace func(run, step string) string
	// Interactive means that a person answers questions of servers while a call is running.
	Interactive bool
	// IgnoreRunGrants means that the administrator forbids grants for whole runs (--yes).
	IgnoreRunGrants bool
}

// Command executes a command of a core; see [engine.Do].
type Command = engine.Do

// Model is an opened model.
type Model struct {
	tenon.Model
	Check Checker // nil if the model expects nothing
	// Hosted contains the tools that the provider runs itself. The rules decide which of them a request offers.
	Hosted []tenon.Tool
	// AsksFirst names tools of Hosted for whose calls the provider asks, so that the rules decide about each call.
	AsksFirst []string
	// Notes are warnings about requests to this model, such as one about an agent's tool that its API does not have.
	Notes []string
	// Upload returns a request whose large files are stored at the provider, and warnings about files that are not. If
	// nil, requests contain all files.
	Upload func(context.Context, *tenon.Request) (*tenon.Request, []string)
}

// Checker is a scripted model that checks the conversation.
type Checker interface {
	// Unconsumed returns an error if a finished conversation lacks messages that the script expects.
	Unconsumed([]*tenon.Message) error
}

// Models opens models.
type Models interface {
	// Candidates returns the model of an agent's run and its fallbacks, in order.
	Candidates(agent, model string) []string
	// Open opens the model of a prompt, in the prompt's mode. Errors: config, auth_required.
	Open(ctx context.Context, p *agent.Prompt) (Model, error)
	// Default returns the model of runs that do not name one. Errors: config.
	Default(ctx context.Context) (string, error)
	// MaxTokens returns the configured maximum length of a model's answer, or 0 if there is none.
	MaxTokens(model string) int
	// Cost returns the price of tokens, or 0 if it is not known.
	Cost(ctx context.Context, model string, u tenon.Usage) tenon.USD
}

// Conversations reads the conversations that are sent to models.
type Conversations interface {
	// State folds the journal of a run of an agent. Errors: not_found, invalid, store.
	State(ctx context.Context, run string) (*agent.State, error)
	// Request returns a prompt as a request, with the tools that the model sees. Errors: store.
	Request(ctx context.Context, p *agent.Prompt) (*tenon.Request, error)
	// Refresh returns the changes of the tools since the snapshot of a prompt, or nil if there are none. It stores
	// the new snapshot. Errors: store.
	Refresh(ctx context.Context, run tenon.Run, p *agent.Prompt) (*agent.ToolsChanged, error)
}

// Tools finds the tools of calls.
type Tools interface {
	// Ready prepares the resources for a run's calls, such as a workflow's folder.
	Ready(ctx context.Context, run tenon.Run) error
	// Toolset returns the toolset of a server whose tool a run calls. Errors: unreachable (there is none).
	Toolset(run, server, tool string) (Toolset, error)
	// ServerFor returns the name that the server with a target has in this process. For tools of tenon it returns
	// server.
	ServerFor(server, target string) string
	// Identify returns the identity of a tool that a run calls. Errors: store.
	Identify(ctx context.Context, run, server, remote string) (Identity, error)
	// Overlay returns the credentials of a run's principal at a server.
	Overlay(ctx context.Context, run tenon.Run, server string) (servers.Overlay, error)
}

// Identity identifies a tool.
type Identity struct {
	policy.ID        // the identity of the server and the remote name: the key of rules and records
	Target    string // digest of what a call starts or reaches; empty if that is part of the identity
}

// Check returns an error of code denied if the tool's target is not the target in the decision about the call.
// Decisions of earlier releases contain no target.
func (id *Identity) Check(server, remote, decided string) error {
	if decided == "" || decided == id.Target {
		return nil
	}
	return tenon.Errorf(tenon.CodeDenied,
		"tool '%s' of server '%s' was not called: the server starts or calls something "+
			"else than it did when the call was decided about; call the tool again", remote, server)
}

// Ruleset contains the current rules. They change when servers are added or removed.
type Ruleset struct {
	Layers *policy.Layers
	Digest string
}

// Rules provides the rules and facts for decisions about calls.
type Rules interface {
	Ruleset() *Ruleset
	// Prepare looks up the tool of a call and checks its arguments. Errors: errors of [catalog.Snapshot.Prepare],
	// store.
	Prepare(ctx context.Context, core string, c *agent.DecideCommand) (catalog.Prepared, error)
	// CheckResult checks a structured result against the output schema of its tool. An error of code invalid says why
	// the result does not fit. Any other error means that the check was not possible.
	CheckResult(ctx context.Context, run string, c *agent.ToolCommand, structured json.RawMessage) error
	// Facts returns the facts that the rules evaluate. Errors: store.
	Facts(ctx context.Context, run tenon.Run, state string, t *tenon.Tool, args json.RawMessage) (*policy.Facts, error)
	// Protected returns the reason if the arguments lead to tenon's own files and are refused, or else "".
	Protected(t *tenon.Tool, args json.RawMessage) string
}

// Grants finds approvals that were given before.
type Grants interface {
	// Subject returns the tool and target that a grant for a tool covers.
	Subject(ctx context.Context, run tenon.Run, t *tenon.Tool) (*agent.Subject, error)
	// Find returns the author of a grant that covers a call, or "" if there is none. Errors: store.
	Find(ctx context.Context, run tenon.Run, step, remote string, s *agent.Subject, f *policy.Facts) (string, error)
	// Holds reports whether an approval that the journal has for the session was not withdrawn. Errors: store.
	Holds(ctx context.Context, run tenon.Run, key string) (bool, error)
}

// Pins compares tools with their pinned definitions.
type Pins interface {
	CheckCall(ctx context.Context, c pins.Call) error
	IsNew(ctx context.Context, t *tenon.Tool) (bool, error)
}

// Executor executes commands. It is safe for concurrent use.
type Executor struct {
	cfg     Config
	gates   gates
	results policy.Results // kept results of calls
	sampled rates          // rates of the answers of models to servers
	lights  sync.Map       // run → *Light, for light calls that the engine has taken over
}

// New returns an executor.
func New(cfg Config) *Executor { return &Executor{cfg: cfg} }

// Forget drops the kept results of a session from memory.
func (x *Executor) Forget(session string) { x.results.Forget(session) }

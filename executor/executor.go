// Package executor carries out the commands of cores: it asks models, decides about tool calls, calls tools, and
// answers the questions that servers ask during calls.
//
//	engine ─► Executor.Do(command) ─► model | rules, pins, budgets | tool ─► events ─► journal
//
// An Executor keeps no state about runs. A command has everything that it needs, or names what to read from the
// store, so that any process can continue any run. It keeps in memory what belongs to the process: how many calls of
// a tool are at work, kept results of calls, and the rates of sampling.
//
// Everything else is a dependency that package host provides: see [Config]. All calls of tools go through one table
// of toolsets ([Tools.Toolset]), whose entries carry out the steps ([Toolset]): tools of servers, requests and
// functions are called, agents and workflows begin runs. Commands about tables of workflows are registered by kind
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

// Config has the dependencies of an [Executor]. All fields are required except Attempts and Replay.
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
	// Attempts records attempts at allowed calls outside of the store. Nil: they are not recorded.
	Attempts store.Attempts
	// Commands executes other kinds of command.
	Commands map[string]Command
	// Tables converts a large result to tables, if it is a list of rows.
	Tables func(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, r *tenon.Result) ([]tenon.Table, error)
	// Access identifies what a call reaches in the current configuration. Kept results of other configurations are not
	// used.
	Access func(ctx context.Context, run tenon.Run, c *agent.ToolCommand, own servers.Overlay) (string, error)
	// KindOf returns the kind of a decision about a tool, and the kind of the tool in its record; see
	// [agent.Decision].
	KindOf func(t *tenon.Tool) (decision, tool string)
	// Server returns the configuration of a server, with defaults.
	Server func(name string) servers.Config
	// Caller returns the client that waits for the call of a run; nil if there is none. It may be nil.
	Caller func(run string) *mcp.Caller
	// TimeoutKey returns the key of the configuration that limits the time of a tool's calls, and where it is written.
	TimeoutKey func(server, remote, agent string) string
	// Replay returns the recorded answer to a server's question, false if there is none. Nil: this is not a replay.
	Replay func(server, method string, params json.RawMessage) (json.RawMessage, bool, error)
	// Trace returns the trace context of a step for servers, "" if traces are not exported.
	Trace func(run, step string) string
	// Interactive means that a person answers questions of servers while a call is at work.
	Interactive bool
	// IgnoreRunGrants means that the administrator forbids grants for whole runs (--yes).
	IgnoreRunGrants bool
}

// Command executes a command of a core; see [engine.Do].
type Command = engine.Do

// Model is an opened model.
type Model struct {
	tenon.Model
	Check Checker // nil: the model has no expectations
	// Hosted are the tools that the provider runs itself. The rules decide which of them a request offers.
	Hosted []tenon.Tool
}

// Checker is a scripted model that expects certain results.
type Checker interface {
	// Unconsumed reports what a finished conversation should have contained.
	Unconsumed([]*tenon.Message) error
}

// Models opens models.
type Models interface {
	// Candidates returns the model of an agent's run and its fallbacks, in order.
	Candidates(agent, model string) []string
	// Open opens the model of a prompt, in the prompt's mode. Errors: config, auth_required.
	Open(ctx context.Context, p *agent.Prompt) (Model, error)
	// Default returns the model of runs that name none. Errors: config.
	Default(ctx context.Context) (string, error)
	// MaxTokens returns the configured limit of a model's answer, 0 if there is none.
	MaxTokens(model string) int
	// Cost returns the price of tokens, 0 if it is not known.
	Cost(ctx context.Context, model string, u tenon.Usage) tenon.USD
}

// Conversations reads what a model is asked.
type Conversations interface {
	// State folds the journal of a run of an agent. Errors: not_found, invalid, store.
	State(ctx context.Context, run string) (*agent.State, error)
	// Request returns a prompt as a request, with the tools that the model sees. Errors: store.
	Request(ctx context.Context, p *agent.Prompt) (*tenon.Request, error)
	// Refresh returns the changes of the tools since the snapshot of a prompt, nil if there are none. The new snapshot
	// is in the store. Errors: store.
	Refresh(ctx context.Context, run tenon.Run, p *agent.Prompt) (*agent.ToolsChanged, error)
}

// Tools finds the tools of calls.
type Tools interface {
	// Ready prepares what a run's calls need, such as a workflow's folder.
	Ready(ctx context.Context, run tenon.Run) error
	// Toolset returns the toolset of the server of a tool that a run calls. Errors: unreachable (there is none).
	Toolset(run, server, tool string) (Toolset, error)
	// ServerFor returns the name of the server that has a target in this process. Tools of tenon keep their server.
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

// Check reports a tool that has another target than when the call was decided about. Decisions of earlier releases
// have no target. Errors: denied.
func (id *Identity) Check(server, remote, decided string) error {
	if decided == "" || decided == id.Target {
		return nil
	}
	return tenon.Errorf(tenon.CodeDenied,
		"tool '%s' of server '%s' was not called: the server starts or calls something "+
			"else than it did when the call was decided about; call the tool again", remote, server)
}

// Ruleset is the rules at one moment. They change when servers are added or removed.
type Ruleset struct {
	Layers *policy.Layers
	Digest string
}

// Rules provides what decides about a call.
type Rules interface {
	Ruleset() *Ruleset
	// Prepare looks up the tool of a call and checks its arguments. Errors: errors of [catalog.Snapshot.Prepare],
	// store.
	Prepare(ctx context.Context, core string, c *agent.DecideCommand) (catalog.Prepared, error)
	// CheckResult checks a structured result against the output schema of its tool. The error says what does not fit;
	// its code is invalid. Any other error: the check was not possible.
	CheckResult(ctx context.Context, run string, c *agent.ToolCommand, structured json.RawMessage) error
	// Facts returns what the rules evaluate. Errors: store.
	Facts(ctx context.Context, run tenon.Run, state string, t *tenon.Tool, args json.RawMessage) (*policy.Facts, error)
	// Protected returns why arguments are refused that lead to tenon's own files, "" if they are not.
	Protected(t *tenon.Tool, args json.RawMessage) string
}

// Grants finds permanent approvals.
type Grants interface {
	// Subject returns what a grant for a tool covers.
	Subject(ctx context.Context, run tenon.Run, t *tenon.Tool) (*agent.Subject, error)
	// Find returns the author of a grant that covers a call, "" if there is none. Errors: store.
	Find(ctx context.Context, run tenon.Run, step, remote string, s *agent.Subject, f *policy.Facts) (string, error)
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
	results policy.Results // of equal calls
	sampled rates          // answers of models for servers
	lights  sync.Map       // run → *Light, for the light calls that an engine has begun
}

// New returns an executor.
func New(cfg Config) *Executor { return &Executor{cfg: cfg} }

// Forget drops the kept results of a session from memory.
func (x *Executor) Forget(session string) { x.results.Forget(session) }

package host

import (
	"context"
	"io"
	"iter"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/pins"
	"github.com/tenonhq/tenon/servers"
)

// Servers lists and controls the MCP servers.
type Servers interface {
	// List returns the state of every server by name: configured ones, disabled ones included, servers that were added,
	// and the toolsets of the program, whose transport is [servers.TransportProgram]. It starts nothing.
	List(ctx context.Context) ([]servers.Status, error)
	// Add connects to a server that is not configured and offers its tools from the next run on, filtered, named and
	// transformed as its entry says. Runs under way keep their tools. The rules of the entry are the server's block:
	// they follow policy.defaults and precede the rules for groups, agents and tools; they cannot redact. Tools that
	// were there before keep their names, as for [Tools.Add]. Errors: config (the name is taken, the entry is
	// disabled, a rule cannot be read or becomes ambiguous), errors of connecting; then the server is not added.
	Add(ctx context.Context, name string, entry servers.Config) error
	// Remove stops using a server or a toolset, removes its tools and closes its connection. A later call of one of its
	// tools fails. The other tools keep their names, and the names of the removed tools stay reserved while the
	// host is open; the server gets them again if it is added again. A host remembers the last 4096 removed
	// servers, with 20000 tools at most. Errors: not_found (also for tenon's own tools).
	Remove(ctx context.Context, name string) error
	// Restart replaces the connection of a server, and the process of a stdio server. Errors: not_found, invalid (it is
	// disabled), errors of connecting.
	Restart(ctx context.Context, name string) (servers.Status, error)
	// Switch disables a server for every process of the store, or enables it again. The choice is stored. Calls under
	// way get a moment to end. Errors: not_found, invalid (the configuration disables it), store (nothing changed).
	Switch(ctx context.Context, name string, on bool) (servers.Status, error)
	// Login begins a sign-in to a server and returns the address that a person opens in a browser on the machine of
	// the process. The sign-in continues in the background for up to ten minutes; then the server is connected again.
	// Errors: not_found, invalid (there is no sign-in), conflict (one is under way), timeout.
	Login(ctx context.Context, name string) (url string, err error)
	// Context returns the prompts and resources of the servers.
	Context() ServerContext
}

// ServerContext reads what servers offer beside tools. Names select servers; without names all are asked, in parallel.
// A server that cannot be reached is a [Problem].
type ServerContext interface {
	// Prompts lists the prompts of the servers.
	Prompts(ctx context.Context, names ...string) ([]ServerPrompt, []Problem, error)
	// FillPrompt lets a server fill in a prompt. Several messages become one text that names the speaker of each.
	// Hidden characters become visible. Errors: not_found, invalid (the arguments), errors of the connection.
	FillPrompt(ctx context.Context, server, name string, args map[string]string) (Prompted, error)
	// Resources lists the resources of the servers and their templates.
	Resources(ctx context.Context, names ...string) ([]ServerResource, []Problem, error)
	// Attach reads a resource as parts of a question. Hidden characters become visible; a text follows its URI. Errors:
	// not_found, too_large, invalid (no model accepts the content), errors of the connection.
	Attach(ctx context.Context, server, uri string) ([]tenon.Part, error)
	// Watch subscribes to the changes of a resource and yields them until ctx ends; see [servers.Server.Watch]. Errors,
	// after which nothing follows: not_found, invalid (the server offers no subscriptions; a replay), errors of the
	// connection.
	Watch(ctx context.Context, server, uri string) iter.Seq2[servers.Update, error]
	// Mentions finds the resources that a text names as @SERVER:URI, each once. See [MentionsIn] and
	// [ReadMentions].
	Mentions(ctx context.Context, text string) ([]Mention, error)
	// Known returns the handle of what the servers listed last.
	Known() KnownContext
}

// Tools lists and calls tools.
type Tools interface {
	// List returns the tools as models see them. Servers that cannot be reached, and tools that had to be left out, are
	// problems, except a tool of an MCP server whose own definition cannot be used: Get says why it is left out.
	// Errors: unreachable (a required server).
	List(ctx context.Context) ([]ToolInfo, []Problem, error)
	// Get returns all that is known of one tool, by its exposed name or as SERVER.TOOL: what changed it on the way from
	// the server to the model, or why it is left out. Errors: not_found.
	Get(ctx context.Context, name string) (ToolDetail, error)
	// Snapshot returns the tools with everything that shaped them. Names select servers; without names all are asked.
	Snapshot(ctx context.Context, names ...string) (*catalog.Snapshot, []Problem, error)
	// Known returns the tools that are known without asking a server. It starts and stores nothing.
	Known(ctx context.Context) (*catalog.Snapshot, error)
	// Start begins a tool call as a run; see [CallTool] and [FollowCall].
	Start(ctx context.Context, c ToolCall) (tenon.Run, error)
	// Add offers the tools of a toolset from the next run on, under the name of a server. [tenon.Tool.Name] is the name
	// that models see. If it is empty, they see Remote. Tools that were there before keep their names: in a clash, the
	// added tool gets the name of its server in front. Errors: config (the name is taken or invalid, a rule with
	// tool.name becomes ambiguous).
	Add(ctx context.Context, name string, t tenon.Toolset) error
	// Pins returns the pinned definitions.
	Pins() Pins
}

// Pins compares the definitions of servers and tools with the pinned ones.
type Pins interface {
	// List asks a server for its definitions and compares them with its pins: the server first, then its tools by name.
	// It pins nothing. Errors: not_found, errors of connecting.
	List(ctx context.Context, server string) ([]pins.State, error)
	// Accept pins the present definitions: of one tool or, with an empty remote, of the server and all its tools; pins
	// of tools that are gone are dropped. It returns the accepted states. Errors: not_found, conflict (seen is given
	// and differs from the present definitions), errors of connecting.
	Accept(ctx context.Context, server, remote, by string, seen []pins.State) ([]pins.State, error)
	// Forget drops the pins of a server, so that its next use pins it again. Errors: not_found.
	Forget(ctx context.Context, server string) error
}

// Tables keeps tables in files: the project's files, and uploaded files, which are next to the store.
type Tables interface {
	// List returns the tables of the project's folder (six levels deep, hidden files left out) and the uploaded ones,
	// 500 at most.
	List(ctx context.Context) ([]TableFile, error)
	// Page returns rows of a table. Errors: not_found, denied (a link leads out of the folder).
	Page(ctx context.Context, id string, o PageOptions) (TablePage, error)
	// Bytes returns the content of a table's file of at most 64 MiB. Errors: not_found, denied, too_large.
	Bytes(ctx context.Context, id string) ([]byte, error)
	// OpenTable opens a table's file of any size. Errors: not_found, denied, store.
	OpenTable(ctx context.Context, id string) (*TableReader, error)
	// Put stores an uploaded table under a name after reading all of it. Errors: invalid (the name, or it is no table),
	// conflict (the name is taken), too_large.
	Put(ctx context.Context, name string, data []byte) (TableFile, error)
	// PutFrom is Put for a table of any size. It is written to the disk while it is read. Errors: as for Put, and
	// store (the disk is full); too_large if it exceeds tables.max_bytes or the room for uploaded tables; an error of
	// data itself, as it is.
	PutFrom(ctx context.Context, name string, data io.Reader) (TableFile, error)
	// Remove deletes an uploaded table. Errors: not_found, denied (a table of the project).
	Remove(ctx context.Context, id string) error
}

// Workflows lists and starts the configured workflows.
type Workflows interface {
	// List returns the workflows of the configuration, by name.
	List(ctx context.Context) ([]WorkflowView, error)
	// Get returns the workflow that is the tool of this name. Errors: not_found.
	Get(ctx context.Context, name string) (Workflow, error)
	// Start begins a run of a workflow. The call is the permission to run it, but no permission for its steps. Errors:
	// not_found, invalid (parameters, tables, a missing tool), denied, errors of connecting, store.
	Start(ctx context.Context, c WorkflowCall) (tenon.Run, error)
	// Schedules returns the schedules, which start questions and workflows at certain times.
	Schedules() Schedules
}

// Schedules lists the configured schedules.
type Schedules interface {
	// List returns the schedules of the configuration, by name, with the last run of each in the store. It starts
	// nothing. Errors: store.
	List(ctx context.Context) ([]ScheduleInfo, error)
}

// Models lists and tests models.
type Models interface {
	// List returns the configured models in the order of the file, then the models found by a key in the environment
	// and, with probe, on local servers. It reads no secret and asks no model. Errors: config (the file of prices).
	List(ctx context.Context, probe bool) ([]ModelInfo, error)
	// Test sends one small request to a model and offers it a tool if it takes tools; an empty name means the model
	// of a run without one. A failure is part of the result. Errors: not_found, config.
	Test(ctx context.Context, name string) (ModelTest, error)
	// Price returns the price of a model's tokens, or false if no price is known. Errors: config, not_found.
	Price(ctx context.Context, name string) (model.Price, bool, error)
	// Offered asks a provider for its models. name is an entry of models or a provider. An entry's provider, address
	// and key are used; a provider has the first entry with it, or its usual variable. Errors: not_found, config,
	// auth_required and other errors of models.
	Offered(ctx context.Context, name string) ([]model.Listed, error)
	// Pull has a local server download a model, and reports the progress. name is an entry of models, provider/name,
	// or the name of a model of Ollama. Errors: config, and errors of models.
	Pull(ctx context.Context, name string, progress func(model.Pulled)) error
	// Prompt returns the first request that a question would send to its model. It asks nothing and needs no model; the
	// question may have no text. Errors: as [Host.Start].
	Prompt(ctx context.Context, q Question) (*tenon.Request, []Problem, error)
}

// Servers returns the handle for servers.
func (h *Host) Servers() Servers { return serversHandle{h} }

// Context implements [Servers].
func (h serversHandle) Context() ServerContext { return contextHandle(h) }

// Tools returns the handle for tools.
func (h *Host) Tools() Tools { return toolsHandle{h} }

// Pins implements [Tools].
func (h toolsHandle) Pins() Pins { return h.host.pins }

// Tables returns the handle for tables in files.
func (h *Host) Tables() Tables { return tablesHandle{h} }

// Workflows returns the handle for workflows.
func (h *Host) Workflows() Workflows { return workflowsHandle{h} }

// Schedules implements [Workflows].
func (h workflowsHandle) Schedules() Schedules { return schedulesHandle(h) }

// Models returns the handle for models.
func (h *Host) Models() Models { return modelsHandle{h} }

type (
	serversHandle   struct{ host *Host }
	contextHandle   struct{ host *Host }
	toolsHandle     struct{ host *Host }
	tablesHandle    struct{ host *Host }
	workflowsHandle struct{ host *Host }
	schedulesHandle struct{ host *Host }
	modelsHandle    struct{ host *Host }
)

var (
	_ Servers       = serversHandle{}
	_ ServerContext = contextHandle{}
	_ Tools         = toolsHandle{}
	_ Pins          = (*pins.Pins)(nil)
	_ Tables        = tablesHandle{}
	_ Workflows     = workflowsHandle{}
	_ Schedules     = schedulesHandle{}
	_ Models        = modelsHandle{}
)

// Package host wires everything: a configuration in, an agent that answers out.
// It is what Go programs and all surfaces of tenon import.
//
//	h, err := host.Open(ctx, host.Config{Config: cfg})
//	defer h.Close()
//	for e, err := range h.Run(ctx, host.Question{Text: "What is the weather in London?"}) {
//		…
//	}
//
// A Host owns the connections to the configured servers, the store and the
// engine. Opening one starts nothing: servers are started when their tools are
// first needed, runs only when they are asked for.
//
// The executor in this package is where a core's commands become deeds: a model
// command a request to a model, a decide command a look at the policy, a tool
// command a call of a server. It keeps no state about runs; everything that it
// needs stands in the command or in the store, so any process can go on with
// any run.
package host

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/local"
	"github.com/tenonhq/tenon/internal/outbound"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/servers/oauth"
	"github.com/tenonhq/tenon/store"
)

// Config says what to open. The zero value is a host without servers that keeps
// its store in the user's state folder.
type Config struct {
	// Config is the project's configuration; nil: none.
	Config *config.Config
	// Home is the folder of the store. Empty: .tenon beside the configuration
	// file, else the user's state folder.
	Home string
	// Store keeps runs in place of the file in Home. The host closes it.
	Store store.Store
	// Model, if set, is used in place of what agents name: an entry of models,
	// "provider/name", or "script:FILE".
	Model string
	// Models adds models of the caller's own, by name; where nothing names a model and there
	// is only this one, it answers. A panic in one, and an answer that
	// [tenon.Model] does not allow, fail the request and not the process.
	Models map[string]tenon.Model
	// Wrap, if set, stands around the toolset of each server, and around those of
	// Toolsets: it sees what is sent and what comes back, with remote names. Where it
	// returns nil the toolset stays as it is.
	Wrap func(server string, t tenon.Toolset) tenon.Toolset
	// Overlay, if set, says what a principal has of its own at a server, such as a token:
	// the calls of its runs use connections that are made with it and belong to nobody else.
	// It is asked for each call, so that a run that goes on in another process has it again;
	// nothing of it is stored. An error fails the call.
	Overlay func(ctx context.Context, who tenon.Principal, server string) (servers.Overlay, error)
	// Toolsets adds tools of the caller's own, by server name. A panic in one fails the
	// call and not the process.
	Toolsets map[string]tenon.Toolset
	// Functions adds functions of the program as tools; see [NewFunction].
	Functions []Function
	// Record and Replay are folders of cassettes: of what went to and came from models
	// and servers. A replay starts no server and reaches no network; see package record.
	// Resumed says that a process before this one has used the cassette; see
	// [record.Config].
	Record, Replay string
	Resumed        bool
	// LookupEnv finds environment variables; nil: the process's own.
	LookupEnv func(string) (string, bool)
	// Attended says that somebody follows the runs of this process and answers, with
	// Decide, what servers ask in the middle of a call. Else such questions are
	// declined at once. What a server of the modern era asks for waits in any case.
	Attended bool
	// Approve decides what runs that [Host.Run] follows wait for: tool calls, limits,
	// what servers want to know. It is called once for each, one after another. An
	// error leaves the run waiting and ends Run. Nil: such runs wait for Decide.
	Approve func(context.Context, Approval) (agent.Ruling, error)
	// Workflows adds workflows as tools, beside those that the configuration names.
	Workflows map[string]Workflow
	// Hidden are servers whose tools are not offered: the steps of workflows call them, and
	// agents that another one called.
	Hidden []string
	// Version is told to servers and providers.
	Version string
	// Live asks servers for their tools where those of the last listing would do.
	Live bool
	// Logger takes what happens beside results; nil: nothing is logged.
	Logger *slog.Logger
	// Slow is told, on a goroutine of its own, of a server that takes seconds to
	// connect; target is its command or URL, most how long that may last. Nil:
	// nobody is told.
	Slow func(server, target string, most time.Duration)
	// Reading says that the host only looks at what is stored: a store that cannot be
	// written is opened, too, and every write to it is an error.
	Reading bool
	// Brief says that the process ends soon after Close, as that of a command line
	// does. See [sqlite.Config].
	Brief bool
	// Observe is told of the events that runs of this process have stored: see
	// [local.Config].
	Observe func(tenon.Run, []tenon.Event)
	// Clock is the time; nil: the system's.
	Clock engine.Clock

	spare string // folder in place of the user's state folder; see place
}

// maxParallel bounds the tool calls of a run beside limits.parallel_tools, which
// the core holds.
const maxParallel = 64

// Host is an opened configuration. It is safe for concurrent use.
type Host struct {
	cfg     Config
	config  *config.Config
	log     *slog.Logger
	store   *sealing
	users   *atomic.Int32 // hosts that have the store open: see Reopen
	engine  *local.Engine
	laws    atomic.Pointer[law]
	redacts []string     // names of all redact rules
	vault   *oauth.Vault // where sign-ins and the key of the journals lie; nil: nowhere
	servers map[string]*servers.Server
	fleet   *fleet
	// identities tell what led to the servers of the configuration.
	identities map[string]string
	toolsets   map[string]tenon.Toolset // the servers and the caller's own
	models     *models
	cassette   cassette
	requests   *httpTools   // nil: no tool is of kind http
	asked      *promptTools // nil: no tool is of kind prompt
	flows      workflows
	redactor   *tenon.Redactor // knows the secrets that are in use

	logins    logins
	samplings rates // answers of models that servers got
	gates     gates
	results   policy.Results // of tools, for equal calls
	pins      pins
	prompts   prompts
	brought   *credentials // what callers have of their own at servers

	mu        sync.Mutex
	snapshots map[string]*catalog.Snapshot // by digest
	sources   map[string]*catalog.Source   // how each server's tools are taken; never changes
	shelves   map[string]shelved           // what each server offered last
	last      merge
	tolds     map[string]told     // the tools of requests, by what they depend on
	stored    map[string]struct{} // digests of those that are known to be in the store
}

// Open opens the store and prepares everything else. Errors: config, store.
func Open(ctx context.Context, cfg Config) (*Host, error) {
	if err := cfg.place(); err != nil {
		return nil, err
	}
	h, err := prepare(ctx, cfg, nil)
	if err != nil {
		return nil, err
	}
	s, err := h.openStore(ctx)
	if err != nil {
		h.abandon()
		return nil, err
	}
	h.store = newSealing(s, h.vault, h.redacts)
	h.users = new(atomic.Int32)
	if err := h.work(); err != nil {
		return nil, err
	}
	h.sweepFlows(ctx)
	return h, nil
}

// prepare makes a host that has no store yet. Before, if there is one, is the host that it
// follows.
func prepare(ctx context.Context, cfg Config, before *Host) (*Host, error) {
	h := &Host{cfg: cfg, config: cfg.Config, log: cfg.Logger,
		servers: map[string]*servers.Server{}, toolsets: map[string]tenon.Toolset{},
		snapshots: map[string]*catalog.Snapshot{}, stored: map[string]struct{}{}, identities: map[string]string{}, fleet: new(fleet)}
	if before != nil {
		h.fleet = before.fleet
	}
	h.redactor, h.brought = &h.fleet.redactor, &h.fleet.brought
	if h.config == nil {
		h.config = &config.Config{}
	}
	var err error
	if h.config, err = h.config.WithTables(ctx); err != nil {
		return nil, err
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.log = slog.New(h.redactor.Handler(h.log.Handler()))
	h.cfg.Attended = h.cfg.Attended || h.cfg.Approve != nil
	if h.cfg.LookupEnv == nil {
		h.cfg.LookupEnv = os.LookupEnv
	}
	for name, m := range cfg.Models {
		if m == nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "model '%s' is nil", tenon.Visible(name))
		}
	}
	if err := h.openCassette(); err != nil {
		return nil, err
	}
	h.fleet.join()
	if err := h.openServers(before); err != nil {
		h.abandon()
		return nil, err
	}
	h.models = openModels(h)
	return h, nil
}

// work makes the engine of a host that has a store.
func (h *Host) work() (err error) {
	h.users.Add(1)
	h.engine, err = local.New(local.Config{Store: h.store, NewCore: h.newCore, Do: h.do, Clock: h.cfg.Clock, Logger: h.log, Observe: h.observe,
		Parallel: maxParallel})
	if err != nil {
		h.abandon()
		return errors.Join(err, h.leaveStore())
	}
	return nil
}

// leaveStore closes the store, unless another host still has it.
func (h *Host) leaveStore() error {
	if h.users.Add(-1) > 0 {
		return nil
	}
	return h.store.Close()
}

// openServers makes the servers of the configuration, without starting any, or takes
// them from the host before, and the rules about their tools.
func (h *Host) openServers(before *Host) error {
	rules := &policy.Rules{Defaults: h.config.Policy.Defaults, Servers: map[string]policy.Block{}, Groups: h.config.Policy.Groups,
		Agents: map[string]policy.Block{}, Tools: map[policy.ID]policy.Block{}, ToolGroups: map[policy.ID][]string{}}
	kept := h.cfg.serversPath()
	h.vault = h.cfg.vault()
	for name, entry := range h.config.Servers {
		if !entry.IsEnabled() {
			continue
		}
		if err := checkServer(name, entry); err != nil {
			return err
		}
		s := h.makeServer(before, name, entry, kept)
		h.servers[name], h.toolsets[name] = s, h.wrapped(name, s)
		rules.Servers[name] = entry.Policy
	}
	for name, t := range h.config.Tools {
		t = t.WithDefaults(name)
		id := policy.ID{Server: t.Server, Remote: t.RemoteName}
		if rules.Tools[id] = t.Policy; t.Groups != nil {
			rules.ToolGroups[id] = t.Groups
		}
	}
	for name, a := range h.config.Agents {
		rules.Agents[name] = a.Policy
	}
	if h.hasHTTPTools() && rules.Defaults.Timeout == 0 { // what servers have by default
		rules.Servers[catalog.HTTPServer] = policy.Block{Timeout: servers.Config{}.WithDefaults().RequestTimeout}
	}
	if err := cmp.Or(rules.Compile(), rules.Add(h.config.Policy.Rules...)); err != nil {
		return err
	}
	h.enact(rules)
	h.redacts = slices.Concat(rules.Redacted(), h.config.Store.Redact)
	slices.Sort(h.redacts)
	h.redacts = slices.Compact(h.redacts)
	if len(h.redacts) > 0 && h.vault == nil {
		return tenon.Errorf(tenon.CodeConfig, "what redact names is encrypted in the store, and there is no place for the key; set HOME, or name a folder with --home")
	}
	if err := h.readSwitches(); err != nil {
		return err
	}
	h.openAgents()
	if err := h.openBuiltin(); err != nil {
		return err
	}
	if err := h.openWorkflows(); err != nil {
		return err
	}
	if len(h.cfg.Functions) > 0 {
		t, err := newFunctions(h.cfg.Functions)
		if err != nil {
			return err
		}
		h.toolsets[FunctionServer] = h.wrapped(FunctionServer, newOwnTools(FunctionServer, t, h.log))
	}
	for name, t := range h.cfg.Toolsets {
		if _, ok := h.toolsets[name]; ok || isReserved(name) {
			return tenon.Errorf(tenon.CodeConfig, "toolset '%s' has the name of a configured server, or of tenon's own tools; give it another one", name)
		}
		if err := checkToolset(name, t); err != nil {
			return err
		}
		h.toolsets[name] = h.wrapped(name, newOwnTools(name, t, h.log))
	}
	return h.openSources()
}

// onlyPublic holds policy.urls.allow_private at each connection to a server; nil where all
// addresses are allowed.
func (h *Host) onlyPublic() func(address string) error {
	if h.config.Policy.URLs.AllowsPrivate() {
		return nil
	}
	return func(address string) error {
		if err := outbound.CheckAddress(address); err != nil {
			return tenon.Errorf(tenon.CodeDenied, "%w, which is not connected to: policy.urls.allow_private is false", err)
		}
		return nil
	}
}

// Close ends what is under way within a short grace, then the servers and the
// store. Runs that had not ended can be resumed.
func (h *Host) Close() error {
	h.logins.close()
	err := h.engine.Close()
	h.abandon()
	if h.requests != nil {
		h.requests.client.Close()
	}
	h.closeFlows()
	return errors.Join(err, h.cassette.close(), h.leaveStore())
}

// Config returns the configuration that was opened.
func (h *Host) Config() *config.Config { return h.config }

// Servers returns the configured servers that are enabled, and those that were added, by
// name. The caller must not change the map.
func (h *Host) Servers() map[string]*servers.Server {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.servers
}

func (h *Host) now() time.Time {
	if h.cfg.Clock != nil {
		return h.cfg.Clock.Now()
	}
	return time.Now()
}

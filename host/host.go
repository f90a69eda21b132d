// Package host opens a configuration and runs its agents. Go programs and all surfaces of tenon import it.
//
//	h, err := host.Open(ctx, host.Config{Config: cfg})
//	defer h.Close()
//	answer, err := h.Ask(ctx, "What is the weather in London?")
//
// A Host owns the connections to the configured servers, the store and the engine. Open starts nothing: a server starts
// when its tools are first needed, a run when it is asked for.
//
// Everything beside asking is in handles, one for each noun: [Runs], [Sessions], [Approvals], [Servers], [Tools],
// [Tables], [Workflows] and [Models]. The client of package httpapi returns the same interfaces, so that code works
// with a host in its own process and with a tenon serve; see [Handles]. [Service] is for the program that owns the
// host.
//
// The executor carries out the commands of a core: a model command sends a request to a model, a decide command
// evaluates the rules, a tool command calls a server. It keeps no state of runs. A command and the store contain all
// that it needs, so that any process can continue any run.
package host

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
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
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/internal/outbound"
	"github.com/tenonhq/tenon/internal/protect"
	"github.com/tenonhq/tenon/pins"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/servers/oauth"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sealed"
	"github.com/tenonhq/tenon/transcript"
)

// Config says what to open. The zero value is a host without servers whose store is in the user's state folder.
type Config struct {
	// Config is the project's configuration. A nil Config has no entries.
	Config *config.Config
	// Home is the folder of the store. If empty, it is .tenon next to the configuration file, otherwise the user's
	// state folder.
	Home string
	// Store replaces the store file in Home. The host closes it.
	Store store.Store
	// Model, if set, replaces the model that agents name: an entry of models, "provider/name", or "script:FILE".
	Model string
	// Models adds models of the program, by name. The only such model is the default if nothing else names a model. A
	// panic in a model, or an answer that [tenon.Model] does not allow, fails the request and not the process.
	Models map[string]tenon.Model
	// Wrap, if set, wraps the toolset of each server and each of Toolsets. The wrapper sees calls with remote names,
	// and their results. If it returns nil, the toolset is used unchanged. A panic in it, or in the wrapper, fails the
	// listing or the call and not the process.
	Wrap func(server string, t tenon.Toolset) tenon.Toolset
	// Overlay, if set, returns a principal's own credentials at a server, such as a token. The calls of the principal's
	// runs use separate connections with them. Overlay is called for each call, also if the run continues in another
	// process. Nothing of it is stored. An error fails the call.
	Overlay func(ctx context.Context, who tenon.Principal, server string) (servers.Overlay, error)
	// Toolsets adds tools of the program, by server name, which no configured server has. [tenon.Tool.Name] is the name
	// that models see. If it is empty, they see Remote. A panic in a toolset fails the call and not the process.
	Toolsets map[string]tenon.Toolset
	// Functions adds functions of the program as tools; see [NewFunction].
	Functions []Function
	// Record and Replay are folders of cassettes, which contain the exchanges with models and servers. A replay starts
	// no server and uses no network; see package record.
	Record, Replay string
	// Resumed says that an earlier process used the cassette, because a waiting run is resumed. Record then continues
	// it, and Replay ignores the recordings before the first one that is used.
	Resumed bool
	// LookupEnv finds environment variables. If nil, the variables of the process are used. If it panics, the variable
	// is not set.
	LookupEnv func(string) (string, bool)
	// Interactive says that a person follows the runs of this process and answers questions that servers ask during a
	// call. If false, such questions are declined at once; questions of the modern era wait in any case.
	Interactive bool
	// Approve makes the decisions that the runs of [Host.Ask] and [Host.Stream] wait for: about tool calls, about
	// limits, and about questions of servers. It is called once for each decision, one at a time. An error leaves the
	// run waiting and ends the stream. If nil, runs wait for [Approvals.Decide].
	Approve func(context.Context, Approval) (agent.Ruling, error)
	// Workflows adds workflows as tools to the configured workflows.
	Workflows map[string]Workflow
	// Hidden names servers whose tools are not offered. Only steps of workflows, and agents called by others, can use
	// them.
	Hidden []string
	// Version is sent to servers and providers.
	Version string
	// RefreshTools requests tool lists from the servers instead of using the cached lists.
	RefreshTools bool
	// Patience limits how long the list of tools, and so the start of a run, waits for a server that was never listed
	// before and is not required. After this time the run begins without the server's tools, and gets them when the
	// server has listed them. If 0, it waits until the server has connected or failed.
	Patience time.Duration
	// Logger receives warnings and progress. If nil, the host does not log.
	Logger *slog.Logger
	// Slow is called in its own goroutine when a server takes more than a few seconds to connect, and again when it has
	// written a line to stderr. It may be nil.
	Slow func(servers.Starting)
	// Notify is called with what servers report by themselves: log messages, changed lists with the names of what was
	// added and removed, updated resources, lost connections. It is called in its own goroutine, one notification after
	// the other, and must not close the host. Of more than 256 that wait, further ones are dropped, with a warning in
	// the log. It may be nil.
	Notify func(servers.Notification)
	// ReadOnly says that the host only reads the store. A store that is not writable is opened as well, and every write
	// to it is an error.
	ReadOnly bool
	// Untrusted says that the user has not trusted the configuration yet, so it is only shown. The host starts no
	// server, asks no model, runs nothing, and has an empty temporary store instead of the configured one. A program
	// that opens a configuration with config.Config.Found decides this itself.
	Untrusted bool
	// Cluster opens the cluster of other processes that engine.temporal names; see [Cluster]. If nil, the host refuses
	// such a configuration.
	Cluster func(ctx context.Context, c ClusterConfig) (Cluster, error)
	// Worker says that [Service.Supervise] works on the runs that the cluster gives to this process.
	Worker bool
	// ShortLived says that the process ends soon after Close, like a command. See [sqlite.Config].
	ShortLived bool
	// Observe, if set, receives the events that runs of this process have stored; see [local.Config].
	Observe func(tenon.Run, []tenon.Event)
	// Fetch reads an https address of a question's file if the model does not read it itself. If nil, only public
	// addresses are read, at most 20 MiB within 10 seconds, without a proxy.
	Fetch func(ctx context.Context, address string) ([]byte, error)
	// Clock is the time. If nil, the system's clock is used.
	Clock engine.Clock

	fallbackDir string // folder that replaces the user's state folder; see place
}

// maxParallel bounds the parallel tool calls of a run, in addition to limits.parallel_tools, which the core enforces.
const maxParallel = 64

// Host is an opened configuration. It is safe for concurrent use.
type Host struct {
	cfg        Config
	protected  *protect.Paths // files that tool calls must not reach
	starts     sync.Map       // server → the folders of its relative paths
	config     *config.Config
	log        *slog.Logger
	store      *sealed.Store
	scratch    string        // folder of the store of an untrusted host
	socket     sync.Once     // computes socketAt
	socketAt   string        // see [Socket]
	parkedKeys parkedKeys    // of calls of the gateway
	users      *atomic.Int32 // hosts that have the store open: see Reopen
	arriving   *receiving    // uploads of tables; of the same hosts
	engine     *local.Engine
	cluster    Cluster // nil without a cluster
	rules      atomic.Pointer[executor.Ruleset]
	redacts    []string     // the names in all redact rules
	vault      *oauth.Vault // keeps sign-ins and the key of the journals; nil without a folder
	servers    map[string]*servers.Server
	serverPool *serverPool
	// identities are the identities of the configured servers.
	identities  map[string]string
	connectedBy map[string]string // by server: [config.Config.ConnectionIdentity]
	// moved are the servers of the previous host whose roots have changed.
	moved       map[string]*servers.Server
	kinds       map[string]kind             // tenon's own servers; never changes
	entryKeys   map[policy.ID]string        // tools without a server → path of their entry
	targets     map[string]string           // configured servers → digest of their target
	toolsets    map[string]executor.Toolset // keyed by server; tenon's own servers without tools are only in kinds
	models      *models
	cassette    cassette
	meanings    *meanings             // embeddings of tools
	requests    *httpTools            // nil without tools of kind http
	asked       map[string]promptTool // tools of kind prompt, by remote name
	flows       workflows
	transcripts *transcript.Transcripts
	redactor    *tenon.Redactor // masks the secrets in use
	heavy       turnstile       // bounds concurrent statistics and searches
	began       atomic.Bool     // whether this process has begun a run

	logins   logins
	executor *executor.Executor
	audits   audits
	pins     *pins.Pins
	withheld sync.Map // name of a server whose tools differ from their pins → text of the error
	prompts  prompts
	// conditions are the compiled conditions of grants.
	conditions  conditions
	replaced    atomic.Bool  // whether Reopen has replaced this host
	brought     *credentials // credentials that callers sent for servers
	given       *givenTools  // tools of questions
	arrivals    arrivals     // large tables of runs that have begun
	bound       bindings
	promptNames promptNames // of all servers
	refreshed   refreshed   // which runs were compared with the current tools

	mu        sync.Mutex
	snapshots map[string]*catalog.Snapshot       // by digest
	sources   map[string]*catalog.Source         // how the tools of each server are filtered and named; never changes
	entries   map[string]servers.Config          // entries of servers that were added to the open host
	adding    map[string]context.CancelCauseFunc // end the additions of servers, by name
	adds      sync.WaitGroup                     // additions under way
	closed    bool                               // nothing is added any more
	removed   map[string]*catalog.Listing        // removed servers and toolsets; never changes, is only replaced
	removals  []string                           // their names, the first removed one first
	joined    int                                // servers and toolsets that were added so far
	listings  map[string]shapedListing           // the last tools of each server
	last      merge
	toolViews map[string]toolView // the tools of model requests, kept for the next request
	stored    map[string]struct{} // digests of snapshots known to be in the store
}

// Open opens the store and prepares everything else. Errors: config, store.
func Open(ctx context.Context, cfg Config) (*Host, error) {
	cfg.guardMethods()
	if cfg.LookupEnv != nil {
		cfg.LookupEnv = guardedEnv(cfg.LookupEnv, cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)))
	}
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
	h.store = h.sealed(s)
	h.users, h.arriving = new(atomic.Int32), &receiving{}
	if err := h.work(ctx); err != nil {
		return nil, err
	}
	h.flows.Sweep(ctx)
	return h, nil
}

// prepare makes a host without a store. If before is not nil, the new host follows that host.
func prepare(ctx context.Context, cfg Config, before *Host) (*Host, error) {
	h := &Host{cfg: cfg, config: cfg.Config, log: cfg.Logger,
		servers: map[string]*servers.Server{}, toolsets: map[string]executor.Toolset{},
		snapshots: map[string]*catalog.Snapshot{}, stored: map[string]struct{}{}, identities: map[string]string{},
		connectedBy: map[string]string{}, moved: map[string]*servers.Server{},
		serverPool: new(serverPool), heavy: newTurnstile(), meanings: newMeanings()}
	if before != nil {
		h.serverPool = before.serverPool
	}
	h.redactor, h.brought = &h.serverPool.redactor, &h.serverPool.brought
	h.given = &h.serverPool.given
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
	for _, v := range h.config.VariableSecrets() {
		h.redactor.Add(v)
	}
	h.cfg.Interactive = h.cfg.Interactive || h.cfg.Approve != nil
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
	h.protected = h.protectedPaths()
	h.serverPool.join()
	if err := h.openServers(before); err != nil {
		h.abandon()
		return nil, err
	}
	h.models = openModels(h)
	if h.cassette.recorder != nil {
		h.registerReadable(ctx)
	}
	return h, nil
}

// work makes the engine of a host, after its store is open.
func (h *Host) work(ctx context.Context) (err error) {
	h.users.Add(1)
	h.openTranscripts()
	h.openPins()
	h.openRunner()
	h.openExecutor()
	c := local.Config{Store: h.store, NewCore: h.newCore, Do: h.do, Clock: h.cfg.Clock, Logger: h.log,
		Observe: h.observe, Parallel: maxParallel}
	if err = h.openCluster(ctx); err == nil {
		if h.cluster != nil {
			c.Dispatcher = dispatcher{h}
		}
		h.engine, err = local.New(c)
	}
	if err != nil {
		err = errors.Join(err, h.closeCluster())
		h.abandon()
		return errors.Join(err, h.leaveStore())
	}
	return nil
}

// leaveStore closes the store, unless another host uses it.
func (h *Host) leaveStore() error {
	if h.users.Add(-1) > 0 {
		return nil
	}
	return h.store.Close()
}

// openServers makes the servers of the configuration and the rules about their tools. It takes unchanged servers from
// the previous host. It starts no server.
func (h *Host) openServers(before *Host) error {
	kept := h.cfg.serversPath()
	h.vault = h.cfg.vault()
	h.indexEntries()
	h.indexTargets()
	h.openKinds()
	if err := h.config.CheckProgram(slices.Sorted(maps.Keys(h.cfg.Models))...); err != nil {
		return err
	}
	for name, entry := range h.config.Servers {
		if !entry.IsEnabled() {
			continue
		}
		if err := checkName(name); err != nil {
			return err
		}
		s := h.makeServer(before, name, entry, kept)
		h.servers[name], h.toolsets[name] = s, h.wrapped(name, s)
	}
	rules, err := h.config.Rules()
	if err != nil {
		return err
	}
	own := len(h.cfg.Toolsets) + len(h.cfg.Workflows)
	if len(h.cfg.Functions) > 0 {
		own++
	}
	if err := rules.CheckNames(h.config.NamesDiffer(own)); err != nil {
		return err
	}
	h.setRules(rules)
	h.redacts = slices.Concat(rules.Redacted(), h.config.Store.Redact)
	slices.Sort(h.redacts)
	h.redacts = slices.Compact(h.redacts)
	if len(h.redacts) > 0 && h.vault == nil {
		return tenon.Errorf(tenon.CodeConfig, "values that redact names are encrypted in the store, and there is no "+
			"place for the key; set HOME, or name a folder with --home")
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
		if _, ok := h.toolsets[name]; ok || catalog.IsReserved(name) {
			return tenon.Errorf(tenon.CodeConfig, "toolset '%s' has the name of a configured server, or of tenon's "+
				"own tools; give it another one", name)
		}
		if err := checkToolset(name, t); err != nil {
			return err
		}
		if err := h.checkFree(name); err != nil {
			return err
		}
		h.toolsets[name] = h.wrapped(name, newOwnTools(name, t, h.log))
	}
	return h.openSources()
}

// onlyPublic returns the function that enforces policy.urls.allow_private for each connection to a server, or nil if
// all addresses are allowed.
func (h *Host) onlyPublic() func(address string) error {
	if h.config.Policy.URLs.AllowsPrivate() {
		return nil
	}
	return func(address string) error {
		if err := outbound.CheckAddress(address); err != nil {
			return tenon.Errorf(tenon.CodeDenied, "%w, which is not connected to: policy.urls.allow_private is false",
				err)
		}
		return nil
	}
}

// Close ends the work under way within a short grace period, then the servers and the store. Runs that have not ended
// can be resumed. A server that is being added is not added.
func (h *Host) Close() error {
	h.refuseMore()
	h.logins.close()
	h.bound.close()
	h.audits.drain()
	err := h.engine.Close()
	h.models.close()
	h.audits.close()
	h.abandon()
	if h.requests != nil {
		h.requests.client.Close()
	}
	h.flows.Close()
	err = errors.Join(err, h.closeCluster())
	defer h.dropScratch()
	h.catchUp()
	return errors.Join(err, h.cassette.close(), h.leaveStore())
}

// connections returns the connections to the servers. The map is never changed, only replaced.
func (h *Host) connections() map[string]*servers.Server {
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

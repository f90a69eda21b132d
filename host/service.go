package host

import (
	"context"
	"log/slog"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/store"
)

// Service contains the operations for a program that serves a store with its host. It is not available over HTTP.
type Service interface {
	// Info describes the open host.
	Info() Info
	// Connections returns the connections to the enabled servers by name, added ones included; see [Info.Replays]. The
	// caller must not change the map.
	Connections() map[string]*servers.Server
	// Connect connects the servers with lifecycle eager and logs how many are connected. Unreachable servers are
	// retried in the background. It returns after one attempt for each server, or when ctx ends.
	Connect(ctx context.Context)
	// Supervise resumes the runs of the store that no process works on, and starts the runs of schedules, until ctx
	// ends or the host is closed. One process of a store does this; see [Storage.Claim].
	Supervise(ctx context.Context)
	// Drain starts nothing new and returns when the model calls and tool calls under way have ended and are stored,
	// or when ctx ends. The runs can be resumed. Close the host afterwards. A host that was replaced, see
	// [Host.Reopen], still stores new runs until it is closed, and the other host works on them.
	Drain(ctx context.Context)
	// Callers manages the credentials and limits of the principals whose requests the program serves.
	Callers() Callers
	// Storage maintains the store.
	Storage() Storage
}

// Info describes an open host.
type Info struct {
	Config  *config.Config // the configuration that was opened; read only
	Logger  *slog.Logger   // masks secrets
	Version string         // of the program, from [Config.Version]
	Socket  string         // path of the socket of the process that serves the store; see [Socket]
	Redacts bool           // rules or the store redact fields
	Masks   int            // see [tenon.Redactor.Size]
	Replays bool           // a cassette answers for the servers, which must not be started
}

// Callers manages the credentials and limits of principals.
type Callers interface {
	// Accept checks the credentials that a request brings for servers. Errors: not_found (no such server), denied (the
	// server accepts none of the kind), invalid.
	Accept(brought map[string]servers.Brought) (Credentials, error)
	// SetCredentials gives a run its credentials again, for the servers that it began with credentials for. Errors:
	// auth_required (names the missing ones). A run that began without credentials needs none.
	SetCredentials(ctx context.Context, run string, c Credentials) error
	// Context returns a context that makes requests to a server use the principal's own credentials; brought has
	// precedence over the configuration. Errors: auth_required.
	Context(ctx context.Context, who tenon.Principal, brought Credentials, server string) (context.Context, error)
	// RegisterSecret registers a secret for redaction, such as a token of a surface.
	RegisterSecret(s tenon.Secret)
	// Mask masks all registered secrets in a text, JSON or not. Everything that a surface shows passes through it.
	Mask(b []byte) []byte
	// Working counts the runs on which this process works: the principal's runs, and all runs.
	Working(who tenon.Principal) (own, all int)
	// Owner returns the principal of a run that this process works on, without reading the store.
	Owner(run string) (who tenon.Principal, ok bool)
}

// Storage maintains a store.
type Storage interface {
	// Retain deletes what exceeds store.retention, now and every hour until ctx ends. Without a retention it returns at
	// once. One process of a store does this; see Claim.
	Retain(ctx context.Context)
	// Stale returns the sessions that did not change for a time, newest first, which is an order in which they can be
	// deleted. Sessions with a run that has not ended, or that a younger session continues, are left out.
	Stale(ctx context.Context, age time.Duration) ([]tenon.Session, error)
	// Prune deletes stale sessions in that order and returns the deleted ones. A session used since is left as it is.
	// Progress may be nil; it receives the number of deleted sessions so far.
	Prune(ctx context.Context, list []tenon.Session, progress func(deleted int)) ([]tenon.Session, error)
	// Foreign returns the rows that somebody else, or an older tenon, wrote. They are shown and have no effect.
	Foreign(ctx context.Context) (Foreign, error)
	// Adopt makes foreign rows the user's own. Seen is the digest of the rows that the user reviewed. Errors:
	// conflict (the rows differ now), too_large, store.
	Adopt(ctx context.Context, seen string) error
	// State observes the store.
	State() StoreState
	// Claim takes a lease of the store for work that one process at a time may do, such as serving the store. If
	// another process has the lease, ok is false. The operating system releases it when the process dies.
	Claim(what string) (release func(), ok bool, err error)
}

// StoreState observes a store, and keeps what is derived from its runs up to date.
type StoreState interface {
	// Keep brings statistics and the search up to date when runs end, until ctx ends. It also catches up with the runs
	// of a store from an earlier release, batch after batch. One process of a store does this; see Claim.
	Keep(ctx context.Context)
	// Changed returns a channel that is closed at the next change of the store, by any process. Request it before
	// reading the store.
	Changed(ctx context.Context) <-chan struct{}
	// Probe reports whether a new run can be stored now. See [store.Health].
	Probe(ctx context.Context) error
	// Claimant returns the process that has a claim of [Storage.Claim], or 0 if that is unknown.
	Claimant(what string) (pid int)
	// Usage returns the free space and the failed writes of the store.
	Usage() store.Usage
	// Parked records which runs answer calls that wait for a person.
	Parked() ParkedCalls
	// Peers returns the processes that serve the store, or nil if only this process can: a store in a file. It stays
	// valid for a host that replaces this one; see [Host.Reopen].
	Peers() Peers
}

// Service returns the handle for the program that owns this host.
func (h *Host) Service() Service { return serviceHandle{h} }

func (h serviceHandle) Info() Info {
	return Info{Config: h.host.config, Logger: h.host.log, Version: h.host.cfg.Version, Socket: h.host.socketPath(),
		Redacts: len(h.host.redacts) > 0, Masks: h.host.redactor.Size(), Replays: h.host.cassette.playsServers()}
}

func (h serviceHandle) Connections() map[string]*servers.Server { return h.host.connections() }

func (h serviceHandle) Callers() Callers { return callersHandle(h) }

func (h serviceHandle) Storage() Storage { return storageHandle(h) }

func (h storageHandle) State() StoreState { return stateHandle(h) }

type (
	serviceHandle struct{ host *Host }
	callersHandle struct{ host *Host }
	storageHandle struct{ host *Host }
	stateHandle   struct{ host *Host }
	parkedHandle  struct{ host *Host }
)

var (
	_ Service = serviceHandle{}
	_ Callers = callersHandle{}
	_ Storage = storageHandle{}
)

package servers

import (
	"time"

	"github.com/tenonhq/tenon"
)

// State is what a server is doing.
type State string

// The states of a server.
const (
	StateDisabled State = "disabled" // by the configuration
	StateCold     State = "cold"     // not started yet
	StateStarting State = "starting" // connecting
	StateReady    State = "ready"
	StateDegraded State = "degraded" // answers calls, but its notices of changes do not come
	StateBackoff  State = "backoff"  // it was lost; it is tried again after a pause
	StateAuth     State = "auth_required"
	// the last attempt to connect, or the connection, failed; the next use tries again, and so does the background
	StateFailed State = "failed"
	StateClosed State = "closed"
)

// Status is what is known about a server.
type Status struct {
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
	// RegistryName is the server's name in a registry, as the configuration says.
	RegistryName string `json:"registry_name,omitempty"`
	Transport    string `json:"transport"`
	Found        string `json:"found,omitempty"` // what transport auto found
	// Deprecated says that the protocol advises against the transport.
	Deprecated bool      `json:"deprecated,omitempty"`
	Target     string    `json:"target"` // the command line or the URL
	State      State     `json:"state"`
	Since      time.Time `json:"since,omitzero"`
	// Progress says what a server does that takes long to start: what it fetches, or its last line on stderr.
	Progress string `json:"progress,omitempty"`
	Protocol string `json:"protocol,omitempty"` // the revision that was agreed on
	Server   string `json:"server,omitempty"`   // name and version, as the server gives them
	// Capabilities are the names of the capabilities that the server declared.
	Capabilities []string `json:"capabilities,omitempty"`
	// NotOffered are the capabilities of clients that the configuration does not offer to the server.
	NotOffered []Unoffered `json:"not_offered,omitempty"`
	Tools      int         `json:"tools"`             // -1: not asked yet
	Starts     int         `json:"starts"`            // how often it was connected
	Restarts   int         `json:"restarts"`          // how many of them came after a connection was lost
	Retry      time.Time   `json:"retry_at,omitzero"` // when it is tried again
	Cached     time.Time   `json:"cached,omitzero"`   // when the tools were listed that are known without it
	// the last one, if the state is degraded, backoff, failed or auth_required
	Error *tenon.Error `json:"error,omitempty"`
	// of the last connect; where that failed, the last is the one that did
	Phases []Phase `json:"phases,omitempty"`
}

// Phase is one part of connecting, and how long it took.
type Phase struct {
	Name   string `json:"name"` // start, discover, initialize, list
	Millis int64  `json:"duration_ms"`
}

// Disabled is the status of an entry that the configuration switches off, or that other replicas use.
func Disabled(name string, cfg Config) Status {
	st := New(name, cfg, Options{}).Status()
	st.State = StateDisabled
	if cfg.Elsewhere {
		st.Error = &tenon.Error{Code: tenon.CodeConfig, Message: cfg.WhereElse(name)}
	}
	return st
}

// WhereElse says which replicas use an entry that is not in use in this process.
func (c Config) WhereElse(name string) string {
	return "server '" + name + "' is used by replicas with the label '" + tenon.Visible(c.Replica) +
		"' (servers." + name + ".replica), and serve.replica of this process does not have it"
}

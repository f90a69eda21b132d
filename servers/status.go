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
	StateDegraded State = "degraded" // answers calls, but does not send notifications of changes
	StateBackoff  State = "backoff"  // lost; it is connected again after a pause
	StateAuth     State = "auth_required"
	// the last attempt to connect, or the connection, failed; the next use tries again, and so does the background
	StateFailed State = "failed"
	StateClosed State = "closed"
)

// Status is what is known about a server.
type Status struct {
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
	// RegistryName is the server's name in a registry, from the configuration.
	RegistryName string `json:"registry_name,omitempty"`
	Transport    string `json:"transport"`
	Found        string `json:"found,omitempty"` // the transport that auto detected
	// Deprecated says that the protocol advises against the transport.
	Deprecated bool      `json:"deprecated,omitempty"`
	Target     string    `json:"target"` // the command line or the URL
	State      State     `json:"state"`
	Since      time.Time `json:"since,omitzero"`
	// Progress describes a start that takes long: the package that is fetched, or the last line on stderr.
	Progress string `json:"progress,omitempty"`
	Protocol string `json:"protocol,omitempty"` // the revision in use
	Server   string `json:"server,omitempty"`   // name and version, from the server
	// Capabilities are the names of the capabilities that the server declared.
	Capabilities []string `json:"capabilities,omitempty"`
	// NotOffered are the capabilities of clients that the configuration does not offer to the server.
	NotOffered []Unoffered `json:"not_offered,omitempty"`
	Tools      int         `json:"tools"`             // -1: not asked yet
	Starts     int         `json:"starts"`            // how often it was connected
	Restarts   int         `json:"restarts"`          // how many of the starts followed a lost connection
	Retry      time.Time   `json:"retry_at,omitzero"` // when the next attempt begins
	Cached     time.Time   `json:"cached,omitzero"`   // when the tools were listed, if they come from the last listing
	// the last error, if the state is degraded, backoff, failed or auth_required
	Error *tenon.Error `json:"error,omitempty"`
	// of the last connect; if it failed, the last phase is the one that failed
	Phases []Phase `json:"phases,omitempty"`
}

// Phase is one step of connecting, with its duration.
type Phase struct {
	Name   string `json:"name"` // start, discover, initialize, list
	Millis int64  `json:"duration_ms"`
}

// Disabled returns the status of an entry that the configuration disables, or that only other replicas use.
func Disabled(name string, cfg Config) Status {
	st := New(name, cfg, Options{}).Status()
	st.State = StateDisabled
	if cfg.Elsewhere {
		st.Error = &tenon.Error{Code: tenon.CodeConfig, Message: cfg.WhereElse(name)}
	}
	return st
}

// WhereElse returns a text that says which replicas use an entry that this process does not use.
func (c Config) WhereElse(name string) string {
	return "server '" + name + "' is used by replicas with the label '" + tenon.Visible(c.Replica) +
		"' (servers." + name + ".replica), and serve.replica of this process does not have it"
}

// Status returns the current status of the server.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// State returns the state of the current status with its error.
func (s *Server) State() (State, *tenon.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.State, s.status.Error
}

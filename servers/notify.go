package servers

import (
	"encoding/json"
	"slices"
)

// maxNotified bounds the parameters of a [Notification], in bytes.
const maxNotified = 64 << 10

// Notification is something that a server reported by itself, or that happened to its connection. One of Method, List
// and Err is set.
type Notification struct {
	Server string `json:"server"`
	// Method and Params are a notification of the protocol, such as notifications/message,
	// notifications/resources/updated or notifications/tools/list_changed. Reports of progress, and log messages below
	// log_level, are left out. Params are nil if they have more than 64 KiB.
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	// List is a list that was read again and has changed: tools, prompts or resources. Added, Removed and Changed are
	// the names (of resources, the URIs) on the server.
	List    string   `json:"list,omitempty"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Changed []string `json:"changed,omitempty"`
	// Err says why the server cannot be reached, or why its connection was lost.
	Err error `json:"-"`
}

// notify passes a notification on, without secrets.
func (s *Server) notify(n Notification) {
	if s.opts.Notify == nil {
		return
	}
	n.Server = s.name
	if len(n.Params) > maxNotified {
		n.Params = nil
	}
	if n.Params = slices.Clone(n.Params); n.Params != nil && s.opts.Mask != nil {
		if masked := json.RawMessage(s.opts.Mask(string(n.Params))); json.Valid(masked) {
			n.Params = masked
		} else {
			n.Params = nil
		}
	}
	s.opts.Notify(n)
}

package mcp

import (
	"github.com/tenonhq/tenon/internal/rawjson"
)

// ClientID is how a client names itself: clientInfo, and the revision that it speaks. A client chooses the names, so
// they prove nothing, and they have any length.
type ClientID struct {
	Name, Version string
	Protocol      string // such as 2025-11-25 or 2026-07-28
}

// IsModern reports whether the client speaks the modern era, which has no sessions.
func (id ClientID) IsModern() bool { return id.Protocol != "" && !IsLegacy(id.Protocol) }

// clientID reads a clientInfo object.
func clientID(info []byte, version string) ClientID {
	return ClientID{Name: rawjson.String(rawjson.Field(info, "name")),
		Version: rawjson.String(rawjson.Field(info, "version")), Protocol: version}
}

// named returns how the client of a legacy connection named itself when it initialized.
func (c *serverConn) named() ClientID {
	s := c.session()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// name records how the client of a legacy connection names itself. A connection joins once, also if its client
// initializes again.
func (c *serverConn) name(id ClientID) {
	c.mu.Lock()
	first := c.id.Protocol == ""
	if first {
		c.id = id
	}
	c.mu.Unlock()
	if first && c.s.cfg.Joined != nil {
		c.s.cfg.Joined(id)
	}
}

// seen reports the client of a request that is not its handshake.
func (c *serverConn) seen(id ClientID) {
	if c.s.cfg.Seen != nil && id.Protocol != "" {
		c.s.cfg.Seen(id)
	}
}

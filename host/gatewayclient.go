package host

import (
	"time"

	"github.com/tenonhq/tenon"
)

// GatewayClient is an MCP client that has used the gateway of a process. A client of the older era has sessions. A
// client of 2026-07-28 has none, so all its requests with the same principal, endpoint and name count as one client.
type GatewayClient struct {
	// Name and Version are the client's own words (clientInfo), which prove nothing. They may be empty.
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Era is legacy or modern; Protocol is the revision, such as 2025-11-25 or 2026-07-28.
	Era       string          `json:"era"`
	Protocol  string          `json:"protocol"`
	Principal tenon.Principal `json:"principal"`
	Endpoint  string          `json:"endpoint,omitempty"` // an entry of gateway.endpoints; empty: all tools
	// Sessions counts the open sessions and connections of a client of the older era.
	Sessions int       `json:"sessions"`
	Since    time.Time `json:"since"` // the first request
	Seen     time.Time `json:"seen"`  // the latest request
	LastCall time.Time `json:"last_call,omitzero"`
	// Calls counts the calls of tools. Allowed, Asked and Denied count what the rules decided about them. A call that
	// was refused for another reason, such as an unknown name, counts in Calls only.
	Calls   uint64 `json:"calls"`
	Allowed uint64 `json:"allowed"`
	Asked   uint64 `json:"asked"`
	Denied  uint64 `json:"denied"`
}

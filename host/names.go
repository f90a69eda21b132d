package host

import (
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/servers"
)

// The types of other packages that programs need most often have names here as well, so that a program imports few
// packages.
type (
	// Ruling is a decision about what a run waits for: see [Config.Approve] and [Approvals.Decide].
	Ruling = agent.Ruling
	// ServerConfig is the entry of an MCP server, as under servers in tenon.yaml: see [Servers.Add]. Only the files are
	// expanded: here ${NAME} remains as it is written.
	ServerConfig = servers.Config
	// Transform is a change of a server's tools, one of the steps of [ServerConfig].Transform.
	Transform = catalog.Transform
)

package config

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config/tree"
)

// ApproveClient is the value of gateway.endpoints.NAME.approve that lets clients decide.
const ApproveClient = "client"

// ModeSearch is the value of gateway.endpoints.NAME.mode that has clients find tools.
const ModeSearch = "search"

// HiddenKeep is the value of gateway.hidden_characters that leaves results as servers send them.
const HiddenKeep = "keep"

// defaultPark is the default of gateway.park. Many clients give up a call after a minute.
const defaultPark = 50 * time.Second

// Gateway configures the MCP server that `tenon serve` and `tenon gateway` are for other clients.
type Gateway struct {
	// How long a call that waits for a person holds its client. Then the client is asked to call again with the same
	// arguments, and that call gets the result.
	Park time.Duration `yaml:"park" default:"50s"`
	// Hidden characters in results of tools, such as direction marks and control characters. escape: clients get codes
	// such as `\u{202e}`, as the journal does; keep: they get the characters, so that a client can write a file back
	// unchanged. They can hide instructions from a person that the client's model reads.
	HiddenCharacters string `yaml:"hidden_characters" enum:"escape,keep" default:"escape"`
	// Virtual servers at `/mcp/NAME`, for clients that are to see some of the tools. `/mcp` has all of them.
	Endpoints map[string]Endpoint `yaml:"endpoints"`
}

// Endpoint is a virtual server: a part of the tools of the configuration. Without servers, groups and tools it has all.
type Endpoint struct {
	// Text for the client's model about the purpose of the endpoint.
	Description string `yaml:"description"`
	// Servers whose tools it has: entries of `servers`.
	Servers []string `yaml:"servers" default:"[]"`
	// Groups whose tools it has.
	Groups []string `yaml:"groups" default:"[]"`
	// Globs of further tools that it has, by exposed name or `SERVER/REMOTE_NAME`: also entries of `tools` that are
	// workflows or agents, each of which is a tool that starts a run.
	Tools []string `yaml:"tools" default:"[]"`
	// How a call that needs approval is decided. person: with tenon approvals or in the workbench. client: also by an
	// answer to a dialog of the client (elicitation), which some clients give unattended.
	Approve string `yaml:"approve" enum:"person,client" default:"person"`
	// Globs of tools that it does not have.
	Exclude []string `yaml:"exclude" default:"[]"`
	// The tools that clients see. tools: all, with their definitions; search: `find_tools` and
	// `call_tool`, with which they find and call the others.
	Mode string `yaml:"mode" enum:"tools,search" default:"tools"`
	// Globs of tools that clients also see in mode search, by exposed name or `SERVER/REMOTE_NAME`. They also see
	// `tool_search.always` and tools with `defer: false`.
	Always []string `yaml:"always" default:"[]"`
}

// Searches reports whether clients have to find the tools.
func (e *Endpoint) Searches() bool { return e.Mode == ModeSearch }

// WithDefaults returns a copy with defaults for absent values.
func (g Gateway) WithDefaults() Gateway {
	g.Park = cmp.Or(g.Park, defaultPark)
	return g
}

// Has reports whether the endpoint offers a tool.
func (e *Endpoint) Has(t *tenon.Tool) bool {
	if catalog.Excludes(e.Exclude, t) {
		return false
	}
	return len(e.Servers)+len(e.Groups)+len(e.Tools) == 0 || slices.Contains(e.Servers, t.Server) ||
		len(e.Groups) > 0 && catalog.InGroups(t, e.Groups) || catalog.Includes(e.Tools, t)
}

// ServedEndpoint is an endpoint of the gateway as surfaces show it.
type ServedEndpoint struct {
	Name        string   `json:"name"` // empty for the endpoint with all tools
	Path        string   `json:"path"`
	Description string   `json:"description,omitempty"`
	Servers     []string `json:"servers,omitempty"`
	Groups      []string `json:"groups,omitempty"`
	Tools       []string `json:"tools,omitempty"`
	Exclude     []string `json:"exclude,omitempty"`
	Mode        string   `json:"mode,omitempty"`   // search, or empty if clients see all tools
	Always      []string `json:"always,omitempty"` // tools that clients see even in mode search
}

// Served returns the endpoints: /mcp with all tools, and the entries of endpoints by name.
func (g Gateway) Served() []ServedEndpoint {
	list := []ServedEndpoint{{Path: "/mcp"}}
	for _, name := range slices.Sorted(maps.Keys(g.Endpoints)) {
		e := g.Endpoints[name]
		one := ServedEndpoint{Name: name, Path: "/mcp/" + name, Description: e.Description, Servers: e.Servers,
			Groups: e.Groups, Tools: e.Tools, Exclude: e.Exclude}
		if e.Searches() {
			one.Mode, one.Always = e.Mode, e.Always
		}
		list = append(list, one)
	}
	return list
}

// reservedEndpoints are names that ResearchAI's API uses in paths below /mcp.
var reservedEndpoints = []string{"servers", "tools", "resources", "prompts"}

// gateway checks the section gateway.
func (k *checker) gateway() {
	if k.has("gateway.park") && k.c.Gateway.Park <= 0 {
		k.bad("gateway.park", "such as 50s", "a call must wait for some time")
	}
	for _, name := range k.order["gateway.endpoints"] {
		p := "gateway.endpoints." + name
		switch {
		case !tree.IsName(name):
			k.bad(p, "", "a name has 1 to 64 of the characters A-Z a-z 0-9 _ . -")
		case slices.Contains(reservedEndpoints, name):
			k.bad(p, "choose another name", "/mcp/%s belongs to the researchai API", name)
		}
		if e := k.c.Gateway.Endpoints[name]; len(e.Always) > 0 && !e.Searches() {
			k.bad(p+".always", "mode: search", "without it, clients see all tools")
		}
		for i, s := range k.c.Gateway.Endpoints[name].Servers {
			if !slices.Contains(k.order["servers"], s) {
				k.bad(tree.Index(p+".servers", i), k.known("servers"), "no server '%s'", tenon.Visible(s))
			}
		}
	}
}

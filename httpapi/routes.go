package httpapi

import (
	"net/http"
	"slices"
)

// route is a line of the table of routes.
type route struct {
	method, pattern string
	serve           func(*call) error
	api             string // Native, ResearchAI, OpenAI or MCP; empty: in every API
	traits          trait
}

// trait is a set of properties in which a route can differ from the majority of routes.
type trait uint8

const (
	// public routes need no authentication: their answers reveal nothing about the project.
	public trait = 1 << iota
	// ownerOnly routes answer only the owner. All other callers get an error of code denied.
	ownerOnly
	// streaming routes answer until the client disconnects or a run ends. Concurrent streams have their own limit.
	streaming
	// noBody routes do not read the body of a request.
	noBody
	// rawBody routes read the body themselves while it arrives. It is not JSON, and may be larger than other bodies.
	rawBody
)

func (r *route) is(t trait) bool { return r.traits&t != 0 }

// routes returns the table of all routes. Tests check each of them, and compare the table with openapi.json.
func routes() []route {
	all := []route{
		get("/healthz", (*call).health, public),
		get("/readyz", (*call).ready, public),
		get("/metrics", (*call).metrics, ownerOnly),
	}
	for _, r := range slices.Concat(runRoutes(), setupRoutes()) {
		r.pattern, r.api = prefix+r.pattern, Native
		all = append(all, r)
	}
	for _, r := range researchRoutes() {
		r.api = ResearchAI
		all = append(all, r)
		r.pattern = "/api" + r.pattern
		all = append(all, r)
	}
	for _, r := range openAIRoutes() {
		r.api = OpenAI
		all = append(all, r)
	}
	for _, r := range mcpRoutes() {
		r.api = MCP
		all = append(all, r)
	}
	return all
}

// runRoutes are the routes of runs, workflows, tables, sessions and approvals.
func runRoutes() []route {
	return []route{
		get("/me", (*call).me),
		get("/openapi.json", (*call).openapi),
		get("/changes", (*call).changes, streaming),

		post("/runs", (*call).start),
		get("/runs", (*call).runs),
		get("/runs/{id}", (*call).show),
		get("/runs/{id}/events", (*call).events, streaming),
		get("/runs/{id}/messages", (*call).runMessages),
		get("/runs/{id}/artifacts/{artifact}", (*call).artifact),
		post("/runs/{id}/resume", (*call).resume),
		post("/runs/{id}/cancel", (*call).cancel),
		post("/runs/{id}/steer", (*call).steer),
		post("/runs/{id}/decide", (*call).decide),
		post("/runs/{id}/replay", (*call).replay),
		get("/runs/{id}/workflow", (*call).runFlow),
		get("/runs/{id}/tables", (*call).runTables),
		get("/runs/{id}/tables/{table}", (*call).runTable),

		get("/workflows", (*call).workflows),
		get("/workflows/{name}", (*call).workflow),
		post("/workflows/draft", (*call).draftWorkflow, ownerOnly),
		post("/workflows/{name}/run", (*call).runWorkflow),
		get("/schedules", (*call).schedules, ownerOnly),
		get("/tables", (*call).tables, ownerOnly),
		post("/tables", (*call).bringTable, ownerOnly),
		put("/tables", (*call).uploadTable, ownerOnly, rawBody),
		del("/tables", (*call).removeTable, ownerOnly),
		get("/tables/rows", (*call).tableRows, ownerOnly),

		get("/sessions", (*call).sessions),
		get("/sessions/{id}", (*call).session),
		patch("/sessions/{id}", (*call).rename),
		del("/sessions/{id}", (*call).deleteSession),
		get("/sessions/{id}/messages", (*call).messages),
		get("/sessions/{id}/calls", (*call).calls),
		get("/sessions/{id}/export", (*call).export),
		post("/sessions/{id}/fork", (*call).fork),
		post("/sessions/{id}/compact", (*call).compact),
		get("/search", (*call).search),

		get("/approvals", (*call).approvals),
		post("/approvals/{id}/decide", (*call).decideApproval),
		get("/grants", (*call).grants),
		post("/grants/revoke", (*call).revoke),
	}
}

// setupRoutes are the routes of servers, tools, agents, models and the configuration.
func setupRoutes() []route {
	return []route{
		get("/servers", (*call).servers),
		get("/servers/{name}", (*call).server),
		post("/servers/{name}/enable", (*call).enable, ownerOnly),
		post("/servers/{name}/disable", (*call).disable, ownerOnly),
		post("/servers/{name}/restart", (*call).restart, ownerOnly),
		get("/servers/{name}/logs", (*call).logs, ownerOnly),
		get("/servers/{name}/frames", (*call).frames, ownerOnly),
		post("/servers/{name}/login", (*call).login, ownerOnly),
		post("/servers/{name}/logout", (*call).logout),

		get("/tools", (*call).tools),
		get("/tools/{name}", (*call).tool),
		post("/tools/{name}/call", (*call).callTool),
		get("/lint", (*call).lint),
		get("/prompts", (*call).prompts),
		post("/prompts/get", (*call).prompt),
		post("/prompts/complete", (*call).completeArgument),
		get("/resources", (*call).resources),
		post("/resources/read", (*call).read),
		get("/resources/watch", (*call).watchResource, streaming),

		get("/gateway/clients", (*call).gatewayClients, ownerOnly),
		get("/agents", (*call).agents),
		get("/models", (*call).models),
		post("/models/test", (*call).testModel, ownerOnly),
		get("/models/providers", (*call).providers, ownerOnly),
		put("/models/providers/{provider}/key", (*call).putKey, ownerOnly),
		del("/models/providers/{provider}/key", (*call).deleteKey, ownerOnly),
		get("/stats/{by}", (*call).stats),
		post("/doctor", (*call).doctor, ownerOnly),
		get("/config", (*call).config, ownerOnly),
		get("/config/entries", (*call).configEntries, ownerOnly),
		put("/config/entries/{section}/{name}", (*call).putConfigEntry, ownerOnly),
		del("/config/entries/{section}/{name}", (*call).deleteConfigEntry, ownerOnly),
		get("/config/tools/{name}", (*call).configTool, ownerOnly),
		put("/config/tools/{name}", (*call).putConfigTool, ownerOnly),
		get("/config/workflows/{name}", (*call).configWorkflow, ownerOnly),
		put("/config/workflows/{name}", (*call).putConfigWorkflow, ownerOnly),
		del("/config/workflows/{name}", (*call).deleteConfigWorkflow, ownerOnly),
		get("/config/registry", (*call).searchRegistry, ownerOnly),
		put("/config/servers/{name}", (*call).putConfigServer, ownerOnly),
		del("/config/servers/{name}", (*call).deleteConfigServer, ownerOnly),
		get("/config/proposals", (*call).proposals, ownerOnly),
		get("/config/proposals/{id}", (*call).proposal, ownerOnly),
		post("/config/proposals/{id}/accept", (*call).acceptProposal, ownerOnly),
		post("/config/proposals/{id}/reject", (*call).rejectProposal, ownerOnly),
	}
}

func researchRoutes() []route {
	return []route{
		post("/chat", (*call).chat),
		post("/chat/stream", (*call).chatStream, streaming),
		get("/chat/stream", (*call).chatAgain, streaming),
		get("/mcp/servers", (*call).chatServers),
		get("/mcp/servers/{id}", (*call).chatServerByID),
		post("/mcp/servers/{id}/enable", (*call).chatEnable, ownerOnly),
		post("/mcp/servers/{id}/disable", (*call).chatDisable, ownerOnly),
		post("/mcp/servers/{id}/reconnect", (*call).chatReconnect, ownerOnly),
		get("/mcp/tools", (*call).chatTools),
		post("/mcp/tools/call", (*call).chatCallTool),
		get("/mcp/resources", (*call).chatResources),
		post("/mcp/resources/read", (*call).chatRead),
		get("/mcp/prompts", (*call).chatPrompts),
		post("/mcp/prompts/get", (*call).chatPrompt),
	}
}

func openAIRoutes() []route {
	return []route{
		get("/v1/models", (*call).openModels),
		get("/v1/models/{model}", (*call).openModel),
		post("/v1/chat/completions", (*call).completions, streaming),
	}
}

func mcpRoutes() []route {
	return []route{
		post("/mcp", (*call).gateway, streaming),
		get("/mcp", (*call).gateway, streaming),
		del("/mcp", (*call).gateway),
		post("/mcp/{endpoint}", (*call).gateway, streaming),
		get("/mcp/{endpoint}", (*call).gateway, streaming),
		del("/mcp/{endpoint}", (*call).gateway),
		get("/sign-in/{ticket}", (*call).signInPage, public),
		post("/sign-in/{ticket}", (*call).beginSignIn, public, noBody),
		get("/sign-in/callback", (*call).endSignIn, public),
		get(resourceMetadata+"/mcp", (*call).resource, public),
		get(resourceMetadata+"/mcp/{endpoint}", (*call).resource, public),
	}
}

func get(pattern string, serve func(*call) error, traits ...trait) route {
	return line(http.MethodGet, pattern, serve, traits)
}

func post(pattern string, serve func(*call) error, traits ...trait) route {
	return line(http.MethodPost, pattern, serve, traits)
}

func put(pattern string, serve func(*call) error, traits ...trait) route {
	return line(http.MethodPut, pattern, serve, traits)
}

func patch(pattern string, serve func(*call) error, traits ...trait) route {
	return line(http.MethodPatch, pattern, serve, traits)
}

func del(pattern string, serve func(*call) error, traits ...trait) route {
	return line(http.MethodDelete, pattern, serve, traits)
}

func line(method, pattern string, serve func(*call) error, traits []trait) route {
	r := route{method: method, pattern: pattern, serve: serve}
	for _, t := range traits {
		r.traits |= t
	}
	return r
}

// prefix is the prefix of the paths of the native API.
const prefix = "/api/v1"

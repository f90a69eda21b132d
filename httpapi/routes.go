package httpapi

import "net/http"

// route is one line of the table: what is served where, and to whom.
type route struct {
	method, pattern string
	serve           func(*call) error
	api             string // "": always served
	open            bool   // to everybody: nothing is told there that is not public
	owner           bool   // to the owner alone
	stream          bool   // lasts; counted apart
	none            bool   // there is nothing: no body is looked at
}

// routes is all that is served. Tests go through it, and openapi.json is held to it.
func routes() []route {
	const get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
	all := []route{
		{get, "/healthz", (*call).health, "", true, false, false, false},
		{get, "/readyz", (*call).ready, "", true, false, false, false},
		{get, "/metrics", (*call).metrics, "", false, true, false, false},
	}
	for _, r := range []line{
		{get, "/me", (*call).me, false, false},
		{get, "/openapi.json", (*call).openapi, false, false},
		{get, "/changes", (*call).changes, false, true},

		{post, "/runs", (*call).start, false, false},
		{get, "/runs", (*call).runs, false, false},
		{get, "/runs/{id}", (*call).show, false, false},
		{get, "/runs/{id}/events", (*call).events, false, true},
		{get, "/runs/{id}/messages", (*call).runMessages, false, false},
		{get, "/runs/{id}/artifacts/{artifact}", (*call).artifact, false, false},
		{post, "/runs/{id}/resume", (*call).resume, false, false},
		{post, "/runs/{id}/cancel", (*call).cancel, false, false},
		{post, "/runs/{id}/steer", (*call).steer, false, false},
		{post, "/runs/{id}/decide", (*call).decide, false, false},
		{post, "/runs/{id}/replay", (*call).replay, false, false},
		{get, "/runs/{id}/workflow", (*call).runFlow, false, false},
		{get, "/runs/{id}/tables", (*call).runTables, false, false},
		{get, "/runs/{id}/tables/{table}", (*call).runTable, false, false},

		{get, "/workflows", (*call).workflows, false, false},
		{get, "/workflows/{name}", (*call).workflow, false, false},
		{post, "/workflows/{name}/run", (*call).runWorkflow, false, false},
		{get, "/tables", (*call).tables, true, false},
		{post, "/tables", (*call).bringTable, true, false},
		{del, "/tables", (*call).removeTable, true, false},
		{get, "/tables/rows", (*call).tableRows, true, false},

		{get, "/sessions", (*call).sessions, false, false},
		{get, "/sessions/{id}", (*call).session, false, false},
		{patch, "/sessions/{id}", (*call).rename, false, false},
		{del, "/sessions/{id}", (*call).deleteSession, false, false},
		{get, "/sessions/{id}/messages", (*call).messages, false, false},
		{get, "/sessions/{id}/calls", (*call).calls, false, false},
		{get, "/sessions/{id}/export", (*call).export, false, false},
		{post, "/sessions/{id}/fork", (*call).fork, false, false},
		{post, "/sessions/{id}/compact", (*call).compact, false, false},
		{get, "/search", (*call).search, false, false},

		{get, "/approvals", (*call).approvals, false, false},
		{post, "/approvals/{id}/decide", (*call).decideApproval, false, false},
		{get, "/grants", (*call).grants, false, false},
		{post, "/grants/revoke", (*call).revoke, false, false},

		{get, "/servers", (*call).servers, false, false},
		{get, "/servers/{name}", (*call).server, false, false},
		{post, "/servers/{name}/enable", (*call).enable, true, false},
		{post, "/servers/{name}/disable", (*call).disable, true, false},
		{post, "/servers/{name}/restart", (*call).restart, true, false},
		{get, "/servers/{name}/logs", (*call).logs, true, false},
		{get, "/servers/{name}/frames", (*call).frames, true, false},
		{post, "/servers/{name}/login", (*call).login, true, false},

		{get, "/tools", (*call).tools, false, false},
		{get, "/tools/{name}", (*call).tool, false, false},
		{post, "/tools/{name}/call", (*call).callTool, false, false},
		{get, "/lint", (*call).lint, false, false},
		{get, "/prompts", (*call).prompts, false, false},
		{post, "/prompts/get", (*call).prompt, false, false},
		{get, "/resources", (*call).resources, false, false},
		{post, "/resources/read", (*call).read, false, false},

		{get, "/agents", (*call).agents, false, false},
		{get, "/models", (*call).models, false, false},
		{post, "/models/test", (*call).testModel, true, false},
		{get, "/stats/{by}", (*call).stats, false, false},
		{post, "/doctor", (*call).doctor, true, false},
		{get, "/config", (*call).config, true, false},
		{get, "/config/tools/{name}", (*call).configTool, true, false},
		{put, "/config/tools/{name}", (*call).putConfigTool, true, false},
		{put, "/config/servers/{name}", (*call).putConfigServer, true, false},
		{del, "/config/servers/{name}", (*call).deleteConfigServer, true, false},
	} {
		all = append(all, route{r.method, prefix + r.pattern, r.serve, Native, false, r.owner, r.stream, false})
	}
	for _, r := range []line{
		{post, "/chat", (*call).chat, false, false},
		{post, "/chat/stream", (*call).chatStream, false, true},
		{get, "/mcp/servers", (*call).chatServers, false, false},
		{get, "/mcp/servers/{id}", (*call).chatServerByID, false, false},
		{post, "/mcp/servers/{id}/enable", (*call).chatEnable, true, false},
		{post, "/mcp/servers/{id}/disable", (*call).chatDisable, true, false},
		{post, "/mcp/servers/{id}/reconnect", (*call).chatReconnect, true, false},
		{get, "/mcp/tools", (*call).chatTools, false, false},
		{post, "/mcp/tools/call", (*call).chatCallTool, false, false},
		{get, "/mcp/resources", (*call).chatResources, false, false},
		{post, "/mcp/resources/read", (*call).chatRead, false, false},
		{get, "/mcp/prompts", (*call).chatPrompts, false, false},
		{post, "/mcp/prompts/get", (*call).chatPrompt, false, false},
	} {
		for _, p := range []string{"", "/api"} {
			all = append(all, route{r.method, p + r.pattern, r.serve, ResearchAI, false, r.owner, r.stream, false})
		}
	}
	return append(all,
		route{get, "/v1/models", (*call).openModels, OpenAI, false, false, false, false},
		route{get, "/v1/models/{model}", (*call).openModel, OpenAI, false, false, false, false},
		route{post, "/v1/chat/completions", (*call).completions, OpenAI, false, false, true, false},
	)
}

// line is a line of the table of one API.
type line struct {
	method, pattern string
	serve           func(*call) error
	owner, stream   bool
}

// prefix is that of the native API.
const prefix = "/api/v1"

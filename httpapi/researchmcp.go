package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/servers"
)

// The time limits of ResearchAI's lists. A server that does not answer in time is omitted. It continues to start.
const (
	listTime  = 15 * time.Second // time limit for listing the tools of all servers
	countTime = 5 * time.Second  // time limit for counting a server's prompts and resources
)

// MissingHeader is a header of a list of tools that is incomplete. It contains the names of the servers whose tools are
// missing, separated by ", ".
const MissingHeader = "Tenon-Missing"

// chatServer is a server in ResearchAI's format.
type chatServer struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Connected   bool       `json:"connected"`
	Enabled     bool       `json:"enabled"`
	Transport   string     `json:"transport"`
	Tools       int        `json:"toolsCount"`
	Resources   int        `json:"resourcesCount"`
	Prompts     int        `json:"promptsCount"`
	List        []chatTool `json:"tools"`
	Error       string     `json:"error,omitempty"` // why it is not connected, or its tools are not offered
}

type chatTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"`
	Server      string          `json:"serverId"`
}

type chatPrompt struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Arguments   any    `json:"arguments,omitempty"`
	Server      string `json:"serverId"`
}

type chatResource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	MimeType    string `json:"mimeType,omitempty"`
	Server      string `json:"serverId"`
}

// chatDone is the answer of enable, disable and reconnect.
type chatDone struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

// serverNotFound replaces a not_found error by ResearchAI's message.
func serverNotFound(err error) error {
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		return tenon.Errorf(tenon.CodeNotFound, "Server not found")
	}
	return err
}

// offerNotFound is serverNotFound for something that a server offers. If the server exists, the error concerns the
// prompt or the resource, and is returned unchanged.
func (c *call) offerNotFound(server string, err error) error {
	if tenon.ErrorCode(err) != tenon.CodeNotFound {
		return err
	}
	if _, absent := c.status(server); absent != nil {
		return serverNotFound(absent)
	}
	return err
}

func (c *call) chatServers() error {
	list := []chatServer{}
	all, err := c.h.Servers().List(c.ctx())
	if err != nil {
		return err
	}
	listed := c.chatListing()
	for _, st := range all {
		s, err := c.chatServer(st, listed)
		if err != nil {
			return err
		}
		list = append(list, s)
	}
	return c.answer(http.StatusOK, map[string]any{"servers": list})
}

func (c *call) chatServerByID() error {
	st, err := c.status(c.req.PathValue("id"))
	if err != nil {
		return serverNotFound(err)
	}
	s, err := c.chatServer(st, c.chatListing())
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, s)
}

// chatServer describes a server. It counts prompts and resources only if the server is already connected.
func (c *call) chatServer(st servers.Status, listed chatListing) (chatServer, error) {
	entry := c.h.Service().Info().Config.Servers[st.Name]
	s := chatServer{ID: st.Name, Name: cmp.Or(entry.Title, st.Name), Description: entry.Description,
		Enabled:   st.State != servers.StateDisabled,
		Transport: st.Transport, List: []chatTool{}}
	if !s.Enabled {
		return s, nil
	}
	s.List = listed.of(st.Name) // a server that is down has no tools
	s.Tools = len(s.List)
	if now, err := c.status(st.Name); err == nil && now.Error != nil { // listing the tools may have found the error
		s.Error = now.Error.Message
	} else if err := listed.missing[st.Name]; err != nil {
		s.Error = c.advice(err.Error())
	}
	server := c.h.Service().Connections()[st.Name]
	if server == nil { // a toolset of the program, or a server that was just removed
		s.Connected = st.State == servers.StateReady
		return s, nil
	}
	now := server.Status().State
	if s.Connected = now == servers.StateReady || now == servers.StateDegraded; s.Connected {
		ctx, cancel := context.WithTimeout(c.ctx(), countTime)
		defer cancel()
		if list, err := server.Resources(ctx); err == nil {
			s.Resources = len(list)
		}
		if list, err := server.Prompts(ctx); err == nil {
			s.Prompts = len(list)
		}
	}
	return s, c.ctx().Err()
}

func (c *call) chatEnable() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	_, err := c.h.Servers().Switch(c.ctx(), c.req.PathValue("id"), true)
	return c.changed(err, "Server enabled successfully", "Failed to enable server")
}

func (c *call) chatDisable() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	_, err := c.h.Servers().Switch(c.ctx(), c.req.PathValue("id"), false)
	return c.changed(err, "Server disabled successfully", "Failed to disable server")
}

func (c *call) chatReconnect() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	_, err := c.h.Servers().Restart(c.ctx(), c.req.PathValue("id"))
	return c.changed(err, "Reconnected successfully", "Failed to reconnect")
}

func (c *call) changed(err error, done, failed string) error {
	switch {
	case err == nil:
		return c.answer(http.StatusOK, chatDone{true, done})
	case tenon.ErrorCode(err) == tenon.CodeNotFound:
		return serverNotFound(err)
	}
	return c.answer(Status(tenon.ErrorCode(err)), chatDone{false, failed + ": " + c.advice(err.Error())})
}

// chatListing contains the tools that could be listed in time.
type chatListing struct {
	tools   []*tenon.Tool
	missing map[string]error // server → reason why tools of it are missing
	err     error            // error if nothing could be listed
}

func (c *call) chatListing() chatListing {
	ctx, cancel := context.WithTimeout(c.ctx(), listTime)
	defer cancel()
	snapshot, problems, err := c.h.Tools().Snapshot(ctx)
	if err != nil {
		return chatListing{err: err}
	}
	l := chatListing{tools: snapshot.Tools(), missing: map[string]error{}}
	for _, p := range problems {
		if p.Server != "" {
			l.missing[p.Server] = p.Err
		}
	}
	return l
}

// notListed replaces the error about an unknown tool if the tool may be one of a server whose tools were not listed in
// time.
func (l chatListing) notListed(err error) error {
	if tenon.ErrorCode(err) != tenon.CodeNotFound {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(l.missing)) {
		return tenon.Errorf(tenon.CodeUnreachable, "Tool not found: the tools of server '%s' are missing: %w", name,
			l.missing[name])
	}
	return err
}

// of returns the tools of a server, or all tools if server is empty.
func (l chatListing) of(server string) []chatTool {
	list := []chatTool{}
	for _, t := range l.tools {
		if server == "" || t.Server == server {
			list = append(list, chatTool{t.Name, t.Description, t.Input, t.Server})
		}
	}
	return list
}

func (c *call) chatTools() error {
	id := c.req.URL.Query().Get("serverId")
	if id != "" {
		if _, err := c.status(id); err != nil {
			return serverNotFound(err)
		}
	}
	l := c.chatListing()
	if l.err != nil {
		return l.err
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(l.missing)) {
		if id == "" || id == name {
			missing = append(missing, url.PathEscape(name)) // a header is ASCII
		}
	}
	if len(missing) > 0 {
		c.w.Header().Set(MissingHeader, strings.Join(missing, ", "))
	}
	return c.answer(http.StatusOK, map[string]any{"tools": l.of(id)})
}

// chatCall is the body of POST /mcp/tools/call.
type chatCall struct {
	Tool      string          `json:"toolName"` // the name that models see, or the name on the server
	Server    string          `json:"serverId"`
	Arguments json.RawMessage `json:"arguments"`
}

// missing returns the error about a member that the body lacks. If the body has one of the names that other APIs use
// for it, the error says so.
func (c *call) missing(member, what string, others ...string) error {
	for _, name := range others {
		if rawjson.Field(c.body, name) != nil {
			return tenon.Errorf(tenon.CodeInvalid, "%s is missing: %s; did you mean %s by '%s', which is not read?",
				member, what, member, name)
		}
	}
	return tenon.Errorf(tenon.CodeInvalid, "%s is missing: %s", member, what)
}

func (c *call) chatCallTool() error {
	var q chatCall
	if err := c.decode(&q, false); err != nil {
		return err
	}
	if q.Tool == "" {
		return c.missing("toolName", "it names the tool to call", "name", "tool")
	}
	if q.Server != "" {
		if _, err := c.status(q.Server); err != nil {
			return serverNotFound(err)
		}
	}
	if err := c.admitRun(); err != nil {
		return err
	}
	run, err := c.startChatCall(q)
	if tenon.ErrorCode(err) == tenon.CodeNotFound && q.Server != "" {
		return tenon.Errorf(tenon.CodeNotFound, "Tool not found: %w", err)
	}
	if err != nil {
		return err
	}
	c.begun(run.ID)
	r, err := host.FollowCall(c.ctx(), c.h.Runs(), run.ID, 0, func(tenon.Event) {})
	if err != nil {
		return c.uncalled(run.ID, err)
	}
	out := map[string]any{"success": !r.IsError, "content": chatContents(r.Content)}
	if r.IsError {
		out["error"] = r.Text()
	}
	return c.answer(http.StatusOK, out)
}

// startChatCall starts a call. If the request names no server, the last lists say which one has the tool. So a server
// that hangs does not delay the call of another one. If they do not say it, or are outdated, all servers are asked,
// which a server that hangs delays up to listTime.
func (c *call) startChatCall(q chatCall) (tenon.Run, error) {
	start := func(server string) (tenon.Run, error) {
		ctx, cancel := context.WithTimeout(c.ctx(), listTime) // for the list of the server's tools
		defer cancel()
		return c.h.Tools().Start(ctx, host.ToolCall{Name: q.Tool, Of: server, Principal: c.caller.Principal,
			Arguments: json.RawMessage(cmp.Or(string(q.Arguments), "{}")), Credentials: c.brought})
	}
	if q.Server != "" {
		return start(q.Server)
	}
	if known, err := c.h.Tools().Known(c.ctx()); err == nil {
		if server, err := onlyServer(known.Tools(), q.Tool); err == nil {
			if run, err := start(server); tenon.ErrorCode(err) != tenon.CodeNotFound {
				return run, err
			}
		}
	}
	l := c.chatListing()
	if l.err != nil {
		return tenon.Run{}, l.err
	}
	server, err := onlyServer(l.tools, q.Tool)
	if err != nil {
		return tenon.Run{}, l.notListed(err)
	}
	return start(server)
}

// onlyServer returns the server of a tool for a call that names no server.
func onlyServer(tools []*tenon.Tool, tool string) (string, error) {
	var found []string
	for _, t := range tools {
		if t.Name == tool { // this name is unique
			return t.Server, nil
		}
		if t.Remote == tool {
			found = append(found, t.Server)
		}
	}
	switch len(found) {
	case 0:
		return "", tenon.Errorf(tenon.CodeNotFound, "Tool not found")
	case 1:
		return found[0], nil
	}
	return "", tenon.Errorf(tenon.CodeInvalid, "serverId is missing: several servers have a tool '%s': %s",
		tenon.Visible(tool), strings.Join(found, ", "))
}

func (c *call) chatPrompts() error {
	found, err := c.promptsOf(c.req.URL.Query().Get("serverId"), fromServers)
	if err != nil {
		return serverNotFound(err)
	}
	list := []chatPrompt{}
	for _, p := range found.Items {
		var args any
		if len(p.Arguments) > 0 {
			args = p.Arguments
		}
		list = append(list, chatPrompt{p.Name, p.Description, args, p.Server})
	}
	return c.answer(http.StatusOK, map[string]any{"prompts": list})
}

func (c *call) chatResources() error {
	found, err := c.resourcesOf(c.req.URL.Query().Get("serverId"), fromServers)
	if err != nil {
		return serverNotFound(err)
	}
	list := []chatResource{}
	for _, r := range found.Items {
		list = append(list, chatResource{cmp.Or(r.URI, r.Template), r.Name, r.Description, r.MimeType, r.Server})
	}
	return c.answer(http.StatusOK, map[string]any{"resources": list})
}

func (c *call) chatPrompt() error {
	var q struct {
		Name      string            `json:"promptName"`
		Server    string            `json:"serverId"`
		Arguments map[string]string `json:"arguments"`
	}
	if err := c.decode(&q, false); err != nil {
		return err
	}
	if q.Server == "" {
		return c.missing("serverId", "it names the server of the prompt", "server")
	}
	if q.Name == "" {
		return c.missing("promptName", "the prompt of server '"+tenon.Visible(q.Server)+"'", "name", "prompt")
	}
	raw, err := c.getPrompt(PromptRequest{q.Server, q.Name, q.Arguments})
	if err != nil {
		return c.offerNotFound(q.Server, err)
	}
	return c.answer(http.StatusOK, raw)
}

func (c *call) chatRead() error {
	var q struct {
		URI    string `json:"uri"`
		Server string `json:"serverId"`
	}
	if err := c.decode(&q, false); err != nil {
		return err
	}
	if q.Server == "" {
		return c.missing("serverId", "it names the server of the resource", "server")
	}
	contents, err := c.readResource(ReadRequest{q.Server, q.URI})
	if err != nil {
		return c.offerNotFound(q.Server, err)
	}
	list := []json.RawMessage{} // the list has the format of resources/read
	for _, p := range contents {
		var raw struct {
			Resource json.RawMessage `json:"resource"`
		}
		b, err := json.Marshal(p)
		if err == nil && json.Unmarshal(b, &raw) == nil && len(raw.Resource) > 0 {
			b = raw.Resource
		}
		if err == nil {
			list = append(list, b)
		}
	}
	return c.answer(http.StatusOK, map[string]any{"contents": list})
}

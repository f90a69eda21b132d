package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
)

// countTime bounds counting what a server offers beside tools.
const countTime = 5 * time.Second

// chatServer is a server in ResearchAI's form.
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

// chatDone is the answer of a change.
type chatDone struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

// serverNotFound makes ResearchAI's error of a server that there is not.
func serverNotFound(err error) error {
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		return tenon.Errorf(tenon.CodeNotFound, "Server not found")
	}
	return err
}

func (c *call) chatServers() error {
	list := []chatServer{}
	for _, st := range c.h.Statuses() {
		s, err := c.chatServer(st)
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
	s, err := c.chatServer(st)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, s)
}

// chatServer describes a server. Its prompts and resources are counted where it is
// connected; none is started for that.
func (c *call) chatServer(st servers.Status) (chatServer, error) {
	entry := c.h.Config().Servers[st.Name]
	s := chatServer{ID: st.Name, Name: cmp.Or(entry.Title, st.Name), Description: entry.Description, Enabled: st.State != servers.StateDisabled,
		Transport: st.Transport, List: []chatTool{}}
	if !s.Enabled {
		return s, nil
	}
	if tools, err := c.chatToolsOf(st.Name); err == nil { // one that is down has none
		s.List, s.Tools = tools, len(tools)
	}
	server := c.h.Servers()[st.Name]
	if server == nil { // a program has just removed it
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
	err := c.h.SwitchServer(c.req.PathValue("id"), true)
	return c.changed(err, "Server enabled successfully", "Failed to enable server")
}

func (c *call) chatDisable() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	err := c.h.SwitchServer(c.req.PathValue("id"), false)
	return c.changed(err, "Server disabled successfully", "Failed to disable server")
}

func (c *call) chatReconnect() error {
	if err := c.decode(&struct{}{}, true); err != nil {
		return err
	}
	err := c.h.RestartServer(c.ctx(), c.req.PathValue("id"))
	return c.changed(err, "Reconnected successfully", "Failed to reconnect")
}

func (c *call) changed(err error, done, failed string) error {
	switch {
	case err == nil:
		return c.answer(http.StatusOK, chatDone{true, done})
	case tenon.ErrorCode(err) == tenon.CodeNotFound:
		return serverNotFound(err)
	}
	return c.answer(Status(tenon.ErrorCode(err)), chatDone{false, failed + ": " + err.Error()})
}

// chatToolsOf lists the tools of a server, or of all.
func (c *call) chatToolsOf(server string) ([]chatTool, error) {
	snapshot, _, err := c.h.Tools(c.ctx())
	if err != nil {
		return nil, err
	}
	list := []chatTool{}
	for _, t := range snapshot.Tools() {
		if server == "" || t.Server == server {
			list = append(list, chatTool{t.Name, t.Description, t.Input, t.Server})
		}
	}
	return list, nil
}

func (c *call) chatTools() error {
	id := c.req.URL.Query().Get("serverId")
	if id != "" {
		if _, err := c.status(id); err != nil {
			return serverNotFound(err)
		}
	}
	list, err := c.chatToolsOf(id)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, map[string]any{"tools": list})
}

// chatCall is the body of POST /mcp/tools/call.
type chatCall struct {
	Tool      string          `json:"toolName"` // as models see it, or as its server has it
	Server    string          `json:"serverId"`
	Arguments json.RawMessage `json:"arguments"`
}

func (c *call) chatCallTool() error {
	var q chatCall
	if err := c.decode(&q, false); err != nil {
		return err
	}
	if _, err := c.status(q.Server); err != nil {
		return serverNotFound(err)
	}
	snapshot, _, err := c.h.Tools(c.ctx())
	if err != nil {
		return err
	}
	name := ""
	for _, t := range snapshot.Tools() {
		if t.Server == q.Server && (t.Remote == q.Tool || t.Name == q.Tool && name == "") {
			name = t.Name
		}
	}
	if name == "" {
		return tenon.Errorf(tenon.CodeNotFound, "Tool not found")
	}
	if err := c.admitRun(); err != nil {
		return err
	}
	run, err := c.beginCall(name, q.Arguments)
	if err != nil {
		return err
	}
	r, err := c.h.FollowCall(c.ctx(), run.ID, 0, func(tenon.Event) {})
	if err != nil {
		return err
	}
	out := map[string]any{"success": !r.IsError, "content": chatContents(r.Content)}
	if r.IsError {
		out["error"] = r.Text()
	}
	return c.answer(http.StatusOK, out)
}

func (c *call) chatPrompts() error {
	found, err := c.promptsOf(c.req.URL.Query().Get("serverId"))
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
	found, err := c.resourcesOf(c.req.URL.Query().Get("serverId"))
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
	raw, err := c.getPrompt(PromptRequest{q.Server, q.Name, q.Arguments})
	if err != nil {
		return serverNotFound(err)
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
	contents, err := c.readResource(ReadRequest{q.Server, q.URI})
	if err != nil {
		return serverNotFound(err)
	}
	list := []json.RawMessage{} // as the server's own result has them
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

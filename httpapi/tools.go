package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
)

// ToolList is the answer of GET /api/v1/tools: the tools as models see them, and what is
// missing.
type ToolList struct {
	Items    []ToolInfo      `json:"items"`
	Problems []ServerProblem `json:"problems,omitempty"`
}

// ToolInfo is a tool with what its definition costs a prompt, in tokens.
type ToolInfo struct {
	tenon.Tool
	Tokens int `json:"tokens"`
}

// ToolDetail is the answer of GET /api/v1/tools/{name}. Steps is what was changed on the
// way from the server to the model. Offered is false for a tool that is left out; Reason
// says why.
type ToolDetail struct {
	ToolInfo
	Offered   bool                `json:"offered"`
	Reason    string              `json:"reason,omitempty"`
	Arguments []catalog.Parameter `json:"arguments"`
	Steps     []catalog.Step      `json:"steps"`
}

// tools lists all tools, or those of ?server=, or those that fit the words of ?search=,
// best first.
func (c *call) tools() error {
	q := c.req.URL.Query()
	snapshot, problems, err := c.h.Tools(c.ctx())
	if err != nil {
		return err
	}
	if c.req.URL.RawQuery == "" && len(problems) == 0 {
		return c.sendListing(snapshot)
	}
	all := slices.Clone(snapshot.Tools())
	if words := q.Get("search"); words != "" {
		all = all[:0]
		for _, hit := range snapshot.Index().Search(words, maxPageSize) {
			all = append(all, hit.Tool)
		}
	}
	server := q.Get("server")
	if server != "" {
		if _, err := c.status(server); err != nil && !slices.ContainsFunc(all, func(t *tenon.Tool) bool { return t.Server == server }) {
			return err
		}
	}
	l := ToolList{Items: []ToolInfo{}, Problems: problemsOf(problems)}
	for _, t := range all {
		if server == "" || t.Server == server {
			l.Items = append(l.Items, ToolInfo{*t, catalog.Tokens(t)})
		}
	}
	return c.answer(http.StatusOK, l)
}

// listing is the list of all tools of a snapshot as it is sent: it is asked for far more
// often than it changes.
type listing struct {
	snapshot *catalog.Snapshot
	body     []byte // without masking
	tag      string
}

// sendListing sends the list of all tools.
func (c *call) sendListing(s *catalog.Snapshot) error {
	l := c.listed.Load()
	if l == nil || l.snapshot != s {
		list := ToolList{Items: make([]ToolInfo, len(s.Tools()))}
		for i, t := range s.Tools() {
			list.Items[i] = ToolInfo{*t, catalog.Tokens(t)}
		}
		b, err := encode(list)
		if err != nil {
			return tenon.Errorf(tenon.CodeInternal, "the list of tools cannot be written as JSON: %w", err)
		}
		b = append(b, '\n')
		l = &listing{s, b, tagOf(b)}
		c.listed.Store(l)
	}
	tag := l.tag
	b := c.h.Masked(l.body)
	if !bytes.Equal(b, l.body) {
		tag = ""
	}
	c.sendTagged(http.StatusOK, "application/json", b, tag)
	return nil
}

func (c *call) tool() error {
	name := c.req.PathValue("name")
	snapshot, _, err := c.h.Tools(c.ctx())
	if err != nil {
		return err
	}
	d := ToolDetail{Arguments: []catalog.Parameter{}, Steps: []catalog.Step{}}
	t, ok := snapshot.Lookup(name)
	if !ok {
		all := snapshot.Tools()
		if i := slices.IndexFunc(all, func(t *tenon.Tool) bool { return t.Server+"."+t.Remote == name }); i >= 0 {
			t, ok = all[i], true
		}
	}
	if ok {
		d.ToolInfo, d.Offered = ToolInfo{*t, catalog.Tokens(t)}, true
		d.Arguments = append(d.Arguments, catalog.Parameters(t)...)
	} else {
		all := snapshot.Withheld()
		i := slices.IndexFunc(all, func(w catalog.Withheld) bool { return w.Remote == name || w.Server+"."+w.Remote == name })
		if i < 0 {
			return tenon.Errorf(tenon.CodeNotFound, "there is no tool '%s'", name)
		}
		d.Server, d.Remote, d.Reason = all[i].Server, all[i].Remote, all[i].Reason
	}
	d.Steps = append(d.Steps, snapshot.Explain(d.Server, d.Remote)...)
	return c.answer(http.StatusOK, d)
}

// lint says what is worth knowing of the tools before a model does: as every provider
// would see them, or with ?provider= as one of them.
func (c *call) lint() error {
	providers := catalog.Providers()
	if p := c.req.URL.Query().Get("provider"); p != "" {
		if !slices.Contains(providers, p) {
			return tenon.Errorf(tenon.CodeNotFound, "there are no rules for the provider '%s'; values: %s", p, strings.Join(providers, ", "))
		}
		providers = []string{p}
	}
	snapshot, _, err := c.h.Tools(c.ctx())
	if err != nil {
		return err
	}
	found := snapshot.Lint(providers)
	if tool := c.req.URL.Query().Get("tool"); tool != "" {
		found = slices.DeleteFunc(found, func(f catalog.Finding) bool { return f.Tool != tool && f.Server+"."+f.Tool != tool })
	}
	return c.answer(http.StatusOK, items(found))
}

// CallRequest is the body of POST /api/v1/tools/{name}/call; it may be missing.
type CallRequest struct {
	Arguments json.RawMessage `json:"arguments,omitempty"` // an object
	// Detach answers at once (202) with the run that the call is recorded as.
	Detach bool `json:"detach,omitempty"`
}

// CallResponse is the answer to it. A failure that the tool reports is a result with
// is_error.
type CallResponse struct {
	Run    tenon.Run     `json:"run"`
	Result *tenon.Result `json:"result,omitempty"`
}

// callTool makes a call for the caller. It is the caller's consent; deny rules hold.
func (c *call) callTool() error {
	var r CallRequest
	if err := c.decode(&r, true); err != nil {
		return err
	}
	if err := c.admitRun(); err != nil {
		return err
	}
	run, err := c.beginCall(c.req.PathValue("name"), r.Arguments)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", prefix+"/runs/"+run.ID)
	if r.Detach {
		return c.answer(http.StatusAccepted, CallResponse{Run: run})
	}
	result, err := c.h.FollowCall(c.ctx(), run.ID, 0, func(tenon.Event) {})
	if err != nil {
		return err
	}
	if run, err = c.runOf(run.ID); err != nil {
		return err
	}
	return c.answer(http.StatusOK, CallResponse{run, result})
}

// beginCall begins a tool call of the caller.
func (c *call) beginCall(name string, args json.RawMessage) (tenon.Run, error) {
	return c.h.StartToolCall(c.ctx(), host.ToolCall{Name: name, Arguments: json.RawMessage(cmp.Or(string(args), "{}")),
		Principal: c.caller.Principal, Credentials: c.brought})
}

// ServerPrompt is a prompt and whose it is.
type ServerPrompt struct {
	Server string `json:"server"`
	mcp.Prompt
}

// ServerResource is a resource, or a template of resources, and whose it is.
type ServerResource struct {
	Server string `json:"server"`
	mcp.Resource
}

// offers is a list of what servers have beside tools.
type offers[T any] struct {
	Items    []T             `json:"items"`
	Problems []ServerProblem `json:"problems,omitempty"`
}

func (c *call) prompts() error {
	found, err := c.promptsOf(c.req.URL.Query().Get("server"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found)
}

func (c *call) resources() error {
	found, err := c.resourcesOf(c.req.URL.Query().Get("server"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found)
}

// PromptRequest is the body of POST /api/v1/prompts/get.
type PromptRequest struct {
	Server    string            `json:"server"`
	Name      string            `json:"name"`
	Arguments map[string]string `json:"arguments,omitempty"`
}

// prompt answers with the server's own result (prompts/get).
func (c *call) prompt() error {
	var r PromptRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	raw, err := c.getPrompt(r)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, raw)
}

// ReadRequest is the body of POST /api/v1/resources/read.
type ReadRequest struct {
	Server string `json:"server"`
	URI    string `json:"uri"`
}

// read answers with the contents of a resource.
func (c *call) read() error {
	var r ReadRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	contents, err := c.readResource(r)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, items(contents))
}

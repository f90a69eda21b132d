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
)

// ToolList is the answer of GET /api/v1/tools: the tools as models see them, and the reasons why others are missing.
type ToolList struct {
	Items    []host.ToolInfo `json:"items"`
	Problems []ServerProblem `json:"problems,omitempty"`
}

// tools lists all tools, the tools of ?server=, or the matches of ?search=, best first.
func (c *call) tools() error {
	q := c.req.URL.Query()
	snapshot, problems, err := c.h.Tools().Snapshot(c.ctx())
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
		if _, err := c.status(server); err != nil &&
			!slices.ContainsFunc(all, func(t *tenon.Tool) bool { return t.Server == server }) {
			return err
		}
	}
	l := ToolList{Items: []host.ToolInfo{}, Problems: c.problemsOf(problems)}
	for _, t := range all {
		if server == "" || t.Server == server {
			l.Items = append(l.Items, host.NewToolInfo(t))
		}
	}
	return c.answer(http.StatusOK, l)
}

// listing caches the JSON of the list of all tools, because it is requested far more often than it changes.
type listing struct {
	snapshot *catalog.Snapshot // the listed tools
	body     []byte            // before secrets are masked
	tag      string            // the entity tag of body
}

// sendListing sends the list of all tools. It uses the cache if the cache was made from this snapshot.
func (c *call) sendListing(s *catalog.Snapshot) error {
	l := c.listed.Load()
	if l == nil || l.snapshot != s {
		b, err := encode(ToolList{Items: host.ToolInfos(s.Tools())})
		if err != nil {
			return tenon.Errorf(tenon.CodeInternal, "the list of tools cannot be written as JSON: %w", err)
		}
		b = append(b, '\n')
		l = &listing{s, b, tagOf(b)}
		c.listed.Store(l)
	}
	tag := l.tag
	b := c.h.Service().Callers().Mask(l.body)
	if !bytes.Equal(b, l.body) {
		tag = ""
	}
	c.sendTagged(http.StatusOK, "application/json", b, tag)
	return nil
}

func (c *call) tool() error {
	d, err := c.h.Tools().Get(c.ctx(), c.req.PathValue("name"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, d)
}

// lint lists problems that a model would have with tool definitions, for every provider or only for ?provider=.
func (c *call) lint() error {
	providers := catalog.Providers()
	if p := c.req.URL.Query().Get("provider"); p != "" {
		if !slices.Contains(providers, p) {
			return tenon.Errorf(tenon.CodeNotFound, "there are no rules for the provider '%s'; values: %s", p,
				strings.Join(providers, ", "))
		}
		providers = []string{p}
	}
	snapshot, _, err := c.h.Tools().Snapshot(c.ctx())
	if err != nil {
		return err
	}
	found := snapshot.Lint(providers)
	if tool := c.req.URL.Query().Get("tool"); tool != "" {
		found = slices.DeleteFunc(found, func(f catalog.Finding) bool {
			return f.Tool != tool &&
				f.Server+"."+f.Tool != tool
		})
	}
	return c.answer(http.StatusOK, items(found))
}

// CallRequest is the body of POST /api/v1/tools/{name}/call; it may be missing.
type CallRequest struct {
	Arguments json.RawMessage `json:"arguments,omitempty"` // an object
	// Detach makes the answer, with status 202, return at once. It contains the run that records the call.
	Detach bool `json:"detach,omitempty"`
	// ToolTable is a tool table, as an Arrow file or stream in base64. Its only row selects the configured tool to
	// call. The name in the path is then ignored.
	ToolTable  []byte `json:"tool_table,omitempty"`
	ToolColumn string `json:"tool_column,omitempty"` // column of the table; if empty, the last tool column
}

// CallResponse is the answer to a CallRequest. If the tool reports an error, Result has is_error, and the status is
// still 200.
type CallResponse struct {
	Run    tenon.Run     `json:"run"`
	Result *tenon.Result `json:"result,omitempty"`
}

// callTool calls a tool for the caller. The request counts as approval of the call, but deny rules still apply.
func (c *call) callTool() error {
	var r CallRequest
	if err := c.decode(&r, true); err != nil {
		return err
	}
	if err := c.admitRun(); err != nil {
		return err
	}
	if r.ToolColumn != "" && len(r.ToolTable) == 0 {
		return tenon.Errorf(tenon.CodeInvalid, "tool_column needs tool_table")
	}
	var only *host.OnlyTable
	if len(r.ToolTable) > 0 {
		only = &host.OnlyTable{Data: r.ToolTable, Column: r.ToolColumn}
	}
	run, err := c.beginCall(c.req.PathValue("name"), r.Arguments, only)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", prefix+"/runs/"+run.ID)
	c.begun(run.ID)
	if r.Detach {
		return c.answer(http.StatusAccepted, CallResponse{Run: run})
	}
	result, err := host.FollowCall(c.ctx(), c.h.Runs(), run.ID, 0, func(tenon.Event) {})
	if err != nil {
		return c.uncalled(run.ID, err)
	}
	if run, err = c.runOf(run.ID); err != nil {
		return c.unrepeated(run.ID, err)
	}
	return c.answer(http.StatusOK, CallResponse{run, result})
}

// beginCall starts a run with one tool call for the caller. If only is not nil, it selects the tool.
func (c *call) beginCall(name string, args json.RawMessage, only *host.OnlyTable) (tenon.Run, error) {
	return c.h.Tools().Start(c.ctx(), host.ToolCall{Name: name, Arguments: json.RawMessage(cmp.Or(string(args), "{}")),
		Principal: c.caller.Principal, Credentials: c.brought, Only: only})
}

func (c *call) prompts() error {
	q := c.req.URL.Query()
	found, err := c.promptsOf(q.Get("server"), q.Get("from"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found)
}

func (c *call) resources() error {
	q := c.req.URL.Query()
	found, err := c.resourcesOf(q.Get("server"), q.Get("from"))
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

// prompt answers with the unchanged result of the server (prompts/get).
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

// CompletionRequest is the body of POST /api/v1/prompts/complete. One of Prompt and Template is set.
type CompletionRequest struct {
	Server    string            `json:"server"`
	Prompt    string            `json:"prompt,omitempty"`
	Template  string            `json:"template,omitempty"`
	Argument  string            `json:"argument"`
	Value     string            `json:"value,omitempty"`
	Arguments map[string]string `json:"arguments,omitempty"` // the other arguments, as far as they are known
}

// completeArgument answers with values of an argument that fit its text so far.
func (c *call) completeArgument() error {
	var r CompletionRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	found, err := c.completion(r)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found)
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

package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/pins"
	"github.com/tenonhq/tenon/servers"
)

// Servers returns the handle of the process's servers. Only the owner may change them.
func (c *Client) Servers() host.Servers { return remoteServers{c} }

// Tools returns the handle of the process's tools.
func (c *Client) Tools() host.Tools { return remoteTools{c} }

// Tables returns the handle of the tables in files, which only the owner may read.
func (c *Client) Tables() host.Tables { return remoteTables{c} }

// Workflows returns the handle of the workflows that the process offers. They are started by name.
func (c *Client) Workflows() host.Workflows { return remoteWorkflows{c} }

// Models returns the handle of the process's models.
func (c *Client) Models() host.Models { return remoteModels{c} }

type (
	remoteServers   struct{ *Client }
	remoteContext   struct{ *Client }
	remoteKnown     struct{ *Client }
	remoteTools     struct{ *Client }
	remotePins      struct{}
	remoteTables    struct{ *Client }
	remoteWorkflows struct{ *Client }
	remoteSchedules struct{ *Client }
	remoteModels    struct{ *Client }
)

func (c remoteServers) List(ctx context.Context) ([]servers.Status, error) {
	l, err := fetch[list[servers.Status]](ctx, c.Client, http.MethodGet, at("servers"), nil, "")
	return l.Items, err
}

func (c remoteServers) Add(context.Context, string, servers.Config) error {
	return notOverHTTP("adding a server that the configuration does not name")
}

func (c remoteServers) Remove(context.Context, string) error {
	return notOverHTTP("removing a server that the configuration does not name")
}

func (c remoteServers) Restart(ctx context.Context, name string) (servers.Status, error) {
	return fetch[servers.Status](ctx, c.Client, http.MethodPost, at("servers", name, "restart"), nil, "")
}

func (c remoteServers) Switch(ctx context.Context, name string, on bool) (servers.Status, error) {
	verb := "disable"
	if on {
		verb = "enable"
	}
	return fetch[servers.Status](ctx, c.Client, http.MethodPost, at("servers", name, verb), nil, "")
}

func (c remoteServers) Login(ctx context.Context, name string) (string, error) {
	r, err := fetch[LoginResponse](ctx, c.Client, http.MethodPost, at("servers", name, "login"), nil, "")
	return r.URL, err
}

func (c remoteServers) Context() host.ServerContext { return remoteContext(c) }

func (c remoteContext) Prompts(ctx context.Context, names ...string) ([]host.ServerPrompt, []host.Problem, error) {
	k, err := offered[host.ServerPrompt](ctx, c.Client, "prompts", fromServers, names)
	return k.Items, k.Problems, err
}

func (c remoteContext) Resources(ctx context.Context, names ...string) ([]host.ServerResource, []host.Problem, error) {
	k, err := offered[host.ServerResource](ctx, c.Client, "resources", fromServers, names)
	return k.Items, k.Problems, err
}

func (c remoteContext) Known() host.KnownContext { return remoteKnown(c) }

func (c remoteKnown) Prompts(ctx context.Context, names ...string) (host.Known[host.ServerPrompt], error) {
	return offered[host.ServerPrompt](ctx, c.Client, "prompts", fromKnown, names)
}

func (c remoteKnown) Resources(ctx context.Context, names ...string) (host.Known[host.ServerResource], error) {
	return offered[host.ServerResource](ctx, c.Client, "resources", fromKnown, names)
}

func (c remoteKnown) StoredPrompts(ctx context.Context, names ...string) (host.Known[host.ServerPrompt], error) {
	return offered[host.ServerPrompt](ctx, c.Client, "prompts", fromStored, names)
}

func (c remoteKnown) StoredResources(ctx context.Context, names ...string) (host.Known[host.ServerResource], error) {
	return offered[host.ServerResource](ctx, c.Client, "resources", fromStored, names)
}

// offered reads a list of all servers, or one list for each name.
func offered[T any](ctx context.Context, c *Client, what, from string, names []string) (k host.Known[T], err error) {
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		q := url.Values{"from": {from}}
		if name != "" {
			q.Set("server", name)
		}
		l, err := fetch[offers[T]](ctx, c, http.MethodGet, at(what)+"?"+q.Encode(), nil, "")
		if err != nil {
			return host.Known[T]{}, err
		}
		k.Items = append(k.Items, l.Items...)
		k.Unlisted = append(k.Unlisted, l.Unlisted...)
		k.Problems = append(k.Problems, Problems(l.Problems)...)
		if l.Listed != nil && (k.Listed.IsZero() || l.Listed.Before(k.Listed)) {
			k.Listed = *l.Listed
		}
	}
	return k, nil
}

func (c remoteContext) FillPrompt(ctx context.Context, server, name string, args map[string]string) (host.Prompted,
	error) {
	raw, err := fetch[json.RawMessage](ctx, c.Client, http.MethodPost, at("prompts", "get"),
		PromptRequest{server, name, args}, "")
	if err != nil {
		return host.Prompted{}, err
	}
	return host.ReadPrompt(server, name, raw)
}

func (c remoteContext) Attach(ctx context.Context, server, uri string) ([]tenon.Part, error) {
	l, err := fetch[list[tenon.Content]](ctx, c.Client, http.MethodPost, at("resources", "read"),
		ReadRequest{server, uri}, "")
	if err != nil {
		return nil, err
	}
	return host.ContentParts(server, uri, l.Items)
}

func (c remoteContext) Mentions(ctx context.Context, text string) ([]host.Mention, error) {
	if len(host.MentionsIn(text, func(string) bool { return true })) == 0 {
		return nil, nil
	}
	all, err := c.Servers().List(ctx)
	if err != nil {
		return nil, err
	}
	return host.MentionsIn(text, func(name string) bool {
		return slices.ContainsFunc(all, func(s servers.Status) bool { return s.Name == name })
	}), nil
}

func (c remoteTools) List(ctx context.Context) ([]host.ToolInfo, []host.Problem, error) {
	l, err := fetch[ToolList](ctx, c.Client, http.MethodGet, at("tools"), nil, "")
	return l.Items, Problems(l.Problems), err
}

func (c remoteTools) Get(ctx context.Context, name string) (host.ToolDetail, error) {
	return fetch[host.ToolDetail](ctx, c.Client, http.MethodGet, at("tools", name), nil, "")
}

func (c remoteTools) Snapshot(context.Context, ...string) (*catalog.Snapshot, []host.Problem, error) {
	return nil, nil, notOverHTTP("the snapshot of the tools")
}

func (c remoteTools) Known(context.Context) (*catalog.Snapshot, error) {
	return nil, notOverHTTP("the snapshot of the tools")
}

func (c remoteTools) Start(ctx context.Context, t host.ToolCall) (tenon.Run, error) {
	if len(t.Inputs)+len(t.Files) > 0 || t.Grant != "" || t.Debug || t.Table != nil {
		return tenon.Run{}, notOverHTTP("a tool call with tables, a grant or debug mode")
	}
	q := CallRequest{Arguments: t.Arguments, Detach: true}
	if t.Only != nil {
		if t.Only.File != "" {
			return tenon.Run{}, notOverHTTP("a tool call with a table of the server")
		}
		q.ToolTable, q.ToolColumn = t.Only.Data, t.Only.Column
	}
	r, err := fetch[CallResponse](ctx, c.Client, http.MethodPost, at("tools", t.Name, "call"), q, "")
	return r.Run, err
}

func (c remoteTools) Add(context.Context, string, tenon.Toolset) error {
	return notOverHTTP("adding a toolset")
}

func (c remoteTools) Pins() host.Pins { return remotePins{} }

func (remotePins) List(context.Context, string) ([]pins.State, error) {
	return nil, notOverHTTP("the pins of a server")
}

func (remotePins) Accept(context.Context, string, string, string, []pins.State) ([]pins.State, error) {
	return nil, notOverHTTP("pinning a server")
}

func (remotePins) Forget(context.Context, string) error {
	return notOverHTTP("dropping the pins of a server")
}

func (c remoteTables) List(ctx context.Context) ([]host.TableFile, error) {
	l, err := fetch[list[host.TableFile]](ctx, c.Client, http.MethodGet, at("tables"), nil, "")
	return l.Items, err
}

func (c remoteTables) Page(ctx context.Context, id string, o host.PageOptions) (host.TablePage, error) {
	q := pageQuery(o)
	q.Set("file", id)
	return fetch[host.TablePage](ctx, c.Client, http.MethodGet, at("tables", "rows")+"?"+q.Encode(), nil, "")
}

func (c remoteTables) Bytes(context.Context, string) ([]byte, error) {
	return nil, notOverHTTP("the bytes of a table's file")
}

func (c remoteTables) OpenTable(context.Context, string) (*host.TableReader, error) {
	return nil, notOverHTTP("the bytes of a table's file")
}

func (c remoteTables) Put(ctx context.Context, name string, data []byte) (host.TableFile, error) {
	return fetch[host.TableFile](ctx, c.Client, http.MethodPost, at("tables"), TableUpload{name, data}, "")
}

func (c remoteTables) PutFrom(ctx context.Context, name string, data io.Reader) (host.TableFile, error) {
	return fetch[host.TableFile](ctx, c.Client, http.MethodPut, at("tables")+"?name="+url.QueryEscape(name), data, "")
}

func (c remoteTables) Remove(ctx context.Context, id string) error {
	return c.done(ctx, http.MethodDelete, at("tables")+"?file="+url.QueryEscape(id), nil)
}

func (c remoteWorkflows) List(ctx context.Context) ([]host.WorkflowView, error) {
	l, err := fetch[list[host.WorkflowView]](ctx, c.Client, http.MethodGet, at("workflows"), nil, "")
	return l.Items, err
}

func (c remoteWorkflows) Get(context.Context, string) (host.Workflow, error) {
	return host.Workflow{}, notOverHTTP("the file of a workflow")
}

func (c remoteWorkflows) Start(ctx context.Context, w host.WorkflowCall) (tenon.Run, error) {
	if w.Name == "" {
		return tenon.Run{}, notOverHTTP("running a workflow from a file")
	}
	if w.Grant != "" || w.Debug {
		return tenon.Run{}, notOverHTTP("allowing the steps of a workflow beforehand, and its debug mode")
	}
	r := WorkflowRunRequest{Parameters: w.Params, Inputs: map[string]TableInput{}}
	for port, data := range w.Inputs {
		r.Inputs[port] = TableInput{Data: data}
	}
	for port, in := range w.Files {
		b, err := sendable("the table for input '"+tenon.Visible(port)+"'", in)
		if err != nil {
			return tenon.Run{}, err
		}
		r.Inputs[port] = TableInput{Data: b}
	}
	got, err := fetch[StartResponse](ctx, c.Client, http.MethodPost, at("workflows", w.Name, "run"), r, "")
	return got.Run, err
}

// maxSentTable bounds a table in a request, so that the base64 of it fits into a body.
const maxSentTable = maxBody / 2

// sendable reads a table that is sent in a request. The argument what names it in errors.
func sendable(what string, in *io.SectionReader) ([]byte, error) {
	if in.Size() > maxSentTable {
		return nil, tenon.Errorf(tenon.CodeTooLarge, "%s has %d MiB; a request takes at most %d MiB: copy the file to "+
			"the folder of that process, and name it in inputs of POST /workflows/NAME/run as file", what,
			in.Size()>>20, maxSentTable>>20)
	}
	b, err := io.ReadAll(io.NewSectionReader(in, 0, in.Size()))
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "%s: %w", what, err)
	}
	return b, nil
}

func (c remoteWorkflows) Schedules() host.Schedules { return remoteSchedules(c) }

func (c remoteSchedules) List(ctx context.Context) ([]host.ScheduleInfo, error) {
	l, err := fetch[list[host.ScheduleInfo]](ctx, c.Client, http.MethodGet, at("schedules"), nil, "")
	return l.Items, err
}

func (c remoteModels) List(ctx context.Context, probe bool) ([]host.ModelInfo, error) {
	path := at("models")
	if probe {
		path += "?probe=true"
	}
	l, err := fetch[list[host.ModelInfo]](ctx, c.Client, http.MethodGet, path, nil, "")
	return l.Items, err
}

func (c remoteModels) Test(ctx context.Context, name string) (host.ModelTest, error) {
	return fetch[host.ModelTest](ctx, c.Client, http.MethodPost, at("models", "test"), TestModelRequest{name}, "")
}

func (c remoteModels) Price(context.Context, string) (model.Price, bool, error) {
	return model.Price{}, false, notOverHTTP("the price of one model; the list of models has prices")
}

func (c remoteModels) Offered(context.Context, string) ([]model.Listed, error) {
	return nil, notOverHTTP("the list of a provider's models")
}

func (c remoteModels) Pull(context.Context, string, func(model.Pulled)) error {
	return notOverHTTP("downloading a model")
}

func (c remoteModels) Prompt(context.Context, host.Question) (*tenon.Request, []host.Problem, error) {
	return nil, nil, notOverHTTP("the first request of a question")
}

var (
	_ host.Servers       = remoteServers{}
	_ host.ServerContext = remoteContext{}
	_ host.KnownContext  = remoteKnown{}
	_ host.Tools         = remoteTools{}
	_ host.Pins          = remotePins{}
	_ host.Tables        = remoteTables{}
	_ host.Workflows     = remoteWorkflows{}
	_ host.Schedules     = remoteSchedules{}
	_ host.Models        = remoteModels{}
)

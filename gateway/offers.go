package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
)

const (
	// askParallel is the largest number of servers that are asked for a list at a time.
	askParallel = 8
	// private are the members of an answer that forbid caches to store it (2026-07-28). Older clients ignore them.
	private = `"ttlMs":0,"cacheScope":"private"`
	// codeNoResource is the error for a resource that does not exist (2025-11-25, resources).
	codeNoResource = -32002
)

// offers answers requests about prompts, resources and completions. It returns nil for any other method.
func (d *door) offers(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	h := d.g.current()
	var raw json.RawMessage
	var err error
	switch method {
	case "prompts/list":
		raw, err = d.listed(ctx, h, "prompts", (*offered).prompts)
	case "resources/list":
		raw, err = d.listed(ctx, h, "resources", (*offered).resources)
	case "resources/templates/list":
		raw, err = d.listed(ctx, h, "resourceTemplates", (*offered).templates)
	case "prompts/get":
		raw, err = d.prompt(ctx, h, params)
	case "resources/read":
		raw, err = d.read(ctx, h, params)
	case "completion/complete":
		raw, err = d.complete(ctx, h, params)
	default:
		return nil, nil
	}
	var account ofAccount
	if r := mcp.RequestOf(ctx); r != nil && errors.As(err, &account) {
		if method == "completion/complete" && r.Modern { // it has no questions (2026-07-28, MRTR)
			return nil, d.refusal(ctx, h, params, d.linked(ctx, account.server, account.error))
		}
		var needed json.RawMessage
		if needed, err = d.signInFor(ctx, r, account.server, account.error); needed != nil {
			return needed, nil
		}
	}
	if err != nil {
		return nil, d.refusal(ctx, h, params, err)
	}
	return h.Service().Callers().Mask(tenon.VisibleJSON(raw)), nil
}

// refusal returns the JSON-RPC error for an error.
func (d *door) refusal(ctx context.Context, h *host.Host, params []byte, err error) error {
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && tenon.ErrorCode(err) == tenon.CodeInternal { // of the gateway itself
		return refused
	}
	text := string(h.Service().Callers().Mask([]byte(tenon.Visible(err.Error()))))
	switch tenon.ErrorCode(err) {
	case tenon.CodeNotFound:
		if r := mcp.RequestOf(ctx); r != nil && r.Modern { // SEP-2164
			e := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", text)
			if uri := rawjson.Field(params, "uri"); uri != nil {
				e.Data = append(member([]byte{'{'}, "uri", uri), '}')
			}
			return e
		}
		return jsonrpc.Errorf(codeNoResource, "%s", text)
	case tenon.CodeDenied:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", text)
	case tenon.CodeInvalid:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", text)
	}
	if e := serverError(err, text); e != nil && tenon.ErrorCode(err) == tenon.CodeTool {
		return e
	}
	return jsonrpc.Errorf(jsonrpc.CodeInternal, "%s", text)
}

// listing returns the items of a list.
type listing func(*offered) []json.RawMessage

// offered contains the prompts or the resources of the servers of an endpoint. names is sorted.
type offered struct {
	names []string
	of    map[string]*serverOffer
}

// serverOffer is a server. The embedded ServerOffers asks it, or its cassette.
type serverOffer struct {
	host.ServerOffers
	server    *servers.Server
	prompts   []mcp.Prompt
	resources []mcp.Resource
}

// reachable returns the servers whose prompts and resources belong to an endpoint. If the endpoint selects no servers,
// all servers belong to it.
func reachable(h *host.Host, e config.Endpoint) map[string]*servers.Server {
	all := maps.Clone(h.Service().Connections())
	maps.DeleteFunc(all, func(name string, s *servers.Server) bool {
		whole := len(e.Servers)+len(e.Groups)+len(e.Tools) == 0
		return s.Status().State == servers.StateDisabled || !whole && !slices.Contains(e.Servers, name)
	})
	return all
}

// connections returns a copy of the connections of a host, or none if a cassette answers for the servers.
func connections(h *host.Host) map[string]*servers.Server {
	s := h.Service()
	if s.Info().Replays {
		return nil
	}
	return maps.Clone(s.Connections())
}

// ask requests the prompts or the resources of the servers. A server that does not answer counts as a server without
// any.
func (d *door) ask(ctx context.Context, h *host.Host, prompts bool) (*offered, error) {
	endpoint, err := endpointOf(h, d.key.endpoint)
	if err != nil {
		return nil, err
	}
	o := &offered{of: map[string]*serverOffer{}}
	slots := make(chan struct{}, askParallel)
	var work sync.WaitGroup
	for name, s := range reachable(h, endpoint) {
		from, err := host.OffersOf(h, name)
		if err != nil {
			continue // it was removed in the meantime
		}
		one := &serverOffer{ServerOffers: from, server: s}
		o.names, o.of[name] = append(o.names, name), one
		work.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			bounded, stop := context.WithTimeout(ctx, s.ListTime())
			defer stop()
			// the error is part of the server's status
			if prompts {
				one.prompts, _ = one.Prompts(bounded)
			} else {
				one.resources, _ = one.Resources(bounded)
			}
		})
	}
	work.Wait()
	slices.Sort(o.names)
	return o, ctx.Err()
}

// listed answers a request for a list.
func (d *door) listed(ctx context.Context, h *host.Host, key string, items listing) (json.RawMessage, error) {
	o, err := d.ask(ctx, h, key == "prompts")
	if err != nil {
		return nil, err
	}
	o.filter(d, h)
	all := items(o)
	switch key {
	case "resourceTemplates":
		d.note("resources", "resources/templates", all)
	default:
		d.note(key, key, all)
	}
	of := key
	if key == "resourceTemplates" {
		of = "resources"
	}
	b := append([]byte{'{'}, d.offersHint(h, o, of)...)
	return append(member(b, key, joined(all)), '}'), nil
}

// joined returns values as an array.
func joined(values []json.RawMessage) []byte {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

// promptNames yields the prompts with their exposed names. This is the server's own name for the prompt. If two servers
// have the same name, the name of the server precedes it.
func (o *offered) promptNames(yield func(name, server string, p mcp.Prompt) bool) {
	count := map[string]int{}
	for _, s := range o.names {
		for _, p := range o.of[s].prompts {
			count[p.Name]++
		}
	}
	for _, s := range o.names {
		for _, p := range o.of[s].prompts {
			name := p.Name
			if count[name] > 1 {
				name = s + "_" + name
			}
			if !yield(name, s, p) {
				return
			}
		}
	}
}

func (o *offered) prompts() (list []json.RawMessage) {
	o.promptNames(func(name, _ string, p mcp.Prompt) bool {
		list = append(list, with(p.Raw, "name", rawjson.AppendString(nil, name)))
		return true
	})
	return list
}

func (o *offered) resources() []json.RawMessage { return o.resourcesOf(false) }
func (o *offered) templates() []json.RawMessage { return o.resourcesOf(true) }

// resourcesOf returns the definitions of the resources, or of the templates. Of several definitions with the same URI,
// it returns the first.
func (o *offered) resourcesOf(templates bool) (list []json.RawMessage) {
	seen := map[string]bool{}
	for _, s := range o.names {
		for _, r := range o.of[s].resources {
			if (r.Template != "") == templates && !seen[r.URI+r.Template] {
				seen[r.URI+r.Template] = true
				list = append(list, r.Raw)
			}
		}
	}
	return list
}

// as returns a context with the principal's own credentials at a server.
func (d *door) as(ctx context.Context, h *host.Host, server string) (context.Context, error) {
	credentials, _ := ctx.Value(brought{}).(host.Credentials)
	return h.Service().Callers().Context(ctx, d.key.who, credentials, server)
}

// prompt answers prompts/get with the result of the server.
func (d *door) prompt(ctx context.Context, h *host.Host, params []byte) (json.RawMessage, error) {
	want := rawjson.String(rawjson.Field(params, "name"))
	server, remote, s, err := d.findPrompt(ctx, h, want)
	if err != nil {
		return nil, err
	}
	args := map[string]string{}
	for k, v := range rawjson.Members(rawjson.Field(params, "arguments")) {
		args[string(k)] = rawjson.String(v)
	}
	if err := d.allow(h, promptTool(server, remote), tenon.EventData(args)); err != nil {
		return nil, err
	}
	if ctx, err = d.as(ctx, h, server); err != nil {
		return nil, d.atServer(h, server, err)
	}
	raw, err := d.askOffer(ctx, offerRequest{"prompts/get", want, func(ctx context.Context) (json.RawMessage, error) {
		return s.Prompt(ctx, remote, args)
	}})
	return raw, d.atServer(h, server, err)
}

func (d *door) findPrompt(ctx context.Context, h *host.Host, want string) (server, remote string, s *serverOffer,
	err error) {
	o, err := d.ask(ctx, h, true)
	if err != nil {
		return "", "", nil, err
	}
	o.promptNames(func(name, of string, p mcp.Prompt) bool {
		if name == want {
			server, remote, s = of, p.Name, o.of[of]
		}
		return s == nil
	})
	if s == nil {
		return "", "", nil, tenon.Errorf(tenon.CodeInvalid, "there is no prompt '%s'", tenon.Visible(want))
	}
	return server, remote, s, nil
}

// complete answers completion/complete.
func (d *door) complete(ctx context.Context, h *host.Host, params []byte) (json.RawMessage, error) {
	ref, argument := rawjson.Field(params, "ref"), rawjson.Field(params, "argument")
	q := mcp.CompletionRequest{Argument: rawjson.String(rawjson.Field(argument, "name")),
		Value: rawjson.String(rawjson.Field(argument, "value")), Others: map[string]string{}}
	for k, v := range rawjson.Members(rawjson.Field(rawjson.Field(params, "context"), "arguments")) {
		q.Others[string(k)] = rawjson.String(v)
	}
	var server string
	var s *serverOffer
	var err error
	switch rawjson.String(rawjson.Field(ref, "type")) {
	case "ref/prompt":
		server, q.Prompt, s, err = d.findPrompt(ctx, h, rawjson.String(rawjson.Field(ref, "name")))
	case "ref/resource":
		q.Template = rawjson.String(rawjson.Field(ref, "uri"))
		is := func(r mcp.Resource) bool { return r.Template == q.Template }
		server, s, err = d.findResource(ctx, h, q.Template, is)
	default:
		err = tenon.Errorf(tenon.CodeInvalid, "ref names neither a prompt nor a resource")
	}
	if err != nil {
		return nil, err
	}
	of := promptTool(server, q.Prompt)
	if q.Template != "" {
		of = resourceTool(server, q.Template)
	}
	if reason, denied := d.denies(h, of, nil); denied {
		return nil, tenon.Errorf(tenon.CodeDenied, "'%s' is denied: %s", tenon.Visible(of.Name), reason)
	}
	if ctx, err = d.as(ctx, h, server); err != nil {
		return nil, d.atServer(h, server, err)
	}
	if r := mcp.RequestOf(ctx); r != nil && !r.Modern { // a modern client cannot be asked for a completion (MRTR)
		caller := d.caller(r)
		caller.Ask = d.shownAsk(r)
		ctx = mcp.WithCaller(ctx, caller)
	}
	found, err := s.Complete(ctx, q)
	if err != nil {
		return nil, d.atServer(h, server, err)
	}
	return json.Marshal(map[string]any{"completion": map[string]any{"values": append([]string{}, found.Values...),
		"total": max(found.Total, len(found.Values)), "hasMore": found.More}})
}

// mentionsList returns the name of the list whose change a notification reports. It returns "" for other notifications.
func mentionsList(n servers.Notification) string {
	if n.List != "" {
		return n.List
	}
	list, ok := strings.CutSuffix(strings.TrimPrefix(n.Method, "notifications/"), "/list_changed")
	if !ok {
		return ""
	}
	return list
}

package record

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// The requests for prompts and resources.
const (
	methodPrompts   = "prompts/list"
	methodPrompt    = "prompts/get"
	methodResources = "resources/list" // includes resource templates
	methodRead      = "resources/read"
)

// Offers gives access to the prompts and resources of a server.
type Offers interface {
	Prompts(ctx context.Context) ([]mcp.Prompt, error)
	// Prompt returns the raw result of prompts/get.
	Prompt(ctx context.Context, name string, args map[string]string) (json.RawMessage, error)
	// Resources returns the resources and the resource templates.
	Resources(ctx context.Context) ([]mcp.Resource, error)
	Read(ctx context.Context, uri string) ([]tenon.Content, error)
}

// isList reports whether the request is a request for a list. Lists may be requested any number of times, so they are
// recorded only when they change.
func (r ServerRequest) isList() bool {
	return r.Method == methodList || r.Method == methodPrompts || r.Method == methodResources
}

func isKnown(method string) bool {
	switch method {
	case methodList, methodCall, methodPrompts, methodPrompt, methodResources, methodRead:
		return true
	}
	return false
}

// Offers returns an Offers that forwards requests to o. It records the requests and the answers.
func (r *Recorder) Offers(server string, o Offers) Offers {
	return &recordingOffers{r: r, folder: serverFolder(server), to: o}
}

type recordingOffers struct {
	r      *Recorder
	folder string
	to     Offers
}

func (o *recordingOffers) Prompts(ctx context.Context) ([]mcp.Prompt, error) {
	list, err := o.to.Prompts(ctx)
	raws := make([]json.RawMessage, len(list))
	for i, p := range list {
		raws[i] = rawOr(p.Raw, p)
	}
	o.list(ctx, methodPrompts, raws, err)
	return list, err
}

func (o *recordingOffers) Resources(ctx context.Context) ([]mcp.Resource, error) {
	list, err := o.to.Resources(ctx)
	raws := make([]json.RawMessage, len(list))
	for i, r := range list {
		raws[i] = rawOr(r.Raw, r)
	}
	o.list(ctx, methodResources, raws, err)
	return list, err
}

func rawOr(raw json.RawMessage, v any) json.RawMessage {
	if len(raw) == 0 {
		raw, _ = json.Marshal(v) // texts and numbers always encode
	}
	return raw
}

// list records a list if it differs from the last recorded list. It records nothing if the request was cancelled.
func (o *recordingOffers) list(ctx context.Context, method string, items []json.RawMessage, err error) {
	if ctx.Err() != nil {
		return
	}
	x := &ServerExchange{Request: ServerRequest{Method: method}, Response: &ServerResponse{Items: items}}
	if err != nil {
		x.Response = &ServerResponse{Error: asError(err)}
	}
	now, _ := json.Marshal(x.Response) // raw values were validated on arrival
	if o.r.isNew(o.folder+"\x00"+method, now) {
		o.r.prepare(o.folder)
		o.r.begin(o.folder, x)
	}
}

// isNew stores a list and reports whether it differs from the previous one.
func (r *Recorder) isNew(key string, list []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes.Equal(r.lists[key], list) {
		return false
	}
	if r.lists == nil {
		r.lists = map[string][]byte{}
	}
	r.lists[key] = list
	return true
}

func (o *recordingOffers) Prompt(ctx context.Context, name string, args map[string]string) (json.RawMessage, error) {
	x := &ServerExchange{Request: promptRequest(name, args)}
	o.r.prepare(o.folder)
	path := o.r.begin(o.folder, x)
	raw, err := o.to.Prompt(ctx, name, args)
	x.Response = &ServerResponse{Prompt: raw}
	if err != nil {
		x.Response = &ServerResponse{Error: asError(err)}
	}
	o.r.write(path, x)
	return raw, err
}

func (o *recordingOffers) Read(ctx context.Context, uri string) ([]tenon.Content, error) {
	x := &ServerExchange{Request: readRequest(uri)}
	o.r.prepare(o.folder)
	path := o.r.begin(o.folder, x)
	contents, err := o.to.Read(ctx, uri)
	x.Response = &ServerResponse{Contents: contents}
	if err != nil {
		x.Response = &ServerResponse{Error: asError(err)}
	}
	o.r.write(path, x)
	return contents, err
}

func promptRequest(name string, args map[string]string) ServerRequest {
	r := ServerRequest{Method: methodPrompt, Params: CallParams{Name: name}}
	if len(args) > 0 {
		r.Params.Arguments, _ = json.Marshal(args) // texts always encode
	}
	return r
}

func readRequest(uri string) ServerRequest {
	return ServerRequest{Method: methodRead, Params: CallParams{URI: uri}}
}

// Offers returns an Offers that replays a server's prompts and resources. Its errors are described at [Player.Toolset].
func (p *Player) Offers(server string) Offers {
	return &playingOffers{playingTools{p: p, server: server, folder: serverFolder(server)}}
}

type playingOffers struct{ playingTools }

func (o *playingOffers) Prompts(context.Context) ([]mcp.Prompt, error) {
	return playList[mcp.Prompt](o, methodPrompts, "the prompts")
}

func (o *playingOffers) Resources(context.Context) ([]mcp.Resource, error) {
	return playList[mcp.Resource](o, methodResources, "the resources")
}

// playList returns the list at the current position of the replay; see listed.
func playList[T any](o *playingOffers, method, what string) ([]T, error) {
	tape, err := o.listed(method, what)
	if err != nil {
		return nil, err
	}
	list := make([]T, len(tape.Response.Items))
	for i, raw := range tape.Response.Items {
		if err := json.Unmarshal(raw, &list[i]); err != nil {
			o.p.mu.Lock()
			defer o.p.mu.Unlock()
			return nil, o.p.fault(tenon.Errorf(tenon.CodeConfig, "replay: %s of %s: %w; record it again",
				tape.name, o.p.dir, err))
		}
	}
	return list, nil
}

func (o *playingOffers) Prompt(ctx context.Context, name string, args map[string]string) (json.RawMessage, error) {
	who := fmt.Sprintf("prompt '%s' of server '%s'", name, o.server)
	tape, err := o.play(ctx, promptRequest(name, args), who)
	if err != nil {
		return nil, err
	}
	return tape.Response.Prompt, nil
}

func (o *playingOffers) Read(ctx context.Context, uri string) ([]tenon.Content, error) {
	who := fmt.Sprintf("resource '%s' of server '%s'", uri, o.server)
	tape, err := o.play(ctx, readRequest(uri), who)
	if err != nil {
		return nil, err
	}
	return tape.Response.Contents, nil
}

// play returns the recording of a request, with its answer.
func (o *playingOffers) play(ctx context.Context, r ServerRequest, who string) (*serverTape, error) {
	tape, err := o.takeRequest(r, who)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, tenon.Errorf(tenon.CodeCancelled, "replay: %w", context.Cause(ctx))
	case tape.Response == nil:
		return nil, tenon.Errorf(tenon.CodeConflict, "replay: %s has no answer: the recording ended during the request",
			tape.name)
	case tape.Response.Error != nil:
		return nil, tape.Response.Error
	}
	return tape, nil
}

var (
	_ Offers = (*recordingOffers)(nil)
	_ Offers = (*playingOffers)(nil)
)

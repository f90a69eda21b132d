package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	methodComplete  = "completion/complete"
)

// Offers gives access to the prompts, resources and completions of a server.
type Offers interface {
	Prompts(ctx context.Context) ([]mcp.Prompt, error)
	// Prompt returns the raw result of prompts/get.
	Prompt(ctx context.Context, name string, args map[string]string) (json.RawMessage, error)
	// Resources returns the resources and the resource templates.
	Resources(ctx context.Context) ([]mcp.Resource, error)
	Read(ctx context.Context, uri string) ([]tenon.Content, error)
	// Complete returns values of an argument of a prompt, or of a variable of a template.
	Complete(ctx context.Context, r mcp.CompletionRequest) (mcp.Completion, error)
}

// isList reports whether the request is a request for a list. Lists may be requested any number of times, so they are
// recorded only when they change.
func (r ServerRequest) isList() bool {
	return r.Method == methodList || r.Method == methodPrompts || r.Method == methodResources
}

// isOptional reports whether a replay may make the request any number of times, or never: a list, or a completion,
// which depends on when a person presses a key.
func (r ServerRequest) isOptional() bool { return r.isList() || r.Method == methodComplete }

func isKnown(method string) bool {
	switch method {
	case methodList, methodCall, methodPrompts, methodPrompt, methodResources, methodRead, methodComplete:
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
	x := &ServerExchange{Request: promptRequest(ctx, name, args)}
	o.r.prepare(o.folder)
	path := o.r.begin(o.folder, x)
	during := &traffic{x: x}
	raw, err := o.to.Prompt(during.caller(ctx), name, args)
	answer := &ServerResponse{Prompt: raw}
	if err != nil {
		answer = &ServerResponse{Error: asError(err)}
	}
	during.end(answer, func() { o.r.write(path, x) })
	return raw, err
}

func (o *recordingOffers) Read(ctx context.Context, uri string) ([]tenon.Content, error) {
	x := &ServerExchange{Request: readRequest(ctx, uri)}
	o.r.prepare(o.folder)
	path := o.r.begin(o.folder, x)
	during := &traffic{x: x}
	contents, err := o.to.Read(during.caller(ctx), uri)
	answer := &ServerResponse{Contents: contents}
	if in := (*mcp.InputError)(nil); errors.As(err, &in) {
		answer = &ServerResponse{Wanted: in.Raw}
	} else if err != nil {
		answer = &ServerResponse{Error: asError(err)}
	}
	during.end(answer, func() { o.r.write(path, x) })
	return contents, err
}

// caller returns a context whose client answers the questions of the server as the client of ctx does. The questions
// and answers are recorded.
func (t *traffic) caller(ctx context.Context) context.Context {
	c := mcp.CallerOf(ctx)
	if c == nil || c.Ask == nil {
		return ctx
	}
	own := *c
	own.Ask = t.asks(c.Ask)
	return mcp.WithCaller(ctx, &own)
}

// Complete records nothing if the request was cancelled, as clients do while a person types.
func (o *recordingOffers) Complete(ctx context.Context, r mcp.CompletionRequest) (mcp.Completion, error) {
	found, err := o.to.Complete(ctx, r)
	if ctx.Err() != nil {
		return found, err
	}
	x := &ServerExchange{Request: completionRequest(r), Response: &ServerResponse{Completion: &found}}
	if err != nil {
		x.Response = &ServerResponse{Error: asError(err)}
	}
	o.r.prepare(o.folder)
	o.r.begin(o.folder, x)
	return found, err
}

// promptRequest returns the request for a prompt, with the answers to the questions of an earlier result.
func promptRequest(ctx context.Context, name string, args map[string]string) ServerRequest {
	r := ServerRequest{Method: methodPrompt, Params: CallParams{Name: name}}
	if len(args) > 0 {
		r.Params.Arguments, _ = json.Marshal(args) // texts always encode
	}
	return r.withInput(ctx)
}

// withInput adds what the client of a request answered to an earlier result.
func (r ServerRequest) withInput(ctx context.Context) ServerRequest {
	if c := mcp.CallerOf(ctx); c != nil && c.Input != nil {
		r.Params.Responses, r.Params.State = c.Input.Responses, c.Input.State
	}
	return r
}

// completionRequest returns a request for values. The name or the URI is the one of ref.
func completionRequest(r mcp.CompletionRequest) ServerRequest {
	return ServerRequest{Method: methodComplete, Params: CallParams{Name: r.Prompt, URI: r.Template,
		Argument: &Argument{Name: r.Argument, Value: r.Value, Others: r.Others}}}
}

// readRequest returns the request for a resource, with the answers to the questions of an earlier result.
func readRequest(ctx context.Context, uri string) ServerRequest {
	return ServerRequest{Method: methodRead, Params: CallParams{URI: uri}}.withInput(ctx)
}

// Offers returns an Offers that replays a server's prompts and resources. Its errors are described at [Player.Toolset].
func (p *Player) Offers(server string) Offers {
	return &playingOffers{playingTools{p: p, server: server, folder: serverFolder(server)}}
}

type playingOffers struct{ playingTools }

// hasOffers reports whether the cassette contains any request for prompts or resources.
func (p *Player) hasOffers() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.servers {
		for _, tape := range s.tapes {
			switch tape.Request.Method {
			case methodPrompts, methodPrompt, methodResources, methodRead:
				return true
			}
		}
	}
	return false
}

func (o *playingOffers) Prompts(context.Context) ([]mcp.Prompt, error) {
	return playList(o, methodPrompts, "the prompts", func(p *mcp.Prompt, raw json.RawMessage) { p.Raw = raw })
}

func (o *playingOffers) Resources(context.Context) ([]mcp.Resource, error) {
	return playList(o, methodResources, "the resources", func(r *mcp.Resource, raw json.RawMessage) { r.Raw = raw })
}

// playList returns the list at the current position of the replay; see listed. keep sets the raw form of an item.
func playList[T any](o *playingOffers, method, what string, keep func(*T, json.RawMessage)) ([]T, error) {
	if !o.p.hasOffers() { // recorded when the gateway had only tools
		return []T{}, nil
	}
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
		keep(&list[i], raw)
	}
	return list, nil
}

func (o *playingOffers) Prompt(ctx context.Context, name string, args map[string]string) (json.RawMessage, error) {
	who := fmt.Sprintf("prompt '%s' of server '%s'", name, o.server)
	tape, err := o.takeRequest(promptRequest(ctx, name, args), who)
	if err != nil {
		return nil, err
	}
	if err := o.asked(ctx, tape); err != nil {
		return nil, err
	}
	return tape.Response.Prompt, nil
}

// asked asks the client the recorded questions of the server, and returns an error if the recording has no result.
func (o *playingOffers) asked(ctx context.Context, tape *serverTape) error {
	var asks tenon.Call
	if c := mcp.CallerOf(ctx); c != nil {
		asks.Ask = c.Ask
	}
	for _, a := range tape.Asked {
		if err := o.ask(ctx, asks, tape, a); err != nil {
			return err
		}
	}
	return answered(ctx, tape)
}

// Complete answers with the recordings of equal completions in their order, and then with the last one again. Without
// any, it answers that there are no values.
func (o *playingOffers) Complete(ctx context.Context, r mcp.CompletionRequest) (mcp.Completion, error) {
	none := mcp.Completion{Values: []string{}}
	raw, err := json.Marshal(completionRequest(r))
	if err != nil {
		return none, tenon.Errorf(tenon.CodeInvalid, "replay: %w", err)
	}
	var tape *serverTape
	o.p.retried(func() bool {
		tape = o.completion(plain(maskJSON(o.p.redactor, raw)))
		return tape != nil
	})
	if tape == nil || tape.Response == nil {
		return none, nil
	}
	err = answered(ctx, tape)
	if err != nil || tape.Response.Completion == nil {
		return none, err
	}
	return *tape.Response.Completion, nil
}

// completion returns the first unused recording of an equal completion, otherwise the last one, or nil.
func (o *playingOffers) completion(got any) (found *serverTape) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	s := o.p.servers[o.folder]
	if s == nil {
		return nil
	}
	for _, tape := range s.tapes {
		if tape.Request.Method != methodComplete {
			continue
		}
		if _, _, same := difference("", tape.norm, got); !same {
			continue
		}
		found = tape
		if !tape.used {
			tape.used = true
			break
		}
	}
	return found
}

func (o *playingOffers) Read(ctx context.Context, uri string) ([]tenon.Content, error) {
	who := fmt.Sprintf("resource '%s' of server '%s'", uri, o.server)
	tape, err := o.takeRequest(readRequest(ctx, uri), who)
	if err != nil {
		return nil, err
	}
	if err := o.asked(ctx, tape); err != nil {
		return nil, err
	}
	if wanted := tape.Response.Wanted; len(wanted) > 0 {
		return nil, &mcp.InputError{Method: methodRead, Raw: wanted}
	}
	return tape.Response.Contents, nil
}

// answered returns an error if the recording of a request has no result.
func answered(ctx context.Context, tape *serverTape) error {
	switch {
	case ctx.Err() != nil:
		return tenon.Errorf(tenon.CodeCancelled, "replay: %w", context.Cause(ctx))
	case tape.Response == nil:
		return tenon.Errorf(tenon.CodeConflict, "replay: %s has no answer: the recording ended during the request",
			tape.name)
	case tape.Response.Error != nil:
		return tape.Response.Error
	}
	return nil
}

var (
	_ Offers = (*recordingOffers)(nil)
	_ Offers = (*playingOffers)(nil)
)

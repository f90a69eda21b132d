package httpapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
)

// usable checks that there is an enabled server with a name.
func (c *call) usable(name string) error {
	if _, err := c.status(name); err != nil {
		return err
	}
	if _, ok := c.h.Service().Connections()[name]; !ok {
		return tenon.Errorf(tenon.CodeInvalid, "server '%s' is not enabled", name)
	}
	return nil
}

// offersOf returns the prompts and resources of an enabled server.
func (c *call) offersOf(name string) (host.ServerOffers, error) {
	if err := c.usable(name); err != nil {
		return nil, err
	}
	return host.OffersOf(c.h, name)
}

// offers is a list of prompts or resources, and the servers that could not list theirs.
type offers[T any] struct {
	Items    []T             `json:"items"`
	Listed   *time.Time      `json:"listed,omitempty"`   // when the oldest of the stored lists was made
	Unlisted []string        `json:"unlisted,omitempty"` // servers that were not asked, and of which no list is known
	Problems []ServerProblem `json:"problems,omitempty"`
}

// promptsOf lists the prompts of a server, or of all enabled servers if name is empty. from is the query parameter of
// this name.
func (c *call) promptsOf(name, from string) (offers[host.ServerPrompt], error) {
	all := c.h.Servers().Context()
	return listOffers(c, name, from, all.Prompts, all.Known().Prompts, all.Known().StoredPrompts)
}

// resourcesOf lists resources and templates in the way of promptsOf.
func (c *call) resourcesOf(name, from string) (offers[host.ServerResource], error) {
	all := c.h.Servers().Context()
	return listOffers(c, name, from, all.Resources, all.Known().Resources, all.Known().StoredResources)
}

// The values of the query parameter from.
const (
	fromServers = "servers" // the default
	fromKnown   = "known"
	fromStored  = "stored"
)

// listOffers lists what a named server offers, or all enabled servers. If a server is named, its error is returned.
// Otherwise the error of a server becomes a problem in the result.
func listOffers[T any](c *call, name, from string,
	ask func(context.Context, ...string) ([]T, []host.Problem, error),
	known, stored func(context.Context, ...string) (host.Known[T], error)) (out offers[T], err error) {
	var names []string
	if name != "" {
		if err := c.usable(name); err != nil {
			return out, err
		}
		names = []string{name}
	}
	var k host.Known[T]
	switch from {
	case "", fromServers:
		k.Items, k.Problems, err = ask(c.ctx(), names...)
	case fromKnown:
		k, err = known(c.ctx(), names...)
	case fromStored:
		k, err = stored(c.ctx(), names...)
	default:
		err = tenon.Errorf(tenon.CodeInvalid, "from=%s is unknown: write servers, known or stored",
			tenon.Visible(from))
	}
	if err == nil && name != "" && len(k.Problems) > 0 {
		err = k.Problems[0].Err
	}
	if err != nil {
		return out, err
	}
	out = offers[T]{Items: k.Items, Unlisted: k.Unlisted, Problems: c.problemsOf(k.Problems)}
	if out.Items == nil {
		out.Items = []T{}
	}
	if !k.Listed.IsZero() {
		at := k.Listed.UTC()
		out.Listed = &at
	}
	return out, nil
}

func (c *call) getPrompt(r PromptRequest) (json.RawMessage, error) {
	s, err := c.offersOf(r.Server)
	if err != nil {
		return nil, err
	}
	if r.Name == "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "name is missing: the prompt of server '%s'", r.Server)
	}
	ctx, err := c.asCaller(r.Server)
	if err != nil {
		return nil, err
	}
	return s.Prompt(ctx, r.Name, r.Arguments)
}

// completion returns values of an argument of a prompt or of a variable of a template.
func (c *call) completion(r CompletionRequest) (found mcp.Completion, err error) {
	s, err := c.offersOf(r.Server)
	switch {
	case err != nil:
		return found, err
	case (r.Prompt == "") == (r.Template == ""):
		return found, tenon.Errorf(tenon.CodeInvalid, "name either the prompt or the template of server '%s'", r.Server)
	case r.Argument == "":
		return found, tenon.Errorf(tenon.CodeInvalid, "argument is missing: its name in the prompt or template")
	}
	ctx, err := c.asCaller(r.Server)
	if err != nil {
		return found, err
	}
	return s.Complete(ctx, mcp.CompletionRequest{Prompt: r.Prompt, Template: r.Template, Argument: r.Argument,
		Value: r.Value, Others: r.Arguments})
}

func (c *call) readResource(r ReadRequest) ([]tenon.Content, error) {
	s, err := c.offersOf(r.Server)
	if err != nil {
		return nil, err
	}
	if r.URI == "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "uri is missing: the resource of server '%s' to read", r.Server)
	}
	ctx, err := c.asCaller(r.Server)
	if err != nil {
		return nil, err
	}
	return s.Read(ctx, r.URI)
}

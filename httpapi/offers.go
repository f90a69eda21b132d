package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
)

// in returns the server with the name, or all enabled servers if name is empty.
func (c *call) in(name string) ([]*servers.Server, error) {
	if name != "" {
		s, err := c.usable(name)
		return []*servers.Server{s}, err
	}
	all := c.h.Service().Connections()
	var list []*servers.Server
	for _, n := range slices.Sorted(maps.Keys(all)) {
		if all[n].Status().State != servers.StateDisabled {
			list = append(list, all[n])
		}
	}
	return list, nil
}

// usable returns an enabled server by its name.
func (c *call) usable(name string) (*servers.Server, error) {
	if _, err := c.status(name); err != nil {
		return nil, err
	}
	s, ok := c.h.Service().Connections()[name]
	if !ok {
		return nil, tenon.Errorf(tenon.CodeInvalid, "server '%s' is not enabled", name)
	}
	return s, nil
}

// offersOf returns the prompts and resources of an enabled server.
func (c *call) offersOf(name string) (host.ServerOffers, error) {
	if _, err := c.usable(name); err != nil {
		return nil, err
	}
	return host.OffersOf(c.h, name)
}

// askParallel is the largest number of concurrent requests to servers.
const askParallel = 8

// asked calls ask for a named server, or for all enabled servers in parallel. It joins the lists in the order of the
// servers. If a server is named, its error is returned. Otherwise the error of a server becomes a problem in the
// result.
func asked[T any](c *call, name string, ask func(server string, from host.ServerOffers) ([]T, error)) (offers[T],
	error) {
	out := offers[T]{Items: []T{}}
	list, err := c.in(name)
	if err != nil {
		return out, err
	}
	got := make([][]T, len(list))
	errs := make([]error, len(list))
	slots := make(chan struct{}, askParallel)
	var wg sync.WaitGroup
	for i, s := range list {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var from host.ServerOffers
			if from, errs[i] = host.OffersOf(c.h, s.Status().Name); errs[i] == nil {
				got[i], errs[i] = ask(s.Status().Name, from)
			}
		})
	}
	wg.Wait()
	for i, s := range list {
		if errs[i] != nil && name != "" {
			return out, errs[i]
		}
		if errs[i] != nil {
			out.Problems = append(out.Problems, ServerProblem{s.Status().Name, tenon.ErrorCode(errs[i]),
				c.advice(errs[i].Error())})
		}
		out.Items = append(out.Items, got[i]...)
	}
	return out, nil
}

func (c *call) promptsOf(name string) (offers[host.ServerPrompt], error) {
	return asked(c, name, func(server string, from host.ServerOffers) ([]host.ServerPrompt, error) {
		list, err := from.Prompts(c.ctx())
		out := make([]host.ServerPrompt, len(list))
		for i, p := range list {
			out[i] = host.ServerPrompt{Server: server, Prompt: p}
		}
		return out, err
	})
}

func (c *call) resourcesOf(name string) (offers[host.ServerResource], error) {
	return asked(c, name, func(server string, from host.ServerOffers) ([]host.ServerResource, error) {
		list, err := from.Resources(c.ctx())
		out := make([]host.ServerResource, len(list))
		for i, r := range list {
			out[i] = host.ServerResource{Server: server, Resource: r}
		}
		return out, err
	})
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

package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
)

// in returns the servers to ask: the one of a name, or all that are enabled.
func (c *call) in(name string) ([]*servers.Server, error) {
	if name != "" {
		s, err := c.usable(name)
		return []*servers.Server{s}, err
	}
	all := c.h.Servers()
	var list []*servers.Server
	for _, n := range slices.Sorted(maps.Keys(all)) {
		if all[n].Status().State != servers.StateDisabled {
			list = append(list, all[n])
		}
	}
	return list, nil
}

// usable finds a server that can be asked.
func (c *call) usable(name string) (*servers.Server, error) {
	if _, err := c.status(name); err != nil {
		return nil, err
	}
	s, ok := c.h.Servers()[name]
	if !ok {
		return nil, tenon.Errorf(tenon.CodeInvalid, "server '%s' is not enabled", name)
	}
	return s, nil
}

// askParallel bounds how many servers are asked at a time.
const askParallel = 8

// asked asks servers at a time and keeps their order. One that cannot be reached is a
// problem, unless it is the only one.
func asked[T any](c *call, name string, ask func(*servers.Server) ([]T, error)) (offers[T], error) {
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
			got[i], errs[i] = ask(s)
		})
	}
	wg.Wait()
	for i, s := range list {
		if errs[i] != nil && name != "" {
			return out, errs[i]
		}
		if errs[i] != nil {
			out.Problems = append(out.Problems, ServerProblem{s.Status().Name, tenon.ErrorCode(errs[i]), errs[i].Error()})
		}
		out.Items = append(out.Items, got[i]...)
	}
	return out, nil
}

func (c *call) promptsOf(name string) (offers[ServerPrompt], error) {
	return asked(c, name, func(s *servers.Server) ([]ServerPrompt, error) {
		list, err := s.Prompts(c.ctx())
		out := make([]ServerPrompt, len(list))
		for i, p := range list {
			out[i] = ServerPrompt{s.Status().Name, p}
		}
		return out, err
	})
}

func (c *call) resourcesOf(name string) (offers[ServerResource], error) {
	return asked(c, name, func(s *servers.Server) ([]ServerResource, error) {
		list, err := s.Resources(c.ctx())
		out := make([]ServerResource, len(list))
		for i, r := range list {
			out[i] = ServerResource{s.Status().Name, r}
		}
		return out, err
	})
}

func (c *call) getPrompt(r PromptRequest) (json.RawMessage, error) {
	s, err := c.usable(r.Server)
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

func (c *call) readResource(r ReadRequest) ([]tenon.Content, error) {
	s, err := c.usable(r.Server)
	if err != nil {
		return nil, err
	}
	if r.URI == "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "uri is missing: what is read of server '%s'", r.Server)
	}
	ctx, err := c.asCaller(r.Server)
	if err != nil {
		return nil, err
	}
	return s.Read(ctx, r.URI)
}

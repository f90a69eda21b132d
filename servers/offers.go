package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// offering is what a connection has beside tools.
type offering interface {
	Prompts(ctx context.Context) ([]mcp.Prompt, error)
	Resources(ctx context.Context) ([]mcp.Resource, error)
	Prompt(ctx context.Context, name string, args map[string]string) (json.RawMessage, error)
	Read(ctx context.Context, uri string) ([]tenon.Content, error)
}

// Prompts returns the server's prompts, connecting if need be; none where the
// configuration says load_prompts: false, and none of a server that declares
// none. They are asked for once for each connection, and again after the server
// said that they changed.
func (s *Server) Prompts(ctx context.Context) ([]mcp.Prompt, error) {
	if !s.cfg.LoadsPrompts() {
		return nil, nil
	}
	return offered(ctx, s, "prompts", &s.prompts, promptMember, func(c *link) ([]mcp.Prompt, error) { return c.Prompts(ctx) })
}

// Resources returns the server's resources and templates as [Server.Prompts]
// does prompts. Unlike load_resources, which says whether they are listed at each
// connect, this asks in any case.
func (s *Server) Resources(ctx context.Context) ([]mcp.Resource, error) {
	return offered(ctx, s, "resources", &s.resources, resourceMember, func(c *link) ([]mcp.Resource, error) { return c.Resources(ctx) })
}

// Prompt returns the raw result of prompts/get.
func (s *Server) Prompt(ctx context.Context, name string, args map[string]string) (raw json.RawMessage, err error) {
	if own, done, err := s.forCaller(ctx); err != nil || own != nil {
		if err != nil {
			return nil, err
		}
		defer done()
		if raw, err = own.Prompt(ctx, name, args); err != nil {
			return nil, own.veiledError(err)
		}
		return veiledJSON(own, raw, fmt.Sprintf("prompt '%s' of server '%s'", clean(name), s.name))
	}
	what := fmt.Sprintf("prompt '%s' of server '%s'", clean(name), s.name)
	err = s.use(ctx, what, func(c *link) error {
		raw, err = c.Prompt(ctx, name, args)
		return s.failed(c, what, err, ofPrompts)
	})
	return raw, err
}

// Read returns the contents of a resource.
func (s *Server) Read(ctx context.Context, uri string) (contents []tenon.Content, err error) {
	if own, done, err := s.forCaller(ctx); err != nil || own != nil {
		if err != nil {
			return nil, err
		}
		defer done()
		if contents, err = own.Read(ctx, uri); err != nil {
			return nil, own.veiledError(err)
		}
		return veiledJSON(own, contents, fmt.Sprintf("resource '%s' of server '%s'", clean(uri), s.name))
	}
	what := fmt.Sprintf("resource '%s' of server '%s'", clean(uri), s.name)
	err = s.use(ctx, what, func(c *link) error {
		contents, err = c.Read(ctx, uri)
		return s.failed(c, what, err, ofResources)
	})
	return contents, err
}

// failed explains an error of a request for something, and looks whether the connection
// is lost; nil for none. Codes are those that mean something else than a failure.
func (s *Server) failed(c *link, what string, err error, codes map[int]tenon.Code) error {
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lostBy(c, err)
	err = s.explainAbout(what, "", err)
	var rpc *jsonrpc.Error
	var e *tenon.Error
	if errors.As(err, &rpc) && errors.As(err, &e) && codes[rpc.Code] != "" {
		e.Code = codes[rpc.Code]
	}
	return err
}

// What servers say where they have no such thing, or nothing of the kind: method not
// found, resource not found (before 2026-07-28, which has invalid params in its place). To
// a prompt that is asked for, invalid params says as well that an argument is missing.
var (
	ofPrompts   = map[int]tenon.Code{-32601: tenon.CodeNotFound, -32602: tenon.CodeInvalid}
	ofResources = map[int]tenon.Code{-32601: tenon.CodeNotFound, -32602: tenon.CodeNotFound, -32002: tenon.CodeNotFound}
)

// kept is a list that was asked for on a connection, until it changes.
type kept[T any] struct {
	of      *link // nil: not known, or not any more
	items   []T
	told    bool // items were asked for at some time, by this process
	changes int  // how often the server said that the list changed
}

// offered returns a list of a server, asking for it unless it is known.
func offered[T any](ctx context.Context, s *Server, what string, k *kept[T], member func(T) listMember, ask func(c *link) ([]T, error)) (items []T, err error) {
	err = s.use(ctx, fmt.Sprintf("the list of %s of server '%s'", what, s.name), func(c *link) error {
		s.mu.Lock()
		known, changes := k.of == c, k.changes
		items = k.items
		s.mu.Unlock()
		if known {
			return nil
		}
		var err error
		if items, err = ask(c); err != nil {
			return s.failed(c, fmt.Sprintf("the list of %s of server '%s'", what, s.name), err, nil)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conn == c && k.changes == changes {
			if k.told {
				s.tellChanges(what, membersOf(k.items, member), membersOf(items, member))
			}
			k.of, k.items, k.told = c, items, true
		}
		return nil
	})
	return items, err
}

// stale has a list asked for again; the caller holds the lock.
func (k *kept[T]) stale() { k.of, k.changes = nil, k.changes+1 }

// changed forgets the list that the server says has changed.
func (s *Server) changed(list string) {
	switch list {
	case "tools":
		s.refresh()
		return
	case "prompts", "resources":
	default:
		return
	}
	if list == "prompts" && s.cfg.PromptsAsTools {
		s.refresh()
	}
	s.mu.Lock()
	if list == "prompts" {
		s.prompts.stale()
	} else {
		s.resources.stale()
	}
	s.mu.Unlock()
}

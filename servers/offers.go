package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// offering is the part of a connection that concerns prompts and resources.
type offering interface {
	Prompts(ctx context.Context) ([]mcp.Prompt, error)
	Resources(ctx context.Context) ([]mcp.Resource, error)
	Prompt(ctx context.Context, name string, args map[string]string) (json.RawMessage, error)
	Read(ctx context.Context, uri string) ([]tenon.Content, error)
	Complete(ctx context.Context, r mcp.CompletionRequest) (mcp.Completion, error)
	Watch(ctx context.Context, uri string, begun func(), updated func(uri string)) error
	Fresh(method string) time.Duration
	Hint(method string) mcp.Hint
}

// staleFor is how long the tools are used after their list expired and the server could not be asked.
const staleFor = 30 * time.Second

// leastFresh is the minimum validity of a list, so that a server's hint cannot force a request at every use.
const leastFresh = time.Second

// expiry returns the time when a list that was just received expires: the zero time if the server gave no hint.
func expiry(c *link, methods ...string) (t time.Time) {
	for _, m := range methods {
		if ttl := c.Fresh(m); ttl > 0 {
			if end := time.Now().Add(max(ttl, leastFresh)); t.IsZero() || end.Before(t) {
				t = end
			}
		}
	}
	return t
}

// isStale reports whether a list has expired.
func isStale(until time.Time) bool { return !until.IsZero() && !time.Now().Before(until) }

// Prompts returns the server's prompts, connecting if necessary. It returns none if load_prompts is false, or if the
// server declares none. The list is requested once for each connection, and again after the server reported a change.
func (s *Server) Prompts(ctx context.Context) ([]mcp.Prompt, error) {
	if !s.cfg.LoadsPrompts() {
		return nil, nil
	}
	return offered(ctx, s, "prompts", &s.prompts, promptMember,
		func(c *link) ([]mcp.Prompt, error) {
			items, err := c.Prompts(ctx)
			return maskOffers(s, "prompts", items, s.maskPrompt), err
		})
}

// Resources returns the server's resources and templates, in the way of [Server.Prompts]. It does not depend on
// load_resources, which only says whether they are listed at each connect.
func (s *Server) Resources(ctx context.Context) ([]mcp.Resource, error) {
	return offered(ctx, s, "resources", &s.resources, resourceMember,
		func(c *link) ([]mcp.Resource, error) {
			items, err := c.Resources(ctx)
			return maskOffers(s, "resources", items, s.maskResource), err
		})
}

// Prompt returns the raw result of prompts/get.
func (s *Server) Prompt(ctx context.Context, name string, args map[string]string) (raw json.RawMessage, err error) {
	if own, done, err := s.forCaller(ctx); err != nil || own != nil {
		if err != nil {
			return nil, err
		}
		defer done()
		if raw, err = own.Prompt(own.veiledCaller(ctx), name, args); err != nil {
			return nil, own.veiledError(err)
		}
		return veiledJSON(own, raw, fmt.Sprintf("prompt '%s' of server '%s'", clean(name), s.name))
	}
	what := fmt.Sprintf("prompt '%s' of server '%s'", clean(name), s.name)
	err = s.use(ctx, what, func(c *link) error {
		raw, err = c.Prompt(ctx, name, args)
		return s.failed(c, what, err, ofPrompts)
	})
	if err != nil {
		return nil, s.maskError(err)
	}
	return maskAnswer(s, raw, what)
}

// Read returns the contents of a resource. If a client is behind the request and the server wants input first, the
// error is an [*mcp.InputError].
func (s *Server) Read(ctx context.Context, uri string) (contents []tenon.Content, err error) {
	if own, done, err := s.forCaller(ctx); err != nil || own != nil {
		if err != nil {
			return nil, err
		}
		defer done()
		if contents, err = own.Read(own.veiledCaller(ctx), uri); err != nil {
			return nil, own.veiledError(err)
		}
		return veiledJSON(own, contents, fmt.Sprintf("resource '%s' of server '%s'", clean(uri), s.name))
	}
	what := fmt.Sprintf("resource '%s' of server '%s'", clean(uri), s.name)
	err = s.use(ctx, what, func(c *link) error {
		contents, err = c.Read(ctx, uri)
		return s.failed(c, what, err, ofResources)
	})
	if err != nil {
		return nil, s.maskError(err)
	}
	return maskAnswer(s, contents, what)
}

// CompletionRequest asks for values of an argument; see [mcp.CompletionRequest].
type CompletionRequest = mcp.CompletionRequest

// Complete returns values of an argument of a prompt or of a variable of a resource template.
func (s *Server) Complete(ctx context.Context, r mcp.CompletionRequest) (found mcp.Completion, err error) {
	what := fmt.Sprintf("the completion of '%s' of server '%s'", clean(r.Argument), s.name)
	if own, done, err := s.forCaller(ctx); err != nil || own != nil {
		if err != nil {
			return mcp.Completion{}, err
		}
		defer done()
		if found, err = own.Complete(own.veiledCaller(ctx), r); err != nil {
			return mcp.Completion{}, own.veiledError(err)
		}
		return veiledJSON(own, found, what)
	}
	err = s.use(ctx, what, func(c *link) error {
		found, err = c.Complete(ctx, r)
		return s.failed(c, what, err, ofPrompts)
	})
	found.Values = s.maskedAll(found.Values)
	return found, s.maskError(err)
}

// failed explains an error of a request, and checks whether the connection is lost. It returns nil for a nil error.
// codes maps the codes that do not mean a failure.
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

// The codes by which servers answer that they do not have the requested object, or no objects of the kind: method not
// found, resource not found (replaced by invalid params in 2026-07-28). For a prompt, invalid params may also mean that
// an argument is missing.
var (
	ofPrompts   = map[int]tenon.Code{-32601: tenon.CodeNotFound, -32602: tenon.CodeInvalid}
	ofResources = map[int]tenon.Code{-32601: tenon.CodeNotFound, -32602: tenon.CodeNotFound, -32002: tenon.CodeNotFound}
)

// listMethods are the methods whose results form a list.
var listMethods = map[string][]string{
	"prompts":   {"prompts/list"},
	"resources": {"resources/list", "resources/templates/list"},
}

// kept is a list that was requested on a connection. It is valid until the server reports a change.
type kept[T any] struct {
	of      *link // nil: not requested yet, or outdated
	items   []T
	told    bool      // this process has requested items before
	at      time.Time // when it did
	until   time.Time // end of the validity that the server announced; zero: until it changes
	changes int       // number of changes that the server reported
}

// offered returns a list of a server. It requests the list unless a valid one is kept.
func offered[T any](ctx context.Context, s *Server, what string, k *kept[T], member func(T) listMember,
	ask func(c *link) ([]T, error)) (items []T, err error) {
	err = s.use(ctx, fmt.Sprintf("the list of %s of server '%s'", what, s.name), func(c *link) error {
		s.mu.Lock()
		known, changes := k.of == c && !isStale(k.until), k.changes
		items = k.items
		s.mu.Unlock()
		if known {
			return nil
		}
		var err error
		if items, err = ask(c); err != nil {
			return broken(s.failed(c, fmt.Sprintf("the list of %s of server '%s'", what, s.name), err, nil))
		}
		s.mu.Lock()
		current := s.conn == c && k.changes == changes
		if current {
			if k.told {
				s.tellChanges(what, membersOf(k.items, member), membersOf(items, member))
			}
			k.of, k.items, k.told, k.until = c, items, true, expiry(c, listMethods[what]...)
			k.at = time.Now()
		}
		s.mu.Unlock()
		if current || s.cfg.Lifecycle == LifecyclePerCall {
			s.keepOffers(what, membersOf(items, member))
		}
		return nil
	})
	return items, err
}

// stale marks the list as outdated, so that the next use requests it again. The caller holds the lock.
func (k *kept[T]) stale() { k.of, k.changes = nil, k.changes+1 }

// changed marks a list as outdated after the server reported that it changed.
func (s *Server) changed(list string) {
	if slices.Contains([]string{"tools", "prompts", "resources"}, list) {
		s.notify(Notification{Method: "notifications/" + list + "/list_changed"})
	}
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

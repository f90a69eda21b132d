package mcp

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// listen keeps a subscription open until the client ends it (2026-07-28).
func (c *serverConn) listen(ctx context.Context, r *jsonrpc.Request) ([]byte, error) {
	filter := rawjson.Field(r.Params, "notifications")
	uris, stop := c.watchAll(ctx, filter)
	defer stop()
	agreed := c.s.agreed(filter, uris)
	c.mu.Lock()
	c.subs[string(r.ID)] = agreed
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.subs, string(r.ID))
	}()
	c.notify("notifications/subscriptions/acknowledged",
		append(member(subscription(r.ID), "notifications", agreed), '}'))
	<-ctx.Done()
	return append(append([]byte(`{"resultType":"complete",`), subscription(r.ID)[1:]...), '}'), nil
}

// agreed lists the requested subscriptions that the server supports.
func (s *Server) agreed(filter []byte, uris []string) []byte {
	b := []byte{'{'}
	for list, has := range s.lists() {
		if key := list + "ListChanged"; has && string(rawjson.Field(filter, key)) == "true" {
			b = member(b, key, []byte("true"))
		}
	}
	if len(uris) > 0 {
		list := []byte{'['}
		for i, uri := range uris {
			if i > 0 {
				list = append(list, ',')
			}
			list = rawjson.AppendString(list, uri)
		}
		b = member(b, "resourceSubscriptions", append(list, ']'))
	}
	if ids := rawjson.Field(filter, "taskIds"); len(ids) > 0 && ids[0] == '[' &&
		slices.Contains(s.cfg.Extensions, ExtensionTasks) && !s.cfg.QuietTasks {
		b = member(b, "taskIds", ids)
	}
	return append(b, '}')
}

// lists reports which lists the server has. It announces their changes.
func (s *Server) lists() map[string]bool {
	return map[string]bool{"tools": true, "prompts": s.cfg.Offers != nil, "resources": len(s.cfg.Resources) > 0 ||
		s.cfg.Offers != nil}
}

// subscription begins the params of a notification that belongs to a subscription.
func subscription(id []byte) []byte {
	return member([]byte{'{'}, "_meta", append(member([]byte{'{'}, metaSubscription, id), '}'))
}

// ListChanged notifies subscribers that a list ("tools", "prompts", "resources") has changed.
// [Server.SetTools] does so for the tools.
func (s *Server) ListChanged(list string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(list)
}

// tell notifies every connection of a changed list. The caller holds the lock.
func (s *Server) tell(list string) {
	for c := range s.conns {
		go c.changed(list) // a slow client must not delay the others
	}
}

// TaskChanged notifies the subscribers of a task (extension Tasks). task is the JSON object that tasks/get would
// return.
func (s *Server) TaskChanged(id string, task json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		go c.taskChanged(id, task)
	}
}

// changed notifies the client of a changed list, in the form of the connection's era.
func (c *serverConn) changed(list string) {
	c.mu.Lock()
	legacyEra := c.version != ""
	c.mu.Unlock()
	method := "notifications/" + list + "/list_changed"
	if legacyEra {
		c.notify(method, nil)
	}
	for _, id := range c.listeners(func(filter []byte) bool {
		return rawjson.Field(filter,
			list+"ListChanged") != nil
	}) {
		c.notify(method, append(subscription([]byte(id)), '}'))
	}
}

func (c *serverConn) taskChanged(id string, task json.RawMessage) {
	for _, sub := range c.listeners(func(filter []byte) bool {
		var ids []string
		return json.Unmarshal(rawjson.Field(filter, "taskIds"), &ids) == nil && slices.Contains(ids, id)
	}) {
		params := subscription([]byte(sub))
		for k, v := range rawjson.Members(task) {
			params = member(params, string(k), v)
		}
		c.notify("notifications/tasks", append(params, '}'))
	}
}

// listeners returns the ids of the subscriptions for whose filter is returns true.
func (c *serverConn) listeners(is func(filter []byte) bool) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, filter := range c.subs {
		if is(filter) {
			ids = append(ids, id)
		}
	}
	return ids
}

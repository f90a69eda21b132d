package mcp

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// maxTasksWatched is the maximum number of tasks of one subscription.
const maxTasksWatched = 64

// listen keeps a subscription open until the client ends it (2026-07-28).
func (c *serverConn) listen(ctx context.Context, r *jsonrpc.Request) ([]byte, error) {
	filter := rawjson.Field(r.Params, "notifications")
	acknowledged := make(chan struct{})
	tasks, stopTasks, err := c.watchTasks(ctx, r, filter, acknowledged)
	if err != nil {
		return nil, err
	}
	defer stopTasks()
	uris, stop := c.watchAll(ctx, filter)
	defer stop()
	agreed := c.s.agreed(filter, uris, tasks)
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
	close(acknowledged)
	<-ctx.Done()
	return append(append([]byte(`{"resultType":"complete",`), subscription(r.ID)[1:]...), '}'), nil
}

// WatchTaskFunc begins to watch a task for a client. changed announces a change: task is the object that tasks/get
// would return. stop is called once, when the client has left; no call of changed follows. An error refuses the task.
type WatchTaskFunc func(ctx context.Context, id string, changed func(task json.RawMessage)) (stop func(), err error)

// watchTasks begins to watch the tasks of a filter (extension Tasks), and returns the ones that the server accepts.
// Their changes are announced after acknowledged is closed.
func (c *serverConn) watchTasks(ctx context.Context, r *jsonrpc.Request, filter []byte, acknowledged <-chan struct{}) (
	tasks []string, stop func(), err error) {
	var want []string
	if !slices.Contains(c.s.cfg.Extensions, ExtensionTasks) ||
		json.Unmarshal(rawjson.Field(filter, "taskIds"), &want) != nil || len(want) == 0 {
		return nil, func() {}, nil
	}
	can := rawjson.Field(rawjson.Field(r.Params, "_meta"), metaCapabilities)
	if !rawjson.IsObject(rawjson.Field(rawjson.Field(can, "extensions"), ExtensionTasks)) {
		e := jsonrpc.Errorf(codeMissingCapability, "Missing required client capability")
		e.Data = json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + ExtensionTasks + `":{}}}}`)
		return nil, nil, e
	}
	changed := func(task json.RawMessage) {
		select {
		case <-acknowledged:
			c.tellTask(r.ID, task)
		case <-ctx.Done():
		}
	}
	var stops []func()
	for _, id := range want[:min(len(want), maxTasksWatched)] {
		if slices.Contains(tasks, id) {
			continue
		}
		if c.s.cfg.WatchTask != nil {
			stop, err := c.s.cfg.WatchTask(ctx, id, changed)
			if err != nil {
				continue
			}
			stops = append(stops, stop)
		}
		tasks = append(tasks, id)
	}
	return tasks, func() {
		for _, stop := range stops {
			stop()
		}
	}, nil
}

// agreed lists the requested subscriptions that the server supports.
func (s *Server) agreed(filter []byte, uris, tasks []string) []byte {
	b := []byte{'{'}
	for list, has := range s.lists() {
		if key := list + "ListChanged"; has && string(rawjson.Field(filter, key)) == "true" {
			b = member(b, key, []byte("true"))
		}
	}
	for key, list := range map[string][]string{"resourceSubscriptions": uris, "taskIds": tasks} {
		if len(list) == 0 {
			continue
		}
		all := []byte{'['}
		for i, one := range list {
			if i > 0 {
				all = append(all, ',')
			}
			all = rawjson.AppendString(all, one)
		}
		b = member(b, key, append(all, ']'))
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

// TaskChanged notifies the subscribers of a task (extension Tasks) of a server without [ServerConfig.WatchTask]. task
// is the JSON object that tasks/get would return.
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
		c.tellTask([]byte(sub), task)
	}
}

// tellTask notifies the client of a changed task on one of its subscriptions.
func (c *serverConn) tellTask(sub []byte, task json.RawMessage) {
	params := subscription(sub)
	for k, v := range rawjson.Members(task) {
		if string(k) != "_meta" {
			params = member(params, string(k), v)
		}
	}
	c.notify("notifications/tasks", append(params, '}'))
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

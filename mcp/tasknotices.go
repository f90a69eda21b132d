package mcp

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// taskNotices contains the callers that wait for changes of tasks. A server may report changes (notifications/tasks,
// on a subscription that names the task), but need not. So the client polls the task as well.
type taskNotices struct {
	mu      sync.Mutex
	waiting map[string][]chan struct{} // keyed by the id of the task
	subs    map[string]string          // id of a subscription → id of its task
	refused bool                       // the server has no subscriptions
}

// told wakes the callers that wait for a task. They then request the task, because they trust only responses to their
// requests, not the content of the notification.
func (n *taskNotices) told(params []byte) {
	id := rawjson.String(rawjson.Field(params, "taskId"))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wake(id)
}

// wake wakes the callers that wait for a task. The caller holds the lock.
func (n *taskNotices) wake(id string) {
	for _, c := range n.waiting[id] {
		select {
		case c <- struct{}{}:
		default: // already woken
		}
	}
}

// opened reports whether an acknowledged subscription belongs to a task. It wakes the callers that wait for the task,
// because the task may have changed before the subscription began.
func (n *taskNotices) opened(params []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	id, ok := n.subs[string(rawjson.Field(rawjson.Field(params, "_meta"), metaSubscription))]
	if ok {
		n.wake(id)
	}
	return ok
}

// followTask subscribes to the changes of a task. woken receives a value for a change. stop ends the subscription and
// waits for its goroutine.
func (c *Client) followTask(ctx context.Context, id string) (woken <-chan struct{}, stop func()) {
	n := &c.tasks
	wake := make(chan struct{}, 1)
	n.mu.Lock()
	refused := n.refused
	if n.waiting == nil {
		n.waiting, n.subs = map[string][]chan struct{}{}, map[string]string{}
	}
	n.waiting[id] = append(n.waiting[id], wake)
	n.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	var subscribed sync.WaitGroup
	if info := c.Info(); !refused &&
		rawjson.Field(rawjson.Field(info.Capabilities, "extensions"), ExtensionTasks) != nil {
		subscribed.Go(func() { c.subscribeTask(ctx, id) })
	}
	return wake, func() {
		cancel()
		subscribed.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		if left := without(n.waiting[id], wake); len(left) > 0 {
			n.waiting[id] = left
		} else {
			delete(n.waiting, id)
		}
	}
}

// subscribeTask keeps one subscription open. If it ends, polling is enough.
func (c *Client) subscribeTask(ctx context.Context, id string) {
	n := &c.tasks
	sub := c.subscription(member(nil, "notifications",
		append(rawjson.AppendString([]byte(`{"taskIds":[`), id), "]}"...)))
	key := strconv.FormatInt(sub.ID, 10)
	n.mu.Lock()
	n.subs[key] = id
	n.mu.Unlock()
	_, err := c.peer.Call(ctx, sub)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.subs, key)
	if rpc := (*jsonrpc.Error)(nil); errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound {
		n.refused = true
	}
}

func without(list []chan struct{}, c chan struct{}) (left []chan struct{}) {
	for _, o := range list {
		if o != c {
			left = append(left, o)
		}
	}
	return left
}

// waitOr waits for d, or until woken receives a value, but at least for quickestPoll. It returns false if ctx ends.
func waitOr(ctx context.Context, d time.Duration, woken <-chan struct{}) bool {
	if !wait(ctx, min(d, quickestPoll)) {
		return false
	}
	t := time.NewTimer(max(d-quickestPoll, 0))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-woken:
	}
	return true
}

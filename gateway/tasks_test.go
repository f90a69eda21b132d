package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// tasksDeclared are the capabilities of a client with the extension Tasks.
const tasksDeclared = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// modern sends a modern request to the gateway and returns its result, or its error.
func (w *world) modern(t *testing.T, token, capabilities, method, name, params string) (result, failure string) {
	t.Helper()
	_, _, body := w.post(t, token, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`,
		method, params, capabilities), "MCP-Protocol-Version", mcp.Modern, "Mcp-Method", method, "Mcp-Name", name)
	return string(rawjson.Field([]byte(body), "result")), string(rawjson.Field([]byte(body), "error"))
}

// park calls the tool write, which needs an approval, and returns the id of the call's task.
func (w *world) park(t *testing.T) string {
	t.Helper()
	r, failure := w.modern(t, annaToken, tasksDeclared, "tools/call", "write", `"name":"write","arguments":{"n":1}`)
	id := rawjson.String(rawjson.Field([]byte(r), "taskId"))
	if id == "" {
		t.Fatalf("no task: %s %s", r, failure)
	}
	return id
}

// TestGW_21_ParkedCallIsATask holds that a call which waits for a person is a task for a client that declares tasks:
// polling gives its state and then its result, for its principal only, also after a restart.
func TestGW_21_ParkedCallIsATask(t *testing.T) {
	member := func(object, key string) string { return rawjson.String(rawjson.Field([]byte(object), key)) }
	u := serveUpstream(t, mcp.ServerConfig{})
	w := open(t, upstreamConfig(u, ""), gateway.Config{})
	begin := func(n int) string {
		t.Helper()
		r, failure := w.modern(t, annaToken, tasksDeclared, "tools/call", "write",
			fmt.Sprintf(`"name":"write","arguments":{"n":%d}`, n))
		if member(r, "resultType") != "task" || member(r, "status") != "working" ||
			!strings.Contains(member(r, "statusMessage"), "tenon approvals allow") {
			t.Fatalf("parked: %s %s", r, failure)
		}
		return member(r, "taskId")
	}
	get := func(token, capabilities, id string) (result, failure string) {
		t.Helper()
		return w.modern(t, token, capabilities, "tasks/get", id, fmt.Sprintf(`"taskId":%q`, id))
	}
	id := begin(1)
	if again := begin(1); again != id {
		t.Errorf("an equal call is task %s, want %s", again, id)
	}
	refused, denied, stopped := begin(2), begin(3), begin(4)

	if r, _ := get(annaToken, tasksDeclared, id); member(r, "status") != "working" {
		t.Errorf("before the decision: %s", r)
	}
	for name, c := range map[string]struct{ token, can, id, want string }{
		"another principal": {ownToken, tasksDeclared, id, "Task not found"},
		"not declared":      {annaToken, "{}", id, "-32021"},
		"a prefix of an id": {annaToken, tasksDeclared, id[:len(id)-1], "Task not found"},
		"no such task":      {annaToken, tasksDeclared, "run_x", "Task not found"},
	} {
		if r, failure := get(c.token, c.can, c.id); r != "" || !strings.Contains(failure, c.want) {
			t.Errorf("%s: %s %s", name, r, failure)
		}
	}
	w.decide(t, denied, tenon.Deny)
	if r, failure := w.modern(t, annaToken, tasksDeclared, "tasks/cancel", stopped,
		fmt.Sprintf(`"taskId":%q`, stopped)); member(r, "resultType") != "complete" {
		t.Errorf("cancel: %s %s", r, failure)
	}
	until(t, "the cancellation", func() bool {
		r, _ := get(annaToken, tasksDeclared, stopped)
		return member(r, "status") == "cancelled"
	})

	w.stop()
	w.start(t, upstreamConfig(u, ""), gateway.Config{})
	w.decide(t, id, tenon.Allow)
	var r string
	until(t, "the result", func() bool {
		r, _ = get(annaToken, tasksDeclared, id)
		return member(r, "status") == "completed"
	})
	if got := string(rawjson.Field([]byte(r), "result")); got != `{"content":[{"type":"text","text":"written"}]}` {
		t.Errorf("result %s", got)
	}
	if again, _ := get(annaToken, tasksDeclared, id); again != r {
		t.Errorf("asked again: %s, want %s", again, r)
	}
	until(t, "the refusal", func() bool {
		r, _ = get(annaToken, tasksDeclared, denied)
		return member(r, "status") == "completed"
	})
	if !strings.Contains(r, "denied") {
		t.Errorf("denied: %s", r)
	}
	if r, _ := get(annaToken, tasksDeclared, refused); member(r, "status") != "working" {
		t.Errorf("nobody decided: %s", r)
	}
	if next := begin(1); next == id {
		t.Errorf("an equal call after the result is the same task")
	}
	if n := u.writes.Load(); n != 1 {
		t.Errorf("%d calls upstream, want 1", n)
	}
}

// TestGW_21_CallAfterCancel checks that a call equal to a cancelled task is a new one, in the same process and in the
// next.
func TestGW_21_CallAfterCancel(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	w := open(t, upstreamConfig(u, ""), gateway.Config{})
	cancel := func(id string) {
		t.Helper()
		if r, failure := w.modern(t, annaToken, tasksDeclared, "tasks/cancel", id, fmt.Sprintf(`"taskId":%q`, id)); failure != "" {
			t.Fatalf("cancel: %s %s", r, failure)
		}
	}
	first := w.park(t)
	cancel(first)
	second := w.park(t)
	if second == first {
		t.Fatal("an equal call joined the cancelled task")
	}
	cancel(first) // a second time, with no effect on the new task
	if again := w.park(t); again != second {
		t.Errorf("an equal call is task %s, want %s", again, second)
	}
	cancel(second)
	w.stop()
	w.start(t, upstreamConfig(u, ""), gateway.Config{})
	third := w.park(t)
	if third == second {
		t.Error("an equal call joined the cancelled task after a restart")
	}
	w.decide(t, third, tenon.Allow)
	until(t, "the call", func() bool { return u.writes.Load() == 1 })
}

// TestGW_21_Update checks that answers to questions of a task that are not open are ignored, as SEP-2663 says, and that
// anything else than answers is refused.
func TestGW_21_Update(t *testing.T) {
	w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}), ""), gateway.Config{})
	r, _ := w.modern(t, annaToken, tasksDeclared, "tools/call", "write", `"name":"write","arguments":{"n":1}`)
	id := rawjson.String(rawjson.Field([]byte(r), "taskId"))
	for responses, ok := range map[string]bool{
		`,"inputResponses":{}`:                         true,
		`,"inputResponses":{"never":{"action":"zap"}}`: true,
		`,"inputResponses":{"never":"accept"}`:         false,
		`,"inputResponses":[{"action":"accept"}]`:      false,
		`,"inputResponses":"accept"`:                   false,
		``:                                             false,
	} {
		r, failure := w.modern(t, annaToken, tasksDeclared, "tasks/update", id, fmt.Sprintf(`"taskId":%q%s`, id, responses))
		if ok && r != `{"resultType":"complete"}` || !ok && !strings.Contains(failure, "-32602") {
			t.Errorf("%s: %s %s", responses, r, failure)
		}
	}
	if n := len(w.waitingNow(t)); n != 1 {
		t.Errorf("%d calls wait after the answers, want 1", n)
	}
}

// TestGW_21_TasksOfAClient polls a task with a whole client.
func TestGW_21_TasksOfAClient(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	w := open(t, upstreamConfig(u, ""), gateway.Config{})
	c := w.client(t, mcp.Modern, annaToken, func(cfg *mcp.ClientConfig) { cfg.Tasks = true })
	r, err := c.Call(t.Context(), tenon.Call{Tool: "write", Arguments: json.RawMessage(`{"n":1}`)})
	if err != nil || r.Input == nil || !r.Input.Resume {
		t.Fatalf("parked: %+v, %v", r, err)
	}
	w.decide(t, w.waiting(t, 1)[0].Run, tenon.Allow)
	r, err = c.Call(t.Context(), tenon.Call{Tool: "write", Arguments: json.RawMessage(`{"n":1}`),
		Input: &tenon.InputAnswer{State: r.Input.State}})
	if err != nil || r.Text() != "written" || u.writes.Load() != 1 {
		t.Errorf("%+v, %v after %d calls", r, err, u.writes.Load())
	}
}

// listenTo opens a subscription of a modern client, and returns its messages. They end with the request.
func (w *world) listenTo(t *testing.T, token, capabilities, filter string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, strings.NewReader(fmt.Sprintf(
		`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":%s,"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, filter, capabilities)))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Authorization": "Bearer " + token, "MCP-Protocol-Version": mcp.Modern, "Mcp-Method": "subscriptions/listen"} {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	messages, ended := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(messages)
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			if text := strings.TrimPrefix(lines.Text(), "data: "); strings.HasPrefix(text, "{") {
				messages <- text
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = res.Body.Close()
	})
	return messages
}

// TestGW_21_TasksAreAnnounced checks that a client that subscribes to a task gets each of its states with the result,
// for tasks of its own principal only, and that the result then counts as delivered.
func TestGW_21_TasksAreAnnounced(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	w := open(t, upstreamConfig(u, ""), gateway.Config{})
	id := w.park(t)
	filter := fmt.Sprintf(`{"taskIds":[%q,"run_x"]}`, id)
	own := w.listenTo(t, annaToken, tasksDeclared, filter)
	if got := <-own; !strings.Contains(got, "acknowledged") || !strings.Contains(got, fmt.Sprintf(`"taskIds":[%q]`, id)) {
		t.Errorf("acknowledged: %s", got)
	}
	if got := <-w.listenTo(t, bertToken, tasksDeclared, filter); strings.Contains(got, id) {
		t.Errorf("another principal: %s", got)
	}
	if got := <-w.listenTo(t, annaToken, `{}`, filter); !strings.Contains(got, "-32021") {
		t.Errorf("not declared: %s", got)
	}
	w.decide(t, id, tenon.Allow)
	var last string
	for got := range own {
		params := rawjson.Field([]byte(got), "params")
		if rawjson.String(rawjson.Field(params, "taskId")) != id || !strings.Contains(got, `"io.modelcontextprotocol/subscriptionId":7`) ||
			rawjson.Field(params, "resultType") != nil || rawjson.String(rawjson.Field([]byte(got), "method")) != "notifications/tasks" {
			t.Errorf("announced: %s", got)
		}
		if last = rawjson.String(rawjson.Field(params, "status")); last != "working" {
			if text := string(rawjson.Field(params, "result")); text != `{"content":[{"type":"text","text":"written"}]}` {
				t.Errorf("result %s", text)
			}
			break
		}
	}
	if last != "completed" {
		t.Errorf("the last status is %q", last)
	}
	late := w.listenTo(t, annaToken, tasksDeclared, filter) // after the end
	<-late
	if got := <-late; !strings.Contains(got, `"completed"`) {
		t.Errorf("announced late: %s", got)
	}
	if next := w.park(t); next == id {
		t.Error("an equal call after the result is the same task")
	}
}

// TestGW_21_TasksWatchedAreBounded checks that a principal whose clients watch very many tasks cannot subscribe to
// another one, and that the tasks are no longer counted when the subscriptions end.
func TestGW_21_TasksWatchedAreBounded(t *testing.T) {
	w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}), ""), gateway.Config{})
	r, failure := w.modern(t, annaToken, tasksDeclared, "tools/call", "write", `"name":"write","arguments":{"n":1}`)
	id := rawjson.String(rawjson.Field([]byte(r), "taskId"))
	if id == "" {
		t.Fatalf("%s %s", r, failure)
	}
	filter := fmt.Sprintf(`{"taskIds":[%q]}`, id)
	gateway.WatchTasks(w.gate, "anna", gateway.MaxTasksWatched)
	if got := <-w.listenTo(t, annaToken, tasksDeclared, filter); !strings.Contains(got, "acknowledged") || strings.Contains(got, id) {
		t.Errorf("one task too many: %s", got)
	}
	gateway.WatchTasks(w.gate, "anna", -gateway.MaxTasksWatched)
	t.Run("one subscription", func(t *testing.T) {
		if got := <-w.listenTo(t, annaToken, tasksDeclared, filter); !strings.Contains(got, id) {
			t.Errorf("acknowledged: %s", got)
		}
		if n := gateway.WatchTasks(w.gate, "anna", 0); n != 1 {
			t.Errorf("%d tasks are watched, want 1", n)
		}
	})
	until(t, "the end of the subscription", func() bool { return gateway.WatchTasks(w.gate, "anna", 0) == 0 })
}

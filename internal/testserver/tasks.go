package testserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// task is a call that goes on after it was answered (extension Tasks of
// 2026-07-28). Its fields are under the server's lock.
type task struct {
	ID       string          `json:"taskId"`
	Status   string          `json:"status"`
	Message  string          `json:"statusMessage,omitempty"`
	Created  time.Time       `json:"createdAt"`
	Updated  time.Time       `json:"lastUpdatedAt"`
	TTL      int64           `json:"ttlMs"`
	Poll     int64           `json:"pollIntervalMs"`
	Requests json.RawMessage `json:"inputRequests,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *jsonrpc.Error  `json:"error,omitempty"`

	answers chan json.RawMessage
	cancel  context.CancelFunc
}

// maxTasks bounds what calls can make the server remember.
const maxTasks = 1000

// taskers are the tools of --tasks: later answers with a task.
func (s *server) taskers() []entry {
	if !s.o.Tasks {
		return nil
	}
	return []entry{{"later", "Answers with a task that takes its time", `"ms":{"type":"integer","default":300},"poll":{"type":"integer","default":25},"ask":{"type":"boolean"},` +
		`"end":{"type":"string","enum":["completed","error","failed","cancelled","never","lost"]}`, ``, changes, s.later}}
}

// later begins a task.
func (s *server) later(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	args, err := arguments[struct {
		MS, Poll int
		Ask      bool
		End      string
	}](r)
	if err != nil {
		return nil, err
	}
	if !r.Modern || jsonrpc.Field(jsonrpc.Field(r.Capabilities, "extensions"), mcp.ExtensionTasks) == nil {
		return nil, noTasks()
	}
	if args.MS <= 0 {
		args.MS = 300
	}
	ctx, cancel := context.WithCancel(s.ctx)
	t := &task{Status: "working", Message: "it has begun", Created: time.Now().UTC(), TTL: 3_600_000, Poll: int64(cmp.Or(args.Poll, 25)),
		answers: make(chan json.RawMessage, 1), cancel: cancel}
	t.Updated = t.Created
	s.mu.Lock()
	full := len(s.tasks) >= maxTasks
	if !full {
		t.ID = "task-" + strconv.Itoa(len(s.tasks)+1)
		s.tasks[t.ID] = t
	}
	s.mu.Unlock()
	if full {
		cancel()
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "there are too many tasks")
	}
	s.working.Go(func() { s.work(ctx, t, time.Duration(args.MS)*time.Millisecond, args.Ask, args.End) })
	if args.End == "lost" {
		s.mu.Lock()
		s.tasks[t.ID] = nil
		s.mu.Unlock()
	}
	return s.show(t, "task")
}

// work carries a task out.
func (s *server) work(ctx context.Context, t *task, d time.Duration, ask bool, end string) {
	set := func(f func()) {
		s.mu.Lock()
		f()
		t.Updated = time.Now().UTC()
		s.mu.Unlock()
		s.tellTask(t)
	}
	pause := func(d time.Duration) bool { return pause(ctx, d) }
	if !pause(d / 2) {
		return
	}
	name := "nobody"
	if ask {
		set(func() {
			t.Status, t.Message = "input_required", "it waits for a name"
			t.Requests = json.RawMessage(`{"name":{"method":"elicitation/create","params":{"mode":"form","message":"Who are you?",` +
				`"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}}`)
		})
		select {
		case a := <-t.answers:
			name, _ = jsonrpc.String(jsonrpc.Field(jsonrpc.Field(jsonrpc.Field(a, "name"), "content"), "name"))
		case <-ctx.Done():
			return
		}
		if !pause(2 * time.Duration(min(t.Poll, 25)) * time.Millisecond) { // it is asked after, and shows the question once more
			return
		}
	}
	set(func() { t.Status, t.Message, t.Requests = "working", "half of it is done", nil })
	if end == "never" {
		d = time.Hour
	}
	if !pause(d - d/2) {
		return
	}
	set(func() {
		t.Status, t.Message = "completed", ""
		switch end {
		case "error":
			t.Result = json.RawMessage(`{"content":[{"type":"text","text":"it went wrong"}],"isError":true}`)
		case "failed":
			t.Status, t.Error = "failed", &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the machine is broken", Data: json.RawMessage(`{"id":9007199254740993}`)}
		case "cancelled":
			t.Status, t.Message = "cancelled", "it was too much"
		default:
			t.Result = json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":"done for %s"}],"structuredContent":{"id":9007199254740993}}`, name))
		}
	})
}

// tellTask tells those who listen how a task is.
func (s *server) tellTask(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, err := json.Marshal(t); err == nil {
		s.srv.TaskChanged(t.ID, b)
	}
}

// show is a task as a result.
func (s *server) show(t *task, kind string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"resultType":"`+kind+`",`), b[1:]...), nil
}

// asked answers the methods of the extension.
func (s *server) asked(_ context.Context, method string, params, meta json.RawMessage) (json.RawMessage, error) {
	if method != "tasks/get" && method != "tasks/update" && method != "tasks/cancel" {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", method)
	}
	can := jsonrpc.Field(meta, "io.modelcontextprotocol/clientCapabilities")
	if jsonrpc.Field(jsonrpc.Field(can, "extensions"), mcp.ExtensionTasks) == nil {
		return nil, noTasks()
	}
	id, _ := jsonrpc.String(jsonrpc.Field(params, "taskId"))
	s.mu.Lock()
	t := s.tasks[id]
	s.mu.Unlock()
	switch {
	case t == nil:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Task not found")
	case method == "tasks/get":
		return s.show(t, "complete")
	case method == "tasks/update":
		select {
		case t.answers <- append(json.RawMessage(nil), jsonrpc.Field(params, "inputResponses")...):
		default: // answered already
		}
	default:
		t.cancel()
		s.mu.Lock()
		if t.Status == "working" || t.Status == "input_required" {
			t.Status, t.Message, t.Requests = "cancelled", "as you wished", nil
		}
		s.mu.Unlock()
		s.tellTask(t)
	}
	return json.RawMessage(`{"resultType":"complete"}`), nil
}

func noTasks() error {
	e := jsonrpc.Errorf(-32021, "Missing required client capability")
	e.Data = json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + mcp.ExtensionTasks + `":{}}}}`)
	return e
}

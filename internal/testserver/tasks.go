package testserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// task is a call that continues after its response (extension Tasks of 2026-07-28). The server's lock guards
// its fields.
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
	ended   chan struct{} // closed when the work has ended
}

// maxTasks bounds the number of stored tasks.
const maxTasks = 1000

// taskers returns the tools of --tasks.
func (s *server) taskers() []entry {
	if !s.o.Tasks {
		return nil
	}
	return []entry{{"later", "Answers with a task that takes its time",
		`"ms":{"type":"integer","default":300},"poll":{"type":"integer","default":25},"ask":{"type":"boolean"},` +
			`"end":{"type":"string","enum":["completed","error","failed","cancelled","never","lost"]}`, ``,
		changes, s.later}}
}

// later starts a task.
func (s *server) later(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	args, err := arguments[struct {
		MS, Poll int
		Ask      bool
		End      string
	}](r)
	if err != nil {
		return nil, err
	}
	switch {
	case !r.Modern && r.Task == nil: // 2025-11-25, tasks, "Tool-Level Negotiation"
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the tool must be called with a task")
	case r.Modern && rawjson.Field(rawjson.Field(r.Capabilities, "extensions"), mcp.ExtensionTasks) == nil:
		return nil, noTasks()
	}
	if args.MS <= 0 {
		args.MS = 300
	}
	ctx, cancel := context.WithCancel(s.ctx)
	t := &task{Status: "working", Message: "it has begun", Created: time.Now().UTC(), TTL: 3_600_000,
		Poll:    int64(cmp.Or(args.Poll, 25)),
		answers: make(chan json.RawMessage, 1), cancel: cancel}
	t.Updated, t.ended = t.Created, make(chan struct{})
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
	s.working.Go(func() {
		defer close(t.ended)
		s.work(ctx, t, time.Duration(args.MS)*time.Millisecond, args.Ask, args.End)
	})
	if args.End == "lost" {
		s.mu.Lock()
		s.tasks[t.ID] = nil
		s.mu.Unlock()
	}
	if !r.Modern {
		b, err := s.showOld(t)
		return append(append([]byte(`{"task":`), b...), '}'), err
	}
	return s.show(t, "task")
}

// showOld returns a task in the form of revision 2025-11-25.
func (s *server) showOld(t *task) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.Marshal(map[string]any{"taskId": t.ID, "status": t.Status, "statusMessage": t.Message,
		"createdAt": t.Created, "lastUpdatedAt": t.Updated, "ttl": t.TTL, "pollInterval": t.Poll})
}

// askedOld handles the methods of tasks of revision 2025-11-25. The result waits for the end of the task, and asks the
// client what the task wants to know.
func (s *server) askedOld(ctx context.Context, method string, t *task) (json.RawMessage, error) {
	switch method {
	case "tasks/get":
		return s.showOld(t)
	case "tasks/cancel":
		t.cancel()
		s.mu.Lock()
		t.Status, t.Message = "cancelled", "as you wished"
		s.mu.Unlock()
		return s.showOld(t)
	}
	s.mu.Lock()
	requests := t.Requests
	s.mu.Unlock()
	if q := rawjson.Field(requests, "name"); q != nil {
		answer, err := mcp.AskOf(ctx)(ctx, "elicitation/create", json.RawMessage(rawjson.Field(q, "params")))
		if err != nil {
			return nil, err
		}
		select {
		case t.answers <- append(append(json.RawMessage(`{"name":`), answer...), '}'):
		default: // already answered
		}
	}
	select {
	case <-t.ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Error != nil {
		return nil, t.Error
	}
	related := fmt.Sprintf(`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":%q}},`, t.ID)
	return append(json.RawMessage(related), t.Result[1:]...), nil
}

// work runs a task.
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
			t.Requests = json.RawMessage(
				`{"name":{"method":"elicitation/create","params":{"mode":"form","message":"Who are you?",` +
					`"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},` +
					`"required":["name"]}}}}`)
		})
		select {
		case a := <-t.answers:
			name = rawjson.String(rawjson.Field(rawjson.Field(rawjson.Field(a, "name"), "content"), "name"))
		case <-ctx.Done():
			return
		}
		poll := time.Duration(min(t.Poll, 25)) * time.Millisecond
		if !pause(2 * poll) { // long enough for one more poll, which shows the question again
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
			t.Status, t.Error = "failed", &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the machine is broken",
				Data: json.RawMessage(`{"id":9007199254740993}`)}
		case "cancelled":
			t.Status, t.Message = "cancelled", "it was too much"
		default:
			t.Result = json.RawMessage(fmt.Sprintf(
				`{"content":[{"type":"text","text":"done for %s"}],"structuredContent":{"id":9007199254740993}}`, name))
		}
	})
}

// tellTask notifies subscribers of the state of a task.
func (s *server) tellTask(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, err := json.Marshal(t); err == nil {
		s.srv.TaskChanged(t.ID, b)
	}
}

// show returns a task as a result.
func (s *server) show(t *task, kind string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"resultType":"`+kind+`",`), b[1:]...), nil
}

// asked handles the methods of the extension.
func (s *server) asked(ctx context.Context, method string, params, meta json.RawMessage) (json.RawMessage, error) {
	modern := rawjson.Field(meta, "io.modelcontextprotocol/protocolVersion") != nil
	if method != "tasks/get" && method != "tasks/cancel" && (method != "tasks/update" || !modern) &&
		(method != "tasks/result" || modern) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", method)
	}
	can := rawjson.Field(meta, "io.modelcontextprotocol/clientCapabilities")
	if modern && rawjson.Field(rawjson.Field(can, "extensions"), mcp.ExtensionTasks) == nil {
		return nil, noTasks()
	}
	id := rawjson.String(rawjson.Field(params, "taskId"))
	s.mu.Lock()
	t := s.tasks[id]
	s.mu.Unlock()
	switch {
	case t == nil:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Task not found")
	case !modern:
		return s.askedOld(ctx, method, t)
	case method == "tasks/get":
		return s.show(t, "complete")
	case method == "tasks/update":
		select {
		case t.answers <- append(json.RawMessage(nil), rawjson.Field(params, "inputResponses")...):
		default: // already answered
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

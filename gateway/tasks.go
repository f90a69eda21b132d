package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/view"
)

// A client that declares the extension Tasks (2026-07-28) does not hold a connection while its call waits for a person:
// it gets a task, which it polls or subscribes to. The id of the task is the run of the call, so that every process of
// the store, also one that starts later, can answer.

const (
	// taskPoll is the interval at which clients are advised to poll, in milliseconds.
	taskPoll = 1000
	// maxTasksWatched bounds the tasks that the clients of one principal watch at one endpoint at the same time. They
	// poll others.
	maxTasksWatched = 256
	// codeNoCapability refuses a method of an extension that the client did not declare (2026-07-28).
	codeNoCapability = -32021
)

// hasTasks reports whether a modern client declares the extension.
func hasTasks(capabilities json.RawMessage) bool {
	return rawjson.IsObject(rawjson.Field(rawjson.Field(capabilities, "extensions"), mcp.ExtensionTasks))
}

// asTask returns the error that answers a parked call with a task. It returns nil if the client has to wait.
func (f *following) asTask(ctx context.Context, message string) error {
	if !f.request.Modern || !hasTasks(f.request.Capabilities) {
		return nil
	}
	row, err := f.g.current().Runs().Get(ctx, f.run)
	if err != nil {
		return err
	}
	f.g.parked.leave(f.key, f.run)
	return &inputNeeded{append(taskOf([]byte(`{"resultType":"task"`), row, "working", message), '}')}
}

// taskOf appends the members that every task has. The journal keeps the result without a limit of time.
func taskOf(b []byte, row tenon.Run, status, message string) []byte {
	b = text(text(b, "taskId", row.ID), "status", status)
	if message != "" {
		b = text(b, "statusMessage", message)
	}
	b = text(b, "createdAt", row.Created.UTC().Format(time.RFC3339Nano))
	b = text(b, "lastUpdatedAt", row.Updated.UTC().Format(time.RFC3339Nano))
	return member(member(b, "ttlMs", []byte("null")), "pollIntervalMs", []byte(strconv.Itoa(taskPoll)))
}

// extra handles the methods of the extension; see [mcp.ServerConfig.Extra].
func (d *door) extra(ctx context.Context, method string, params, meta json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "tasks/get", "tasks/update", "tasks/cancel":
	default:
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", method)
	}
	if !hasTasks(rawjson.Field(meta, "io.modelcontextprotocol/clientCapabilities")) {
		e := jsonrpc.Errorf(codeNoCapability, "Missing required client capability")
		e.Data = json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + mcp.ExtensionTasks + `":{}}}}`)
		return nil, e
	}
	if !d.g.enter() {
		return nil, errClosing
	}
	defer d.g.calls.Done()
	h := d.g.current()
	row, call, err := d.task(ctx, h, rawjson.String(rawjson.Field(params, "taskId")))
	if err != nil {
		return nil, err
	}
	switch method {
	case "tasks/get":
		return d.taskNow(ctx, h, row, call)
	case "tasks/cancel":
		err = d.cancelTask(ctx, h, row, call)
	case "tasks/update":
		err = checkUpdate(params)
	}
	if err != nil {
		return nil, err
	}
	return json.RawMessage(`{"resultType":"complete"}`), nil
}

// cancelTask cancels the run of a task. The next equal call is a new one. If the call was made before it could be
// cancelled, its result stays for the next equal call, so that nothing is done twice.
func (d *door) cancelTask(ctx context.Context, h *host.Host, row tenon.Run, call agent.DirectSpec) error {
	if !row.State.Ended() {
		if err := h.Runs().Cancel(ctx, row.ID, "the client cancelled the task"); err != nil {
			return err
		}
	} else if row.State != tenon.RunCancelled {
		return nil
	}
	key, err := callKey(d.key.who, call.Name, call.Arguments)
	if err != nil {
		return err
	}
	d.g.parked.forget(key, row.ID)
	(&following{door: d, key: key, run: row.ID}).fetched(ctx)
	return nil
}

// checkUpdate checks the answers in tasks/update. Tasks of the gateway ask nothing, and answers to questions that are
// not open are ignored (SEP-2663), but they have to be answers.
func checkUpdate(params json.RawMessage) error {
	responses := rawjson.Field(params, "inputResponses")
	if !rawjson.IsObject(responses) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "inputResponses is missing or not an object")
	}
	for key, answer := range rawjson.Members(responses) {
		if !rawjson.IsObject(answer) {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the answer %q in inputResponses is not an object", key)
		}
	}
	return nil
}

// task returns the run of a task and its call. Every run that is no call of a client of the same principal is unknown.
func (d *door) task(ctx context.Context, h *host.Host, id string) (tenon.Run, agent.DirectSpec, error) {
	unknown := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Task not found")
	row, err := h.Runs().Get(ctx, id)
	if err != nil || row.ID != id || row.Core != agent.DirectVersion || row.Foreign || row.Principal != d.key.who {
		return row, agent.DirectSpec{}, unknown
	}
	first, err := h.Runs().Open(id).Journal(ctx, 0, 1)
	if err != nil {
		return row, agent.DirectSpec{}, err
	}
	_, call, err := view.FirstSpec[agent.DirectSpec](id, first)
	if err != nil || !call.Ask {
		return row, agent.DirectSpec{}, unknown
	}
	return row, call, d.has(ctx, h, call.Name)
}

// taskNow answers tasks/get.
func (d *door) taskNow(ctx context.Context, h *host.Host, row tenon.Run, call agent.DirectSpec) (json.RawMessage,
	error) {
	begin := []byte(`{"resultType":"complete"`)
	f := &following{door: d, request: &mcp.ToolRequest{Name: call.Name, Arguments: call.Arguments, Modern: true},
		run: row.ID, decided: func() {}, judged: func(tenon.Verdict) {}}
	switch row.State {
	case tenon.RunInputRequired:
		return append(taskOf(begin, row, "working", f.advice()), '}'), nil
	case tenon.RunWorking:
		_ = h.Runs().Resume(ctx, row.ID) // another process may work on it already
		return append(taskOf(begin, row, "working", "the call is under way"), '}'), nil
	case tenon.RunCancelled:
		return append(taskOf(begin, row, "cancelled", "the call was cancelled"), '}'), nil
	}
	result, waits, err := f.read(ctx, h)
	if waits || ctx.Err() != nil { // it was resumed in between
		return append(taskOf(begin, row, "working", f.advice()), '}'), nil
	}
	if tenon.ErrorCode(err) == tenon.CodeAuth {
		err = d.linked(ctx, host.SignsInItself(ctx, h, d.key.who, call.Name), err)
	}
	raw, err := d.answer(f.request, d.withLink(ctx, call.Name, f.run, result), err)
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &refused):
		b, _ := json.Marshal(refused) // numbers, texts and checked JSON
		return append(member(taskOf(begin, row, "failed", refused.Message), "error", b), '}'), nil
	case err != nil:
		return nil, err
	}
	if f.key, err = callKey(d.key.who, call.Name, call.Arguments); err == nil && row.State.Ended() {
		d.g.parked.done(f.key, f.run)
		f.fetched(ctx)
	}
	return append(member(taskOf(begin, row, "completed", ""), "result", without(raw, "resultType")), '}'), nil
}

// watchTask announces the changes of a task; see [mcp.ServerConfig.WatchTask]. If the task has ended, it announces that
// at once. A result that was announced counts as delivered, so that the next equal call is a new one.
func (d *door) watchTask(ctx context.Context, id string, changed func(json.RawMessage)) (stop func(), err error) {
	if _, _, err := d.task(ctx, d.g.current(), id); err != nil {
		return nil, err
	}
	if n := d.watching.Add(1); n > maxTasksWatched {
		d.watching.Add(-1)
		return nil, tenon.Errorf(tenon.CodeLimit, "%d subscriptions to tasks are the limit; poll with tasks/get",
			maxTasksWatched)
	}
	if !d.g.enter() {
		d.watching.Add(-1)
		return nil, errClosing
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer d.watching.Add(-1)
		defer d.g.calls.Done()
		d.announce(ctx, id, changed)
	}()
	return func() {
		cancel()
		<-ended
	}, nil
}

// announce calls changed for each change of a task, until the task, the gateway or ctx ends. It looks again after an
// error, which may pass.
func (d *door) announce(ctx context.Context, id string, changed func(json.RawMessage)) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var store changes
	defer store.end()
	var told announced
	for {
		h := d.g.current()
		next := store.next(ctx, h.Service().Storage().State())
		if row, call, err := d.task(ctx, h, id); err == nil {
			task, done := told.step(row.State, func() (json.RawMessage, error) { return d.taskNow(ctx, h, row, call) })
			if task != nil {
				changed(h.Service().Callers().Mask(task))
			}
			if done {
				return
			}
		}
		select {
		case <-next:
		case <-look.C:
		case <-d.g.draining.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// announced is what the client of a subscription knows about a task. The zero value: that it is under way.
type announced struct{ state tenon.RunState }

// step returns what to announce about a task whose run has a state, or nil. now answers tasks/get. After an error,
// which may pass, the next step tries it again. done reports that the task has ended.
func (a *announced) step(state tenon.RunState, now func() (json.RawMessage, error)) (task json.RawMessage, done bool) {
	first := a.state == "" && !state.Ended()
	if first || state == a.state {
		a.state = state
		return nil, false
	}
	task, err := now()
	if err != nil {
		return nil, false
	}
	a.state = state
	done = rawjson.String(rawjson.Field(task, "status")) != "working"
	if state.Ended() && !done { // it was resumed in between
		a.state = tenon.RunWorking
	}
	return without(task, "resultType"), done
}

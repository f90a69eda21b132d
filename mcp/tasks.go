package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// ExtensionTasks is the Tasks extension (2026-07-28): a server may answer tools/call with a task, which the client
// polls until it has ended.
const ExtensionTasks = "io.modelcontextprotocol/tasks"

// taskPrefix begins the state of a [tenon.InputRequired] that represents a task. A [taskState] follows.
const taskPrefix = "tenon/task:"

// Bounds of a task.
const (
	firstPoll    = 250 * time.Millisecond // if the server sets no interval; doubled up to slowPoll
	slowPoll     = 5 * time.Second
	quickestPoll = 20 * time.Millisecond
	slowestPoll  = time.Minute
	ttlGrace     = time.Minute // added to the ttl, for differences of clocks and slow responses
	pollTries    = 5           // failed requests in a row
	cancelTime   = 700 * time.Millisecond
	maxTaskID    = 1024
	maxAnswered  = 64 // answered questions of one task
)

// taskState is the state of a task that is kept between two attempts of its call. With it, any process can continue
// to poll the task.
type taskState struct {
	ID       string    `json:"id"`
	Since    time.Time `json:"since"`              // when the client first saw it, by the local clock
	Poll     int64     `json:"poll_ms,omitempty"`  // the server's polling interval
	Answered []string  `json:"answered,omitempty"` // keys of its answered questions
	Old      bool      `json:"old,omitempty"`      // a task of revision 2025-11-25
}

// newTask reads a result that represents a task. To continue the call, the caller makes it again with the state; see
// [tenon.InputRequired.Resume].
func newTask(raw []byte) (*tenon.Result, error) {
	st := taskState{Since: time.Now().UTC()}
	st.ID = rawjson.String(rawjson.Field(raw, "taskId"))
	if st.ID == "" || len(st.ID) > maxTaskID {
		return nil, tenon.Errorf(tenon.CodeProtocol, "tools/call gave a task without a usable taskId: %s", clip(raw))
	}
	st.Poll = pollOf(raw)
	return &tenon.Result{Input: &tenon.InputRequired{State: st.String(), Resume: true}}, nil
}

// String returns the state for an [tenon.InputRequired].
func (st taskState) String() string {
	b, err := json.Marshal(st)
	if err != nil {
		return taskPrefix // cannot happen: strings and numbers
	}
	return taskPrefix + string(b)
}

// taskOf reads the task from the state of a continued call. It returns nil if the state does not represent a task.
func taskOf(in *tenon.InputAnswer) *taskState {
	if in == nil {
		return nil
	}
	text, ok := strings.CutPrefix(in.State, taskPrefix)
	st := new(taskState)
	if !ok || json.Unmarshal([]byte(text), st) != nil || st.ID == "" {
		return nil
	}
	return st
}

// pollOf returns the server's pollIntervalMs, or pollInterval of revision 2025-11-25, or 0 if there is none.
func pollOf(raw []byte) int64 {
	var ms float64
	if json.Unmarshal(either(raw, "pollIntervalMs", "pollInterval"), &ms) != nil || ms <= 0 {
		return 0
	}
	return int64(min(ms, float64(slowestPoll.Milliseconds())))
}

// either returns the first of two members that an object has.
func either(raw []byte, key, other string) []byte {
	if v := rawjson.Field(raw, key); v != nil {
		return v
	}
	return rawjson.Field(raw, other)
}

// task sends the answers for a task and polls it until it has ended or has a question. It polls at intervals, and
// when the server reports a change. If ctx ends, it cancels the task.
func (c *Client) task(ctx context.Context, call tenon.Call, st *taskState) (*tenon.Result, error) {
	if len(call.Input.Responses) > 0 && string(call.Input.Responses) != "{}" {
		params := member(text(nil, "taskId", st.ID), "inputResponses", call.Input.Responses)
		if _, err := c.request(ctx, "tasks/update", params, st.ID); err != nil {
			return nil, c.taskFailed(ctx, st, "tasks/update", err)
		}
		for k := range rawjson.Members(call.Input.Responses) {
			st.Answered = append(st.Answered, string(k))
		}
	}
	woken, stop := c.followTask(ctx, st.ID)
	defer stop()
	tell, failures := st.teller(call), 0
	for pause := firstPoll; ; pause = min(2*pause, slowPoll) {
		every := pause
		if st.Poll > 0 {
			every = max(time.Duration(st.Poll)*time.Millisecond, quickestPoll)
		}
		if !waitOr(ctx, every, woken) {
			return nil, c.taskFailed(ctx, st, "tasks/get", ctx.Err())
		}
		raw, err := c.request(ctx, "tasks/get", text(nil, "taskId", st.ID), st.ID)
		if err != nil && c.mayPollAgain(ctx, err) {
			if failures++; failures < pollTries {
				continue
			}
		}
		if err != nil {
			return nil, c.taskFailed(ctx, st, "tasks/get", err)
		}
		failures = 0
		if st.Poll = pollOf(raw); st.Poll > 0 {
			pause = firstPoll
		}
		status := rawjson.String(rawjson.Field(raw, "status"))
		message := rawjson.String(rawjson.Field(raw, "statusMessage"))
		tell(status, message)
		switch status {
		case "working":
			if st.isOver(raw) {
				return nil, st.unknown("it is still at work although its time to live is over", nil)
			}
			continue
		case "input_required":
			r, err := st.asks(raw)
			if r == nil && err == nil {
				continue // already answered; the server has not processed the answer yet
			}
			return r, err
		}
		return taskEnded(st, status, message, raw)
	}
}

// taskEnded reads the outcome of the task, which is also the outcome of the call.
func taskEnded(st *taskState, status, message string, raw []byte) (*tenon.Result, error) {
	switch status {
	case "completed":
		result := rawjson.Field(raw, "result")
		if len(result) == 0 {
			return nil, tenon.Errorf(tenon.CodeProtocol, "task %s is completed and has no result", clip([]byte(st.ID)))
		}
		r, err := ParseResult(result, false) // of the result types of a call, only complete is possible here
		if err != nil {
			return nil, err
		}
		return r, nil
	case "failed":
		var e jsonrpc.Error
		if json.Unmarshal(rawjson.Field(raw, "error"), &e) != nil || e.Message == "" {
			e.Message = strings.TrimSpace("the task failed. " + message)
		}
		return nil, &tenon.Error{Code: tenon.CodeTool, Message: fmt.Sprintf("%d: %s", e.Code, e.Message), Data: e.Data,
			Err: &e}
	case "cancelled":
		return nil, tenon.Errorf(tenon.CodeTool, "%s",
			strings.TrimSuffix("the server cancelled the task: "+message, ": "))
	}
	return nil, tenon.Errorf(tenon.CodeProtocol, "task %s has the status %s, which the extension does not know",
		clip([]byte(st.ID)), clip([]byte(status)))
}

// asks returns the questions of a task that were not answered yet, or nil if there are none.
func (st *taskState) asks(raw []byte) (*tenon.Result, error) {
	requests := []byte{'{'}
	n, asked := 0, rawjson.Field(raw, "inputRequests")
	for k, v := range rawjson.Members(asked) {
		if !slices.Contains(st.Answered, string(k)) {
			n++
			requests = member(requests, string(k), v)
		}
	}
	switch {
	case !rawjson.IsObject(asked):
		return nil, tenon.Errorf(tenon.CodeProtocol, "task %s wants input and does not say which: %s",
			clip([]byte(st.ID)), clip(raw))
	case n == 0:
		return nil, nil
	case len(st.Answered)+n > maxAnswered:
		return nil, tenon.Errorf(tenon.CodeProtocol, "task %s has more than %d questions", clip([]byte(st.ID)),
			maxAnswered)
	}
	return &tenon.Result{Input: &tenon.InputRequired{Requests: append(requests, '}'), State: st.String(),
		Resume: true}}, nil
}

// isOver reports whether the task has existed longer than the server keeps it.
func (st *taskState) isOver(raw []byte) bool {
	var ms float64
	if json.Unmarshal(either(raw, "ttlMs", "ttl"), &ms) != nil || ms <= 0 || ms > 1e15 || st.Since.IsZero() {
		return false
	}
	return time.Since(st.Since) > time.Duration(min(ms, 1e12))*time.Millisecond+ttlGrace
}

// taskFailed returns the error with which polling a task ends. If the caller has given up, it cancels the task,
// unless another process may continue the call.
func (c *Client) taskFailed(ctx context.Context, st *taskState, method string, err error) error {
	var rpc *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		if !errors.Is(context.Cause(ctx), tenon.ErrClosing) {
			c.cancelTask(ctx, st)
		}
		return c.explain(ctx, method, err, false)
	case errors.As(err, &rpc):
		e := st.unknown(fmt.Sprintf("it cannot be asked after (%s: %d: %s)", method, rpc.Code, rpc.Message), err)
		e.Data = rpc.Data
		return e
	case tenon.ErrorCode(err) == tenon.CodeAuth:
		return err
	}
	return st.unknown(fmt.Sprintf("the connection was lost (%s: %v)", method, err), err)
}

// TaskError is wrapped by an error of code unknown_outcome about a task. The message of that error is complete and
// needs no further explanation.
type TaskError struct {
	ID  string
	Err error // nil if nothing failed
}

// Error returns a text that names the task.
func (e *TaskError) Error() string { return "task " + clip([]byte(e.ID)) }

// Unwrap returns the cause.
func (e *TaskError) Unwrap() error { return e.Err }

func (st *taskState) unknown(why string, err error) *tenon.Error {
	return &tenon.Error{Code: tenon.CodeUnknown, Err: &TaskError{st.ID, err},
		Message: fmt.Sprintf("the server began task %s, and %s; what becomes of it is not known", clip([]byte(st.ID)),
			why)}
}

// cancelTask asks the server to stop a task. The server need not comply.
func (c *Client) cancelTask(ctx context.Context, st *taskState) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	if _, err := c.request(ctx, "tasks/cancel", text(nil, "taskId", st.ID), st.ID); err != nil {
		c.cfg.Logger.Debug("the server does not say that it stops the task", "task", clip([]byte(st.ID)), "error",
			err.Error())
	}
}

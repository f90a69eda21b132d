package mcp

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// oldTaskTTL is how long a server of revision 2025-11-25 is asked to keep a task.
const oldTaskTTL = 24 * time.Hour

// taskRequired is the only value of a tool's taskSupport on which the client acts (2025-11-25, tasks, "Tool-Level
// Negotiation").
const taskRequired = "required"

// hasOldTasks reports whether the server augments tool calls with tasks as in revision 2025-11-25. That experimental
// form differs from the extension of 2026-07-28: the client asks for the task, and fetches the result with
// tasks/result.
func (c *Client) hasOldTasks() bool {
	if !c.cfg.Tasks || c.isModern() {
		return false
	}
	can := c.Info().Capabilities
	for _, key := range []string{"tasks", "requests", "tools", "call"} {
		can = rawjson.Field(can, key)
	}
	return can != nil
}

// learnTasks records the tools that must be called with a task.
func (c *Client) learnTasks(tools []tenon.Tool) {
	if !c.hasOldTasks() {
		return
	}
	required := map[string]bool{}
	for i := range tools {
		if rawjson.String(rawjson.Field(rawjson.Field(tools[i].Raw, "execution"), "taskSupport")) == taskRequired {
			required[tools[i].Remote] = true
		}
	}
	c.tasked.Store(&required)
}

// needsTask reports whether a tool must be called with a task. It lists the tools if they were not listed on this
// connection before. A tool with optional support is called without a task, because its result then needs no polling.
func (c *Client) needsTask(ctx context.Context, tool string) bool {
	if !c.hasOldTasks() {
		return false
	}
	if c.tasked.Load() == nil {
		if _, err := c.Tools(ctx); err != nil {
			return false // the call reports the error
		}
	}
	required := c.tasked.Load()
	return required != nil && (*required)[tool]
}

// newOldTask parses a CreateTaskResult.
func newOldTask(raw []byte) (*tenon.Result, error) {
	task := rawjson.Field(raw, "task")
	r, err := newTask(task)
	if err != nil {
		return nil, err
	}
	st := taskOf(&tenon.InputAnswer{State: r.Input.State})
	st.Old = true
	r.Input.State = st.String()
	return r, nil
}

// oldTask polls a task of revision 2025-11-25 at its interval until it has ended, and fetches its result. If the task
// needs input, the server asks for it while the request for the result is open. If ctx ends, it cancels the task.
func (c *Client) oldTask(ctx context.Context, call tenon.Call, st *taskState) (*tenon.Result, error) {
	woken, stop := c.followTask(ctx, st.ID)
	defer stop()
	tell := st.teller(call)
	failures := 0
	for pause := firstPoll; ; pause = min(2*pause, slowPoll) {
		if st.Poll > 0 {
			pause = max(time.Duration(st.Poll)*time.Millisecond, quickestPoll)
		}
		if !waitOr(ctx, pause, woken) {
			return nil, c.taskFailed(ctx, st, "tasks/get", ctx.Err())
		}
		raw, err := c.request(ctx, "tasks/get", text(nil, "taskId", st.ID), st.ID)
		if err != nil {
			if failures++; failures < pollTries && c.mayPollAgain(ctx, err) {
				continue
			}
			return nil, c.taskFailed(ctx, st, "tasks/get", err)
		}
		failures = 0
		if poll := pollOf(raw); poll > 0 {
			st.Poll = poll
		}
		status := rawjson.String(rawjson.Field(raw, "status"))
		message := rawjson.String(rawjson.Field(raw, "statusMessage"))
		tell(status, message)
		switch status {
		case "working":
			if st.isOver(raw) {
				return nil, st.unknown("it is still at work although its time to live is over", nil)
			}
		case "input_required", "completed", "failed":
			r, err := c.oldResult(ctx, call, st)
			if r == nil && err == nil {
				continue
			}
			return r, err
		default:
			return taskEnded(st, status, message, raw)
		}
	}
}

// oldResult requests the result of a task. The server responds when the task has ended. If that takes longer than the
// request timeout, oldResult returns nil.
func (c *Client) oldResult(ctx context.Context, call tenon.Call, st *taskState) (*tenon.Result, error) {
	c.awaitStream(ctx)
	raw, err := c.ask(ctx, "tasks/result", text(nil, "taskId", st.ID), nil, st.ID, nil, call.Ask)
	var rpc *jsonrpc.Error
	switch {
	case err == nil:
		return ParseResult(raw, false)
	case ctx.Err() != nil:
		return nil, c.taskFailed(ctx, st, "tasks/result", err)
	case errors.As(err, &rpc): // the error of the tool call: the task has failed
		return nil, c.explain(ctx, "tools/call", err, true)
	case tenon.ErrorCode(err) == tenon.CodeTimeout:
		return nil, nil
	}
	return nil, c.taskFailed(ctx, st, "tasks/result", err)
}

// mayPollAgain reports whether a failed request about a task may be repeated.
func (c *Client) mayPollAgain(ctx context.Context, err error) bool {
	var rpc *jsonrpc.Error
	return ctx.Err() == nil && c.peer.Err() == nil && !errors.As(err, &rpc) && tenon.ErrorCode(err) != tenon.CodeAuth
}

// teller returns a function that reports changes of a task as progress of its call.
func (st *taskState) teller(call tenon.Call) func(status, message string) {
	said, told := "", 0
	return func(status, message string) {
		now := status + "\n" + message
		if now == said || call.Progress == nil || status != "working" && status != "input_required" {
			return
		}
		said = now
		told++
		call.Progress(tenon.Progress{Progress: float64(told),
			Message: strings.TrimSuffix("task "+status+": "+message, ": ")})
	}
}

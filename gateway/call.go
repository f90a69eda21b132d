package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/view"
)

// Call implements [mcp.ToolSource]. The rules decide about the call, and the journal records it. If the call may have
// to wait, or if a rule counts calls, the record is written before the call is sent, otherwise within 100 ms; see
// [host.StartClientCall].
func (d *door) Call(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	if !d.g.enter() {
		return nil, errClosing
	}
	defer d.g.calls.Done()
	judged := d.counts(r.Client)
	ctx, cancel := untilGone(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.g.closed, func() { cancel(tenon.ErrClosing) })()
	if err := d.has(ctx, d.g.current(), r.Name); err != nil {
		return d.answer(r, nil, err)
	}
	key, err := callKey(d.key.who, r.Name, r.Arguments)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", err)
	}
	f := &following{door: d, request: r, key: key, caller: d.caller(r), judged: judged}
	var kept original
	if f.caller != nil && d.g.current().Service().Info().Config.Gateway.HiddenCharacters == config.HiddenKeep {
		f.caller.Original = kept.set
	}
	ctx = mcp.WithCaller(ctx, f.caller)
	mine, err := d.g.parked.turn(ctx, key)
	if err != nil {
		return d.reply(ctx, r, "", nil, err)
	}
	f.decided = mine.decided
	defer f.decided()
	if f.run, err = d.parkedRun(ctx, key, mine); err == nil {
		err = checkState(r.State, f.run)
	}
	defer func() { f.release() }()
	joins := f.run != "" // the parked run of an equal call
	if err == nil && !joins {
		result, moved, err := f.begin(ctx)
		if !moved {
			return d.reply(ctx, r, f.run, kept.of(result), err)
		}
	} else {
		f.decided()
		if err == nil {
			err = d.checkHeaders(ctx, r, f)
		}
	}
	if err != nil {
		return d.reply(ctx, r, f.run, nil, err)
	}
	if joins {
		f.follows(f.run)
		f.bring(ctx)
	}
	result, err := f.follow(ctx)
	return d.reply(ctx, r, f.run, kept.of(result), err)
}

// checkHeaders checks the headers of a request that joins a parked run; see [mcp.ToolRequest.CheckHeaders]. If they are
// wrong, the run stays for an equal call.
func (d *door) checkHeaders(ctx context.Context, r *mcp.ToolRequest, f *following) error {
	snapshot, _, err := host.ClientTools(ctx, d.g.current())
	if err != nil {
		return nil // the headers matter only between the client and here
	}
	if t, ok := snapshot.Lookup(r.Name); ok {
		err = r.CheckHeaders(t.Input)
	}
	if err != nil {
		d.g.parked.leave(f.key, f.run)
	}
	return err
}

// original is the result of a call with its hidden characters.
type original struct{ last atomic.Pointer[tenon.Result] }

func (o *original) set(r *tenon.Result) { o.last.Store(r) }

// of returns the original of a delivered result. It returns the delivered result itself if this is not exactly the
// escaped form of the original: the result may be shortened or refused, or be of another call in the same run.
func (o *original) of(delivered *tenon.Result) *tenon.Result {
	r := o.last.Load()
	if r == nil || delivered == nil {
		return delivered
	}
	escaped, err := tenon.VisibleResult(r).MarshalJSON()
	sent, err2 := delivered.MarshalJSON()
	if err != nil || err2 != nil || !bytes.Equal(escaped, sent) {
		return delivered
	}
	return r
}

// begin begins the call. If the call ends without becoming a run, begin returns its result. Otherwise moved is true,
// and the caller has to follow the run.
func (f *following) begin(ctx context.Context) (result *tenon.Result, moved bool, err error) {
	r := f.request
	credentials, _ := ctx.Value(brought{}).(host.Credentials)
	durable := r.Key != "" || r.Task != nil || r.State != "" || r.Responses != nil
	call, err := host.StartClientCall(ctx, f.g.current(), host.ToolCall{Name: r.Name, Arguments: r.Arguments,
		Principal: f.door.key.who, Credentials: credentials}, durable,
		func(p tenon.Progress) { f.progress(p.Progress, p.Total, p.Message) })
	if err != nil {
		return nil, false, err
	}
	f.follows(call.Run)
	if call.IsLight() {
		f.decided()
	}
	result, moved, err = call.Wait(ctx)
	if !moved {
		f.judged(verdictOf(err))
	}
	switch {
	case moved || ctx.Err() == nil:
	case isClosing(ctx):
		err = errClosing
	default:
		// the client is gone and learns of no error
		_ = call.Cancel(context.WithoutCancel(ctx), "the client gave up")
	}
	return result, moved, err
}

// bring gives the credentials of the request to the parked run of an equal call. They may have expired in the meantime,
// or been lost in a restart.
func (f *following) bring(ctx context.Context) {
	credentials, _ := ctx.Value(brought{}).(host.Credentials)
	if f.run == "" || len(credentials) == 0 {
		return
	}
	h := f.g.current()
	if row, err := h.Runs().Get(ctx, f.run); err == nil && row.State.Ended() {
		return // nothing would ever release them
	}
	if err := h.Service().Callers().SetCredentials(ctx, f.run, credentials); err != nil {
		h.Service().Info().Logger.Info("a parked call lacks credentials", "run", f.run, "error", err)
	}
}

// follows sets the run of the call. Until release, questions and log messages of servers during that run go to this
// client.
func (f *following) follows(run string) {
	f.release()
	f.run = run
	f.held = host.FollowClientCall(f.g.current(), run, f.caller)
}

// release undoes follows. It does nothing if there is no run.
func (f *following) release() {
	if f.held != nil {
		f.held()
	}
}

// caller returns the client of a request, as the servers behind the gateway see it.
func (d *door) caller(r *mcp.ToolRequest) *mcp.Caller {
	if r == nil {
		return nil
	}
	c := &mcp.Caller{Capabilities: r.Capabilities, LogLevel: r.LogLevel, Check: r.CheckHeaders}
	if r.LogLevel != "" {
		h := d.g.current()
		c.Log = func(params json.RawMessage) { r.LogRaw(h.Service().Callers().Mask(tenon.VisibleJSON(params))) }
	}
	return c
}

// has returns an error of code not_found unless the endpoint has a tool with this name.
func (d *door) has(ctx context.Context, h *host.Host, name string) error {
	if d.key.endpoint == "" {
		return nil
	}
	endpoint, err := endpointOf(h, d.key.endpoint)
	if err != nil {
		return err
	}
	snapshot, _, err := host.ClientTools(ctx, h)
	if err != nil {
		return err
	}
	if t, ok := snapshot.Lookup(name); ok && endpoint.Has(t) {
		return nil
	}
	return tenon.Errorf(tenon.CodeNotFound, "the endpoint has no tool '%s'", tenon.Visible(name))
}

// answer encodes the answer to a call. It splices the result as it is. Errors of the call become results, so that the
// client's model sees them. An unknown tool and errors of the server itself become JSON-RPC errors.
func (d *door) answer(r *mcp.ToolRequest, result *tenon.Result, err error) (json.RawMessage, error) {
	var in *inputNeeded
	if errors.As(err, &in) {
		return in.raw, nil
	}
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && tenon.ErrorCode(err) == tenon.CodeInternal { // of the gateway itself
		return nil, refused
	}
	if err == nil && result != nil {
		raw, err := result.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if !r.Modern {
			raw = without(raw, "resultType") // only the other era has this member
		}
		return raw, nil
	}
	if err == nil {
		err = tenon.Errorf(tenon.CodeInternal, "the call of '%s' ended without a result", r.Name)
	}
	message := string(d.g.current().Service().Callers().Mask([]byte(tenon.Visible(err.Error()))))
	switch tenon.ErrorCode(err) {
	case tenon.CodeNotFound:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Unknown tool: %s", tenon.Visible(r.Name))
	case tenon.CodeTool:
		if rpc := serverError(err, message); rpc != nil {
			return nil, rpc
		}
	}
	b := append(text([]byte(`{"content":[{"type":"text"`), "text", message), `}],"isError":true}`...)
	return b, nil
}

// ofServer matches a server's JSON-RPC error, with its code, in the message of a failed call.
var ofServer = lazyregexp.New(`(?s)^(?:.* failed: )?(-?[0-9]{1,10}): (.*)$`)

// serverError returns the JSON-RPC error with which the server answered a failed call. It returns nil if the message
// contains no such error.
func serverError(err error, message string) *jsonrpc.Error {
	found := ofServer().FindStringSubmatch(message)
	if found == nil {
		return nil
	}
	code, bad := strconv.Atoi(found[1])
	if bad != nil {
		return nil
	}
	text, _, _ := strings.Cut(found[2], " (data: ")
	e := jsonrpc.Errorf(code, "%s", text)
	if typed, ok := err.(*tenon.Error); ok {
		e.Data = typed.Data
	}
	return e
}

// without returns an object without a member. All other bytes stay.
func without(object []byte, key string) []byte {
	if rawjson.Field(object, key) == nil {
		return object
	}
	for t := range rawjson.Strings(object) {
		if t.Value < 0 || t.Depth != 1 || string(rawjson.Key(object[t.From:t.To])) != key {
			continue
		}
		from, to := t.From, rawjson.End(object, t.Value)
		if rest := bytes.TrimLeft(object[to:], blanks); rest[0] == ',' {
			to = len(object) - len(rest) + 1
		} else if before := bytes.TrimRight(object[:from], blanks); before[len(before)-1] == ',' { // it is the last one
			from = len(before) - 1
		}
		return append(append(make([]byte, 0, len(object)), object[:from]...), object[to:]...)
	}
	return object
}

const blanks = " \t\r\n"

// following is a client that waits for the result of a call.
type following struct {
	*door
	request *mcp.ToolRequest
	key     string
	run     string
	held    func() // ends the effect of follows
	decided func() // reports that this call is decided or parked, so that the next equal call can begin
	after   uint64
	asked   map[string]bool // ids of the parts of questions that were sent to this client; none is sent twice
	caller  *mcp.Caller
	judged  func(tenon.Verdict) // counts the first verdict about the call

	mu   sync.Mutex
	last float64 // the latest progress that was sent
}

// follow returns the result of the run. If ctx ends first, the run is cancelled, unless other clients follow it or the
// process ends.
func (f *following) follow(ctx context.Context) (*tenon.Result, error) {
	for {
		h := f.g.current()
		result, waits, err := f.read(ctx, h)
		switch {
		case isClosing(ctx):
			return nil, errClosing
		case err != nil && ctx.Err() != nil:
			f.giveUp(context.WithoutCancel(ctx))
			return nil, err
		case isInputNeeded(err):
			return nil, err
		case err != nil && h != f.g.current(): // the configuration was reloaded
			continue
		case !waits && f.request.IsGone():
			f.g.parked.leave(f.key, f.run)
			return result, err
		case !waits:
			if f.g.parked.done(f.key, f.run) {
				f.fetched(ctx)
			}
			return result, err
		}
		if err := f.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// giveUp cancels the run of a client that is gone, unless others follow it. If the run has ended already, its result is
// kept for an equal call. Errors are ignored, because the client is gone.
func (f *following) giveUp(ctx context.Context) {
	h := f.g.current()
	if row, err := h.Runs().Get(ctx, f.run); err == nil && row.State.Ended() {
		f.g.parked.leave(f.key, f.run)
		return
	}
	if f.g.parked.alone(f.key, f.run) {
		_ = h.Runs().Cancel(ctx, f.run, "the client gave up")
		f.fetched(ctx)
	}
}

// read reads the events of the run until it ends or waits.
func (f *following) read(ctx context.Context, h *host.Host) (result *tenon.Result, waits bool, err error) {
	for e, err := range h.Runs().Events(ctx, f.run, f.after) {
		if tenon.ErrorCode(err) == tenon.CodeNotFound { // the run, not the tool
			err = tenon.Errorf(tenon.CodeInternal, "the call is not in the journal any more: %w", err)
		}
		if err != nil {
			return nil, false, err
		}
		f.after = max(f.after, e.Seq)
		switch e.Kind {
		case agent.LiveProgress:
			if p, err := view.Try[tenon.Progress](e); err == nil {
				f.progress(p.Progress, p.Total, p.Message)
			}
		case agent.EventDecided:
			d, err := view.Try[agent.Decision](e)
			if err != nil {
				break
			}
			f.judged(d.Verdict)
			if d.Verdict != tenon.Ask {
				f.decided()
			}
		case agent.EventResult:
			o, err := view.Try[agent.Outcome](e)
			if err != nil {
				return nil, false, err
			}
			result = o.Result
		case tenon.EventQuestion: // a server asks during a call
			moved, stop, err := f.asks(ctx, e)
			defer stop()
			if moved || err != nil {
				return nil, moved, err
			}
		case engine.EventWaiting:
			return nil, true, nil
		case tenon.EventDone:
			done, err := view.Try[tenon.DoneData](e)
			if err == nil && done.Error != nil {
				err = done.Error
			}
			return result, false, err
		}
	}
	if ctx.Err() != nil {
		return nil, false, tenon.Errorf(tenon.CodeCancelled, "the call was cancelled: %w", context.Cause(ctx))
	}
	return nil, false, tenon.Errorf(tenon.CodeInternal, "run %s ended without saying how", f.run)
}

// progress reports progress to the client. The value never decreases, as the protocol demands.
func (f *following) progress(value, total float64, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if value <= f.last {
		value = f.last + 0.001
	}
	f.last = value
	if total < value {
		total = 0
	}
	f.request.Progress(value, total, message)
}

package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/exactjson"
	"github.com/tenonhq/tenon/internal/safezip"
	"github.com/tenonhq/tenon/internal/sse"
	"github.com/tenonhq/tenon/view"
)

// Runs returns the handle of the principal's runs. List uses the fields Session, State, Caller, Prefix, Before and
// Limit of its filter. If a run has ended meanwhile, Resume returns nil.
func (c *Client) Runs() host.Runs { return remoteRuns{c} }

type (
	remoteRuns struct{ *Client }
	remoteView struct {
		*Client
		id string
	}
	remoteData remoteView
)

func (c remoteRuns) Open(run string) host.View { return remoteView{c.Client, run} }

func (c remoteView) Data() host.RunData { return remoteData(c) }

func (c remoteRuns) List(ctx context.Context, f engine.Filter) ([]tenon.Run, error) {
	q := url.Values{}
	for k, v := range map[string]string{"session": f.Session, "state": string(f.State), "caller": f.Caller,
		"prefix": f.Prefix, "cursor": f.Before} {
		if v != "" {
			q.Set(k, v)
		}
	}
	f.Limit = cmp.Or(f.Limit, 100)
	return pages[tenon.Run](ctx, c.Client, at("runs"), q, f.Limit)
}

func (c remoteRuns) Get(ctx context.Context, ref string) (tenon.Run, error) {
	if n, err := strconv.Atoi(ref); err == nil && n < 0 {
		found, err := c.List(ctx, engine.Filter{Limit: -n})
		if err == nil && len(found) < -n {
			err = tenon.Errorf(tenon.CodeNotFound, "there is no run %s: there are %d", ref, len(found))
		}
		if err != nil {
			return tenon.Run{}, err
		}
		return found[-n-1], nil
	}
	if i := strings.LastIndexByte(ref, '/'); i > 0 { // the ids of called runs begin with the id of their caller
		if found, err := c.List(ctx, engine.Filter{Caller: ref[:i], Prefix: ref, Limit: maxPageSize}); err != nil {
			return tenon.Run{}, err
		} else if i := slices.IndexFunc(found, func(r tenon.Run) bool { return r.ID == ref }); i >= 0 {
			return found[i], nil
		}
	}
	found, err := c.List(ctx, engine.Filter{Prefix: ref, Limit: 2})
	whole := slices.IndexFunc(found, func(r tenon.Run) bool { return r.ID == ref })
	switch {
	case err != nil:
		return tenon.Run{}, err
	case ref == "" || len(found) == 0:
		return tenon.Run{}, tenon.Errorf(tenon.CodeNotFound, "there is no run '%s'; tenon runs list shows them", ref)
	case whole >= 0:
		return found[whole], nil
	case len(found) > 1:
		return tenon.Run{}, tenon.Errorf(tenon.CodeConflict, "'%s' begins the ids of several runs; give more of it",
			ref)
	}
	return found[0], nil
}

func (c remoteRuns) Cancel(ctx context.Context, run, reason string) error {
	return c.cancel(ctx, run, CancelRequest{Reason: reason})
}

// Withdraw is [host.Withdraw] for a run of the other tenon. An older tenon does not know how to withdraw messages; it
// only cancels the run.
func (c *Client) Withdraw(ctx context.Context, run, reason string) error {
	err := c.cancel(ctx, run, CancelRequest{Reason: reason, Withdraw: true})
	switch tenon.ErrorCode(err) {
	case tenon.CodeConflict: // it has ended
		return nil
	case tenon.CodeInvalid:
		return c.cancel(ctx, run, CancelRequest{Reason: reason})
	}
	return err
}

func (c *Client) cancel(ctx context.Context, run string, r CancelRequest) error {
	_, err := fetch[tenon.Run](ctx, c, http.MethodPost, at("runs", run, "cancel"), r, "")
	return err
}

func (c remoteRuns) Resume(ctx context.Context, run string) error {
	_, err := fetch[tenon.Run](ctx, c.Client, http.MethodPost, at("runs", run, "resume"), nil, "")
	if tenon.ErrorCode(err) == tenon.CodeConflict {
		return nil
	}
	return err
}

func (c remoteRuns) Steer(ctx context.Context, run, text, _ string) (tenon.Event, error) {
	r, err := fetch[SteerResponse](ctx, c.Client, http.MethodPost, at("runs", run, "steer"), SteerRequest{text}, "")
	return tenon.Event{Run: r.Run, Seq: r.Seq}, err
}

// rejoinTries and rejoinPause limit how long a client tries to reconnect a lost stream, to about a minute.
const (
	rejoinTries = 30
	rejoinPause = 2 * time.Second
)

// Rejoin makes streams of events reconnect when the connection is lost. They continue after the last event that was
// received. notify reports the first loss. pause is the time between two attempts; if 0, it is two seconds. Call Rejoin
// before the client is used.
func (c *Client) Rejoin(notify func(format string, args ...any), pause time.Duration) {
	pause = cmp.Or(pause, rejoinPause)
	c.lost, c.pause = notify, pause
}

func (c remoteRuns) Events(ctx context.Context, run string, after uint64) iter.Seq2[tenon.Event, error] {
	if c.lost == nil {
		return c.stream(ctx, run, after)
	}
	return func(yield func(tenon.Event, error) bool) {
		for tries := 0; ; {
			var broke error
			for e, err := range c.stream(ctx, run, after) {
				if err != nil {
					broke = err
					break
				}
				after, tries = max(after, e.Seq), 0
				if !yield(e, nil) {
					return
				}
			}
			if broke == nil || ctx.Err() != nil {
				return
			}
			if tries++; tenon.ErrorCode(broke) != tenon.CodeUnreachable || tries > rejoinTries || after == 0 {
				yield(tenon.Event{}, broke)
				return
			}
			if tries == 1 {
				c.lost("tenon: %s; joining it again", broke)
			}
			select {
			case <-time.After(c.pause):
			case <-ctx.Done():
				return
			}
			// Discard the text received so far, because the answer starts again. A struct of strings always encodes.
			data, _ := json.Marshal(engine.Delta{Text: "the connection broke off"})
			if tries == 1 && !yield(tenon.Event{Run: run, Kind: engine.LiveReset, Data: data}, nil) {
				return
			}
		}
	}
}

// stream yields the events of one connection.
func (c *Client) stream(ctx context.Context, run string, after uint64) iter.Seq2[tenon.Event, error] {
	return func(yield func(tenon.Event, error) bool) {
		res, err := c.do(ctx, http.MethodGet, at("runs", run, "events")+"?after="+strconv.FormatUint(after, 10), nil,
			"", "text/event-stream")
		if err != nil {
			yield(tenon.Event{}, err)
			return
		}
		defer res.Body.Close()
		r := sse.NewReader(res.Body, maxAnswer)
		defer r.Close()
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return
			}
			var stuck *tenon.Error
			if errors.As(err, &stuck) {
				yield(tenon.Event{}, stuck)
				return
			}
			if err != nil {
				yield(tenon.Event{}, tenon.Errorf(tenon.CodeUnreachable, "%s, which worked on run %s, has gone: %w",
					c.whose, run, err))
				return
			}
			event, err := c.readEvent(run, e)
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// readEvent decodes an event of a run, or returns the error that ends the stream.
func (c *Client) readEvent(run string, e sse.Event) (event tenon.Event, err error) {
	switch e.Type {
	case "stopping":
		return event, tenon.Errorf(tenon.CodeUnreachable, "%s is stopping; it continues run %s when it is started "+
			"again", c.whose, run)
	case "problem":
		return event, readProblem(0, e.Data)
	}
	if err := exactjson.DecodeOpen(e.Data, &event); err != nil {
		return tenon.Event{}, tenon.Errorf(tenon.CodeProtocol, "an event of run %s cannot be read: %w", run, err)
	}
	return event, nil
}

func (c remoteView) Journal(ctx context.Context, after uint64, limit int) ([]tenon.Event, error) {
	return pages[tenon.Event](ctx, c.Client, at("runs", c.id, "events"),
		url.Values{"cursor": {strconv.FormatUint(after, 10)}}, limit)
}

func (c remoteView) Report(ctx context.Context) (view.Report, error) {
	r, err := fetch[RunInfo](ctx, c.Client, http.MethodGet, at("runs", c.id), nil, "")
	return r.Report, err
}

func (c remoteView) Conversation(ctx context.Context) ([]*tenon.Message, error) {
	l, err := fetch[list[*tenon.Message]](ctx, c.Client, http.MethodGet, at("runs", c.id, "messages"), nil, "")
	if err == nil && slices.Contains(l.Items, nil) {
		return nil, c.noMessage()
	}
	return l.Items, err
}

// noMessage returns the error about a list of messages that contains an empty entry.
func (c *Client) noMessage() error {
	return tenon.Errorf(tenon.CodeProtocol, "the answer of %s cannot be read: an entry of the conversation has "+
		"no message", c.whose)
}

func (c remoteView) Replay(ctx context.Context) (host.Replay, error) {
	return fetch[host.Replay](ctx, c.Client, http.MethodPost, at("runs", c.id, "replay"), nil, "")
}

func (c remoteView) Artifact(ctx context.Context, id string) (data []byte, mimeType string, err error) {
	return c.file(ctx, at("runs", c.id, "artifacts", id))
}

// Owner reports that the remote process serves the run, because tenon serve works on all runs of its store.
func (c remoteView) Owner(context.Context) (host.Owner, error) {
	return host.Owner{Working: true, Served: true}, nil
}

func (c remoteData) Tables(ctx context.Context) ([]host.RunTable, error) {
	l, err := fetch[list[host.RunTable]](ctx, c.Client, http.MethodGet, at("runs", c.id, "tables"), nil, "")
	return l.Items, err
}

// OpenTable copies the table to a temporary file without a name.
func (c remoteData) OpenTable(ctx context.Context, digest string) (*host.TableReader, error) {
	res, err := c.do(ctx, http.MethodGet, at("runs", c.id, "tables", digest)+"?download=true", nil, "", "")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	s, err := safezip.NewSpool("the table", math.MaxInt64, safezip.From(res.Body))
	var known *tenon.Error
	switch {
	case errors.As(err, &known):
		return nil, err
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeUnreachable, "%s broke off: %w", c.whose, err)
	}
	return host.NewTableReader(s.Section(), s.Close), nil
}

func (c remoteData) Page(ctx context.Context, digest string, o host.PageOptions) (host.TablePage, error) {
	return fetch[host.TablePage](ctx, c.Client, http.MethodGet,
		at("runs", c.id, "tables", digest)+"?"+pageQuery(o).Encode(), nil, "")
}

// pageQuery returns the options of a page of rows as query parameters.
func pageQuery(o host.PageOptions) url.Values {
	return url.Values{"skip": {strconv.FormatInt(o.Skip, 10)}, "limit": {strconv.FormatInt(o.Limit, 10)},
		"whole": {strconv.FormatBool(o.Whole)}, "count": {strconv.FormatBool(o.Count)}}
}

// ToolTable returns no table, because the remote process resumes its runs with their tables.
func (c remoteData) ToolTable(context.Context) (*agent.ToolTable, []string, error) {
	return nil, nil, nil
}

func (c remoteData) Workflow(ctx context.Context) (host.WorkflowView, error) {
	return fetch[host.WorkflowView](ctx, c.Client, http.MethodGet, at("runs", c.id, "workflow"), nil, "")
}

func (c remoteData) Export(context.Context) ([]byte, error) {
	return nil, notOverHTTP("writing the calls of a run as a workflow")
}

func (c remoteData) Result(context.Context) (host.WorkflowResult, error) {
	return host.WorkflowResult{}, notOverHTTP("the result of a workflow")
}

// notOverHTTP returns the error of a method for which there is no route.
func notOverHTTP(what string) error {
	return tenon.Errorf(tenon.CodeInvalid, "not available over HTTP: %s; run it on the machine of the store", what)
}

var (
	_ host.Runs    = remoteRuns{}
	_ host.View    = remoteView{}
	_ host.RunData = remoteData{}
)

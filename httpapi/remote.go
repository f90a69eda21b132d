package httpapi

import (
	"context"
	"encoding/json"
	"iter"
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
	"github.com/tenonhq/tenon/servers"
)

// The methods here are those of [host.Host], over the wire: they see what is the
// principal's, and what only the owner may do is denied to others.

// at is a path of the native API with its parts escaped.
func at(parts ...string) string {
	p := prefix
	for _, s := range parts {
		p += "/" + url.PathEscape(s)
	}
	return p
}

// pages reads a list to its end, or to so many items; 0: all.
func pages[T any](ctx context.Context, c *Client, path string, q url.Values, most int) ([]T, error) {
	all := []T{}
	for {
		n := maxPageSize
		if most > 0 {
			n = min(n, most-len(all))
		}
		q.Set("limit", strconv.Itoa(n))
		page, err := fetch[list[T]](ctx, c, http.MethodGet, path+"?"+q.Encode(), nil, "")
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" || most > 0 && len(all) >= most {
			return all, nil
		}
		q.Set("cursor", page.Next)
	}
}

// Runs returns rows of runs, newest first. Of the filter, Session, State, Caller,
// Prefix, Before and Limit count.
func (c *Client) Runs(ctx context.Context, f engine.Filter) ([]tenon.Run, error) {
	q := url.Values{}
	for k, v := range map[string]string{"session": f.Session, "state": string(f.State), "caller": f.Caller, "prefix": f.Prefix, "cursor": f.Before} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if f.Limit == 0 {
		f.Limit = 100
	}
	return pages[tenon.Run](ctx, c, at("runs"), q, f.Limit)
}

// RunRow finds a run: by id, by the unique beginning of one, or counted from the last
// ("-1").
func (c *Client) RunRow(ctx context.Context, ref string) (tenon.Run, error) {
	if n, err := strconv.Atoi(ref); err == nil && n < 0 {
		found, err := c.Runs(ctx, engine.Filter{Limit: -n})
		if err == nil && len(found) < -n {
			err = tenon.Errorf(tenon.CodeNotFound, "there is no run %s: there are %d", ref, len(found))
		}
		if err != nil {
			return tenon.Run{}, err
		}
		return found[-n-1], nil
	}
	if i := strings.LastIndexByte(ref, '/'); i > 0 { // what it called, and what was called after it, begin with its id
		if found, err := c.Runs(ctx, engine.Filter{Caller: ref[:i], Prefix: ref, Limit: maxPageSize}); err != nil {
			return tenon.Run{}, err
		} else if i := slices.IndexFunc(found, func(r tenon.Run) bool { return r.ID == ref }); i >= 0 {
			return found[i], nil
		}
	}
	found, err := c.Runs(ctx, engine.Filter{Prefix: ref, Limit: 2})
	whole := slices.IndexFunc(found, func(r tenon.Run) bool { return r.ID == ref })
	switch {
	case err != nil:
		return tenon.Run{}, err
	case ref == "" || len(found) == 0:
		return tenon.Run{}, tenon.Errorf(tenon.CodeNotFound, "there is no run '%s'; tenon runs list shows them", ref)
	case whole >= 0:
		return found[whole], nil
	case len(found) > 1:
		return tenon.Run{}, tenon.Errorf(tenon.CodeConflict, "'%s' begins the ids of several runs; give more of it", ref)
	}
	return found[0], nil
}

// Journal returns the stored events of a run after the given number.
func (c *Client) Journal(ctx context.Context, run string, after uint64) ([]tenon.Event, error) {
	return pages[tenon.Event](ctx, c, at("runs", run, "events"), url.Values{"cursor": {strconv.FormatUint(after, 10)}}, 0)
}

// Report is what a run came to.
func (c *Client) Report(ctx context.Context, run string) (agent.Report, error) {
	r, err := fetch[RunInfo](ctx, c, http.MethodGet, at("runs", run), nil, "")
	return r.Report, err
}

// Conversation returns all that was said up to a run and in it.
func (c *Client) Conversation(ctx context.Context, run string) ([]*tenon.Message, error) {
	l, err := fetch[list[*tenon.Message]](ctx, c, http.MethodGet, at("runs", run, "messages"), nil, "")
	return l.Items, err
}

// Artifact returns a stored part of a result.
func (c *Client) Artifact(ctx context.Context, run, id string) (data []byte, mimeType string, err error) {
	return c.file(ctx, at("runs", run, "artifacts", id))
}

// RunTables lists the tables of a run, as [host.Host.RunTables] does.
func (c *Client) RunTables(ctx context.Context, run string) ([]host.RunTable, error) {
	l, err := fetch[list[host.RunTable]](ctx, c, http.MethodGet, at("runs", run, "tables"), nil, "")
	return l.Items, err
}

// RunTableBytes returns a table of a run, an Arrow file or stream.
func (c *Client) RunTableBytes(ctx context.Context, run, digest string) ([]byte, error) {
	data, _, err := c.file(ctx, at("runs", run, "tables", digest)+"?download=true")
	return data, err
}

// Cancel asks a run to end.
func (c *Client) Cancel(ctx context.Context, run, reason string) error {
	_, err := fetch[tenon.Run](ctx, c, http.MethodPost, at("runs", run, "cancel"), CancelRequest{reason}, "")
	return err
}

// Resume goes on with a run. One that is worked on, or whose decision has it go on, is
// left as it is.
func (c *Client) Resume(ctx context.Context, run string) error {
	_, err := fetch[tenon.Run](ctx, c, http.MethodPost, at("runs", run, "resume"), nil, "")
	return err
}

// Steer sends a message into a run. By is who the token belongs to, whatever is given.
func (c *Client) Steer(ctx context.Context, run, text, _ string) (tenon.Event, error) {
	r, err := fetch[SteerResponse](ctx, c, http.MethodPost, at("runs", run, "steer"), SteerRequest{text}, "")
	return tenon.Event{Run: r.Run, Seq: r.Seq}, err
}

// Approvals returns what waits for a person, oldest first.
func (c *Client) Approvals(ctx context.Context) ([]host.Approval, error) { return c.Awaited(ctx, "") }

// Awaited returns what a run, or one that it called, waits for.
func (c *Client) Awaited(ctx context.Context, run string) ([]host.Approval, error) {
	path := at("approvals")
	if run != "" {
		path += "?run=" + url.QueryEscape(run)
	}
	l, err := fetch[list[host.Approval]](ctx, c, http.MethodGet, path, nil, "")
	return l.Items, err
}

// Settle answers what a run waits for at a step. Won is the event that decided, with
// its kind, data and time.
func (c *Client) Settle(ctx context.Context, run, step string, r agent.Ruling) (won tenon.Event, mine bool, err error) {
	d, err := fetch[Decided](ctx, c, http.MethodPost, at("runs", run, "decide"),
		DecideRequest{Step: step, Verdict: r.Verdict, Reason: r.Reason, Arguments: r.Arguments, Remember: r.Remember}, "")
	if err != nil {
		return won, false, err
	}
	won = tenon.Event{Run: run, Step: step, Kind: d.Kind, Time: d.Time}
	won.Data, err = json.Marshal(d.Won)
	return won, d.Mine, err
}

// Grants lists what was allowed for good, by the principal.
func (c *Client) Grants(ctx context.Context, _ tenon.Principal) ([]host.Grant, error) {
	l, err := fetch[list[host.Grant]](ctx, c, http.MethodGet, at("grants"), nil, "")
	return l.Items, err
}

// Revoke takes a grant of the principal back.
func (c *Client) Revoke(ctx context.Context, g host.Grant) error {
	return c.done(ctx, http.MethodPost, at("grants", "revoke"), RevokeRequest{g.Server, g.Remote})
}

// Owned is always so: the process at the other end works on all runs.
func (c *Client) Owned(string) (bool, error) { return true, nil }

// Claimed is always so, too.
func (c *Client) Claimed(string) (bool, error) { return true, nil }

// Stats counts what was used, as GET /api/v1/stats/{by} does.
func (c *Client) Stats(ctx context.Context, q host.StatsQuery) ([]host.Stat, error) {
	path := at("stats", q.By)
	if !q.Since.IsZero() {
		path += "?since=" + url.QueryEscape(q.Since.UTC().Format(time.RFC3339Nano))
	}
	l, err := fetch[list[host.Stat]](ctx, c, http.MethodGet, path, nil, "")
	return l.Items, err
}

// Servers lists the configured servers with their state; nothing is started.
func (c *Client) Servers(ctx context.Context) ([]servers.Status, error) {
	l, err := fetch[list[servers.Status]](ctx, c, http.MethodGet, at("servers"), nil, "")
	return l.Items, err
}

// Tools lists the tools as models see them.
func (c *Client) Tools(ctx context.Context) (ToolList, error) {
	return fetch[ToolList](ctx, c, http.MethodGet, at("tools"), nil, "")
}

// Tool tells all of one tool.
func (c *Client) Tool(ctx context.Context, name string) (ToolDetail, error) {
	return fetch[ToolDetail](ctx, c, http.MethodGet, at("tools", name), nil, "")
}

// StartCall begins a tool call of the principal.
func (c *Client) StartCall(ctx context.Context, name string, args json.RawMessage) (tenon.Run, error) {
	r, err := fetch[CallResponse](ctx, c, http.MethodPost, at("tools", name, "call"), CallRequest{Arguments: args, Detach: true}, "")
	return r.Run, err
}

// FollowCall follows a call that StartCall began, as [host.Host.FollowCall] does.
func (c *Client) FollowCall(ctx context.Context, run string, after uint64, watch func(tenon.Event)) (*tenon.Result, error) {
	return c.FollowEvents(ctx, run, c.Events(ctx, run, after), watch)
}

// FollowEvents is FollowCall with the events of the run, however they come.
func (c *Client) FollowEvents(ctx context.Context, run string, events iter.Seq2[tenon.Event, error], watch func(tenon.Event)) (*tenon.Result, error) {
	result, err := host.CallResult(ctx, run, events, watch)
	if err != nil && ctx.Err() != nil {
		_ = c.Cancel(context.WithoutCancel(ctx), run, "the caller gave up") // nobody is left to be told
	}
	return result, err
}

// done sends a request whose answer says nothing but that it was done.
func (c *Client) done(ctx context.Context, method, path string, body any) error {
	res, err := c.do(ctx, method, path, body, "", "application/json")
	if err != nil {
		return err
	}
	return res.Body.Close()
}

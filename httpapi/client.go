package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/sse"
	"github.com/tenonhq/tenon/servers"
)

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 64 << 20

// Client talks to the process that serves a store: at its socket, or from anywhere at
// its address. Its methods return the errors that the host of that process returned, and
// unreachable where there is no such process. It is safe for concurrent use.
type Client struct {
	http  *http.Client
	base  string // without a slash at its end
	whose string // the process, in errors
	token tenon.Secret
}

// NewClient returns a client of the socket at path. Nothing is connected yet.
func NewClient(path string) *Client {
	return &Client{base: "http://tenon", whose: "the tenon serve of this store", http: &http.Client{Transport: &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, path) },
		DisableCompression: true,
	}}}
}

// NewRemote returns a client of the tenon serve at an address such as
// https://tenon.example.com, with the bearer token of a principal. Nothing is connected
// yet. Redirects are not followed: they would carry the token elsewhere. Errors: invalid
// (the address).
func NewRemote(address string, token tenon.Secret) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "'%s' is not the address of a tenon serve: write http://HOST:PORT or https://HOST", redactURL(address))
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	return &Client{base: strings.TrimRight(u.String(), "/"), whose: "the tenon at " + u.Host, token: token,
		http: &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// redactURL leaves out what may be a password or a token.
func redactURL(address string) string {
	address, _, _ = strings.Cut(address, "#")
	address, _, _ = strings.Cut(address, "?")
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		if _, host, ok := strings.Cut(rest, "@"); ok {
			return scheme + "://…@" + host
		}
	}
	return address
}

// Close ends the connections that are idle. It returns nil.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Health asks whether somebody serves.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return fetch[Health](ctx, c, http.MethodGet, "/healthz", nil, "")
}

// Start begins a run. A key that is not empty makes it safe to ask again.
func (c *Client) Start(ctx context.Context, q StartRequest, key string) (StartResponse, error) {
	return fetch[StartResponse](ctx, c, http.MethodPost, "/api/v1/runs", q, key)
}

// Events yields a run's events after the given number, live ones included, until
// the run ends or waits, as [host.Host.Events] does.
func (c *Client) Events(ctx context.Context, run string, after uint64) iter.Seq2[tenon.Event, error] {
	return func(yield func(tenon.Event, error) bool) {
		path := "/api/v1/runs/" + url.PathEscape(run) + "/events?after=" + strconv.FormatUint(after, 10)
		res, err := c.do(ctx, http.MethodGet, path, nil, "", "text/event-stream")
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
			if err != nil {
				yield(tenon.Event{}, tenon.Errorf(tenon.CodeUnreachable, "%s, which worked on run %s, has gone: %w", c.whose, run, err))
				return
			}
			if e.Type == "stopping" {
				yield(tenon.Event{}, tenon.Errorf(tenon.CodeUnreachable, "%s is stopping; run %s goes on when it is there again", c.whose, run))
				return
			}
			if e.Type == "problem" {
				yield(tenon.Event{}, readProblem(0, e.Data))
				return
			}
			var event tenon.Event
			if err := json.Unmarshal(e.Data, &event); err != nil {
				yield(tenon.Event{}, tenon.Errorf(tenon.CodeProtocol, "an event of run %s cannot be read: %w", run, err))
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

// SwitchServer takes a server out of use, or into use again; see [host.Host.SwitchServer].
func (c *Client) SwitchServer(ctx context.Context, name string, on bool) (servers.Status, error) {
	verb := "/disable"
	if on {
		verb = "/enable"
	}
	return fetch[servers.Status](ctx, c, http.MethodPost, "/api/v1/servers/"+url.PathEscape(name)+verb, nil, "")
}

// RestartServer connects a server anew; see [host.Host.RestartServer].
func (c *Client) RestartServer(ctx context.Context, name string) (servers.Status, error) {
	return fetch[servers.Status](ctx, c, http.MethodPost, "/api/v1/servers/"+url.PathEscape(name)+"/restart", nil, "")
}

// fetch sends a request and reads the answer.
func fetch[T any](ctx context.Context, c *Client, method, path string, body any, key string) (v T, err error) {
	res, err := c.do(ctx, method, path, body, key, "application/json")
	if err != nil {
		return v, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		return v, tenon.Errorf(tenon.CodeProtocol, "the answer of %s cannot be read: %w", c.whose, err)
	}
	return v, nil
}

// do sends a request and returns the answer, if it is a good one.
func (c *Client) do(ctx context.Context, method, path string, body any, key, accept string) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		b, err := encode(body)
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeInternal, "the request cannot be written: %w", err)
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if !c.token.IsZero() {
		req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	res, err := c.http.Do(req)
	var e *tenon.Error
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
	case errors.As(err, &e):
		return nil, e // of dial, without the request around it
	default:
		return nil, tenon.Errorf(tenon.CodeUnreachable, "%s does not answer: %w", c.whose, bare(err))
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeUnreachable, "%s broke off: %w", c.whose, err)
	}
	return nil, readProblem(res.StatusCode, b)
}

// bare is an error of net/http without the request around it.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// readProblem makes an error again of what was sent of one.
func readProblem(status int, b []byte) error {
	var p Problem
	if err := json.Unmarshal(b, &p); err != nil || p.Code == "" {
		return tenon.Errorf(tenon.CodeProtocol, "what answers is no tenon serve, or something stands before it: status %d", status)
	}
	return &tenon.Error{Code: p.Code, Message: p.Detail, Data: p.Data}
}

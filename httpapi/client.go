package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/exactjson"
)

// maxAnswer is the largest answer that a client reads, in bytes.
const maxAnswer = 64 << 20

// Client is a client of a running tenon serve, over its unix socket or over HTTP. Its methods return the errors that
// the host of that process returned, and an error of code unreachable if no process answers. It is safe for concurrent
// use.
type Client struct {
	http  *http.Client
	base  string // URL that precedes each path, without a trailing slash
	whose string // name of the process in errors
	pulse *pulse // checks whether the process answers
	token tenon.Secret

	lost  func(format string, args ...any) // reports a lost stream; if nil, streams do not reconnect
	pause time.Duration                    // between two attempts to reconnect
}

// NewClient returns a client of the unix socket at path. It connects with the first request.
func NewClient(path string) *Client {
	c := &Client{base: "http://tenon", whose: "the tenon serve of this store"}
	c.pulse = &pulse{url: c.base + "/healthz", whose: c.whose, before: true}
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := dial(ctx, path)
		if err == nil {
			c.pulse.pid.Store(int64(peerOf(conn)))
		}
		return conn, err
	}
	c.http = &http.Client{Transport: &http.Transport{DialContext: connect, DisableCompression: true}}
	c.pulse.client = &http.Client{Transport: &http.Transport{DialContext: connect, DisableKeepAlives: true}}
	return c
}

// NewRemote returns a client of the tenon serve at an address such as https://tenon.example.com, with the bearer token
// of a principal. It connects with the first request. It follows no redirects, because they would send the token to
// another address. Errors: invalid (the address).
func NewRemote(address string, token tenon.Secret) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" ||
		u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, tenon.Errorf(tenon.CodeInvalid,
			"'%s' is not the address of a tenon serve: write http://HOST:PORT or https://HOST", redactURL(address))
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	c := &Client{base: strings.TrimRight(u.String(), "/"), whose: "the tenon at " + u.Host, token: token,
		http: &http.Client{Transport: t, CheckRedirect: stay}}
	c.pulse = &pulse{client: c.http, url: c.base + "/healthz", whose: c.whose}
	return c, nil
}

// stay refuses redirects.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// redactURL removes the parts of a URL that may contain a password or a token: user, query and fragment.
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

// Health calls GET /healthz, which succeeds if the process is running.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return fetch[Health](ctx, c, http.MethodGet, "/healthz", nil, "")
}

// Start starts a run. If key is not empty, it is sent as Idempotency-Key: a repeated request then returns the run of
// the first one.
func (c *Client) Start(ctx context.Context, q StartRequest, key string) (StartResponse, error) {
	return fetch[StartResponse](ctx, c, http.MethodPost, "/api/v1/runs", q, key)
}

// fetch sends a request and decodes the answer as a T. body is encoded as JSON, or nil. key is the Idempotency-Key, or
// "".
func fetch[T any](ctx context.Context, c *Client, method, path string, body any, key string) (v T, err error) {
	res, err := c.do(ctx, method, path, body, key, "application/json")
	if err != nil {
		return v, err
	}
	return answerOf[T](c, res)
}

// answerOf reads the body of an answer and closes it.
func answerOf[T any](c *Client, res *http.Response) (v T, err error) {
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	var stuck *tenon.Error
	if errors.As(err, &stuck) {
		return v, stuck
	}
	if err == nil {
		err = exactjson.DecodeOpen(b, &v) // with exact member names, like other JSON clients
	}
	if err != nil {
		return v, tenon.Errorf(tenon.CodeProtocol, "the answer of %s cannot be read: %w", c.whose, err)
	}
	return v, nil
}

// fetchBehind is fetch for an answer that may omit runs; see [BehindHeader].
func fetchBehind[T any](ctx context.Context, c *Client, path string, behind func(runs int)) (v T, err error) {
	res, err := c.do(ctx, http.MethodGet, path, nil, "", "application/json")
	if err != nil {
		return v, err
	}
	if n, err := strconv.Atoi(res.Header.Get(BehindHeader)); err == nil && n > 0 && behind != nil {
		behind(n)
	}
	return answerOf[T](c, res)
}

// do sends a request and returns its answer. A body that is a reader is sent as it is, any other as JSON.
// A status of 300 or more is returned as an error.
func (c *Client) do(ctx context.Context, method, path string, body any, key, accept string) (*http.Response, error) {
	r, kind := io.Reader(nil), ""
	if raw, ok := body.(io.Reader); ok {
		r, kind = raw, "application/octet-stream"
	} else if body != nil {
		b, err := encode(body)
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeInternal, "the request cannot be written: %w", err)
		}
		r, kind = bytes.NewReader(b), "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%w", err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
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
	req.Header.Set(headerClient, commandLine)
	res, err := c.send(req)
	var e *tenon.Error
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
	case errors.As(err, &e):
		return nil, e // the error of dial, without the *url.Error around it
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

// bare returns the cause of a *url.Error, so that messages do not repeat method and URL.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// readProblem converts the problem details of an answer to the [tenon.Error] that the process returned.
func readProblem(status int, b []byte) error {
	var p Problem
	if err := exactjson.DecodeOpen(b, &p); err != nil || p.Code == "" {
		return tenon.Errorf(tenon.CodeProtocol, "the answer has status %d, and is not from a tenon serve: check the "+
			"address, and the proxy in front of it", status)
	}
	return &tenon.Error{Code: p.Code, Message: p.Detail, Data: p.Data}
}

// Proposals returns the changes of the configuration that wait for the owner.
func (c *Client) Proposals(ctx context.Context) ([]Proposal, error) {
	l, err := fetch[list[Proposal]](ctx, c, http.MethodGet, prefix+"/config/proposals", nil, "")
	return l.Items, err
}

// AcceptProposal agrees to the change with this digest.
func (c *Client) AcceptProposal(ctx context.Context, id, digest string) (Proposal, error) {
	return fetch[Proposal](ctx, c, http.MethodPost, at("config", "proposals", id, "accept"), AcceptRequest{digest}, "")
}

// RejectProposal drops a proposed change.
func (c *Client) RejectProposal(ctx context.Context, id string) (Proposal, error) {
	return fetch[Proposal](ctx, c, http.MethodPost, at("config", "proposals", id, "reject"), struct{}{}, "")
}

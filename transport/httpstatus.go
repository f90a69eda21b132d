package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
)

// ErrSession is the cause of an error that says that the server does not know
// our session any more. The request was refused, so it may be sent again after
// a new initialize.
var ErrSession = errors.New("the session has ended")

// StatusError is an HTTP answer that is no MCP message.
type StatusError struct {
	Status      int
	ContentType string
	Challenge   string // WWW-Authenticate, as it came
	Location    string // of a redirect that was not followed
	RetryAfter  string
	Text        string // beginning of the body
}

// Error says what came instead of a message.
func (e *StatusError) Error() string {
	switch {
	case e.Status == http.StatusTemporaryRedirect || e.Status == http.StatusPermanentRedirect:
		to := e.Location
		if u, err := url.Parse(to); err == nil && u.Host != "" {
			to = u.Scheme + "://" + u.Host
		}
		return fmt.Sprintf("HTTP %d redirects to %s; redirects to another origin are not followed because they would carry the credentials", e.Status, to)
	case e.Status >= 300 && e.Status < 400:
		return fmt.Sprintf("HTTP %d redirects to %s; if that is the MCP endpoint, write its address as the URL", e.Status, strconv.QuoteToGraphic(MaskURL(e.Location)))
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return fmt.Sprintf("HTTP %d %s: the server refuses these credentials", e.Status, http.StatusText(e.Status))
	case strings.Contains(e.ContentType, "html"):
		return fmt.Sprintf("HTTP %d with a web page (%s) instead of an MCP message; check the URL", e.Status, e.ContentType)
	case e.Status < 300:
		return fmt.Sprintf("HTTP %d with content type %q instead of an MCP message", e.Status, e.ContentType)
	}
	if e.Text != "" {
		return fmt.Sprintf("HTTP %d %s: %s", e.Status, http.StatusText(e.Status), e.Text)
	}
	return fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status))
}

// refusal reads a JSON body of an error status: a JSON-RPC error of this
// request, else a bare status.
func (h *HTTP) refusal(resp *http.Response, body []byte, m jsonrpc.Outgoing, st *httpState, deliver func([]byte) bool) error {
	var msg jsonrpc.Message
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusTooManyRequests ||
		isForgotten(resp.StatusCode, body, m, st) {
		return h.describe(resp, body, m, st)
	}
	if jsonrpc.Parse(body, &msg) == nil && msg.Error != nil {
		if !deliver(body) {
			return jsonrpc.ParseError(msg.Error) // its id is null or wrong, but it came for us
		}
		return nil
	}
	return h.describe(resp, body, m, st)
}

// isForgotten reports whether a server refused a request because it does not know
// our session any more. It should say so with 404 (2025-11-25, transports). Many
// say it with 400, in words, and without the request's id: that is an answer of
// what stands before the server's handlers, so nothing was carried out.
func isForgotten(status int, body []byte, m jsonrpc.Outgoing, st *httpState) bool {
	if st.session == "" || st.modern || m.Method == "initialize" {
		return false
	}
	if status != http.StatusBadRequest {
		return status == http.StatusNotFound
	}
	var msg jsonrpc.Message
	said := body
	if jsonrpc.Parse(body, &msg) == nil {
		if len(msg.ID) > 0 && string(msg.ID) != "null" {
			return false
		}
		said = msg.Error
	}
	said = bytes.ToLower(said)
	return bytes.Contains(said, []byte("session")) || bytes.Contains(said, []byte("not initialized"))
}

func (h *HTTP) status(resp *http.Response, m jsonrpc.Outgoing, st *httpState) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // the status matters, not its text
	return h.describe(resp, text, m, st)
}

func (h *HTTP) describe(resp *http.Response, body []byte, m jsonrpc.Outgoing, st *httpState) error {
	e := &StatusError{Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), Location: resp.Header.Get("Location"),
		Challenge: strings.Join(resp.Header.Values("WWW-Authenticate"), ", "), RetryAfter: resp.Header.Get("Retry-After")}
	if text := bytes.TrimSpace(body); len(text) > 0 && !strings.Contains(e.ContentType, "html") {
		e.Text = MaskURLs(strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(string(text[:min(len(text), 300)]), "\uFFFD")))
	}
	code := tenon.CodeProtocol
	switch s := resp.StatusCode; {
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		code = tenon.CodeAuth
	case isForgotten(s, body, m, st):
		return &tenon.Error{Code: tenon.CodeUnreachable, Message: "the server does not know our session any more", Err: fmt.Errorf("%w: %w", ErrSession, e)}
	case s == http.StatusTooManyRequests:
		code = tenon.CodeRateLimited
	case s == http.StatusServiceUnavailable:
		code = tenon.CodeUnreachable
	case s >= 500:
		return &jsonrpc.LostError{Sent: true, Err: e}
	}
	return &tenon.Error{Code: code, Message: e.Error(), Err: e}
}

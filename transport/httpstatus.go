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
	"unicode"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
)

// ErrSession is wrapped by an error that reports that the server no longer knows the session. The request was
// refused, so it may be sent again after a new initialize.
var ErrSession = errors.New("the session has ended")

// StatusError is an HTTP response that is not an MCP message.
type StatusError struct {
	Status      int
	ContentType string
	Challenge   string // WWW-Authenticate as received
	Location    string // target of a redirect that was not followed
	RetryAfter  string
	Text        string // start of the body
}

// Error describes the response and suggests a fix.
func (e *StatusError) Error() string {
	switch {
	case e.Status == http.StatusTemporaryRedirect || e.Status == http.StatusPermanentRedirect:
		to := e.Location
		if u, err := url.Parse(to); err == nil && u.Host != "" {
			to = u.Scheme + "://" + u.Host
		}
		return fmt.Sprintf("HTTP %d redirects to %s; "+
			"redirects to another origin are not followed because they would expose the credentials", e.Status, to)
	case e.Status >= 300 && e.Status < 400:
		return fmt.Sprintf("HTTP %d redirects to %s; if that is the MCP endpoint, write its address as the URL",
			e.Status, strconv.QuoteToGraphic(MaskURL(e.Location)))
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		if e.Text != "" {
			return fmt.Sprintf("HTTP %d %s: the server refuses these credentials and says '%s'", e.Status,
				http.StatusText(e.Status), e.Text)
		}
		return fmt.Sprintf("HTTP %d %s: the server refuses these credentials", e.Status, http.StatusText(e.Status))
	case strings.Contains(e.ContentType, "html"):
		return fmt.Sprintf("HTTP %d with a web page (%s) instead of an MCP message; check the URL: the path of an "+
			"MCP endpoint is often /mcp, and over HTTP+SSE /sse", e.Status, e.ContentType)
	case e.Status < 300:
		return fmt.Sprintf("HTTP %d with content type %q instead of an MCP message", e.Status, e.ContentType)
	}
	if e.Text != "" {
		return fmt.Sprintf("HTTP %d %s: %s", e.Status, http.StatusText(e.Status), e.Text)
	}
	return fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status))
}

// refusal handles the JSON body of an error status. A JSON-RPC error for this request is delivered, and refusal returns
// nil. If the id of the error is missing or wrong, refusal returns it. Any other body becomes a [StatusError].
func (h *HTTP) refusal(resp *http.Response, body []byte, m jsonrpc.Outgoing, st *httpState,
	deliver func([]byte) bool) error {
	var msg jsonrpc.Message
	status := resp.StatusCode
	if status == http.StatusUnauthorized || status == http.StatusForbidden ||
		status == http.StatusTooManyRequests || isForgotten(status, body, m, st) {
		return h.describe(resp, body, m, st)
	}
	if jsonrpc.Parse(body, &msg) == nil && msg.Error != nil {
		if !deliver(body) {
			return jsonrpc.ParseError(msg.Error) // its id is null or wrong, but it answers this request
		}
		return nil
	}
	return h.describe(resp, body, m, st)
}

// isForgotten reports whether a server refused a request because it no longer knows the session. The
// specification requires status 404 (2025-11-25, transports). Many servers instead send 400 with a text and
// without the request's id. Such a response comes from a layer in front of the server's handlers, so nothing
// was executed.
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

// maxStatusText bounds the text of a response in an error, in bytes.
const maxStatusText = 300

// statusText returns the start of a response's body for an error, on one line. It removes characters that a
// terminal would act on: controls, and formatting characters that for example reverse text.
func statusText(body []byte) string {
	cut := ""
	if len(body) > maxStatusText {
		body, cut = body[:maxStatusText], "…"
	}
	text := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(body), "\uFFFD"))
	return MaskURLs(strings.Join(strings.Fields(text), " ")) + cut
}

func (h *HTTP) status(resp *http.Response, m jsonrpc.Outgoing, st *httpState) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // a partial text is enough
	return h.describe(resp, text, m, st)
}

func (h *HTTP) describe(resp *http.Response, body []byte, m jsonrpc.Outgoing, st *httpState) error {
	e := &StatusError{Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"),
		Location: resp.Header.Get("Location"), RetryAfter: resp.Header.Get("Retry-After"),
		Challenge: strings.Join(resp.Header.Values("WWW-Authenticate"), ", ")}
	if text := bytes.TrimSpace(body); len(text) > 0 && !strings.Contains(e.ContentType, "html") {
		e.Text = statusText(text)
	}
	code := tenon.CodeProtocol
	switch s := resp.StatusCode; {
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		code = tenon.CodeAuth
	case isForgotten(s, body, m, st):
		return &tenon.Error{Code: tenon.CodeUnreachable, Message: "the server no longer knows this session",
			Err: fmt.Errorf("%w: %w", ErrSession, e)}
	case s == http.StatusTooManyRequests:
		code = tenon.CodeRateLimited
	case s == http.StatusServiceUnavailable:
		code = tenon.CodeUnreachable
	case s >= 500:
		return &jsonrpc.LostError{Sent: true, Err: e}
	}
	return &tenon.Error{Code: code, Message: e.Error(), Err: e}
}

package model

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// document reads an answer that is one JSON document although a stream was requested. Such answers come from buffering
// proxies, and from servers that ignore "stream" for some models.
func (c *Client) document(ctx context.Context, w *watch, x Exchange, resp *http.Response, body io.Reader,
	emit func(tenon.Delta) bool,
) (*tenon.Response, *Failure) {
	text, err := io.ReadAll(body)
	switch {
	case err != nil:
		return nil, c.stream(ctx, w, resp, err)
	case !json.Valid(text):
		return nil, c.stream(ctx, w, resp, NotJSON(text))
	case hasError(text):
		f := ErrorObject(0, text)
		f.headers(resp.Header, time.Now())
		return nil, f
	}
	events := [][]byte{text}
	if x.Whole != nil {
		events = x.Whole(text)
	}
	answer, err := x.Parse(func() ([]byte, error) {
		if len(events) == 0 {
			return nil, io.EOF
		}
		e := events[0]
		events = events[1:]
		return e, nil
	}, emit)
	var f *Failure
	switch {
	case errors.As(err, &f) && f.Kind == KindCutOff:
		return nil, &Failure{Status: http.StatusOK, Code: tenon.CodeProtocol,
			Message: "answered with a JSON document instead of an event stream, and the document is not a complete " +
				"answer; this server does not stream"}
	case err != nil:
		return nil, c.stream(ctx, w, resp, err)
	}
	if answer.ID == "" {
		answer.ID = requestID(resp.Header)
	}
	return answer, nil
}

// sniff reports whether a body is a JSON document, and returns the body. Some servers send a document without its type,
// or as an event stream.
func (x *Exchange) sniff(header string, body io.Reader) (io.Reader, bool) {
	kind, _, _ := mime.ParseMediaType(header)
	if kind == "application/json" {
		return body, true
	}
	if x.Frames != nil {
		return body, false
	}
	b := bufio.NewReader(body)
	for n := 1; n <= maxLead; n++ {
		lead, err := b.Peek(n)
		if err != nil {
			break
		}
		switch lead[n-1] {
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			if kind == eventStream {
				return wholeDocument(b)
			}
			return b, true
		default:
			return b, false
		}
	}
	return b, false
}

const eventStream = "text/event-stream"

// maxLead bounds the white space before a document.
const maxLead = 64

// wholeDocument reports whether an event stream consists only of one JSON value, and returns the body. An error without
// a field name may also precede the events of a stream. Only the error is returned then, because more may never arrive.
func wholeDocument(body io.Reader) (io.Reader, bool) {
	var text bytes.Buffer
	d := json.NewDecoder(io.TeeReader(body, &text))
	var first json.RawMessage
	switch err := d.Decode(&first); {
	case err != nil:
		return io.MultiReader(&text, body), errors.Is(err, io.ErrUnexpectedEOF)
	case hasError(first):
		return bytes.NewReader(first), true
	}
	more := make([]byte, maxLead)
	for {
		if len(bytes.TrimSpace(text.Bytes()[d.InputOffset():])) > 0 {
			return io.MultiReader(&text, body), false
		}
		n, err := body.Read(more)
		text.Write(more[:n])
		if err != nil && n == 0 {
			return &text, true // a broken connection does not matter after a whole document
		}
	}
}

// hasError reports whether a document is an error. null and an empty text are no errors.
func hasError(document []byte) bool {
	e := rawjson.Field(document, "error")
	return !rawjson.IsNull(e) && string(e) != `""`
}

// isErrorEvent reports whether an event of type error has a form that the parsers of all wires read.
func isErrorEvent(data []byte) bool {
	return json.Valid(data) && (!rawjson.IsNull(rawjson.Field(data, "error")) ||
		rawjson.String(rawjson.Field(data, "type")) == "error")
}

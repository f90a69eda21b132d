package model

import (
	"bufio"
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
	case !rawjson.IsNull(rawjson.Field(text, "error")):
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

// sniff reports whether a body is a JSON document, and returns the body. Some servers send a document without its type.
func (x *Exchange) sniff(header string, body io.Reader) (io.Reader, bool) {
	kind, _, _ := mime.ParseMediaType(header)
	if kind == "application/json" {
		return body, true
	}
	if x.Frames != nil || kind == "text/event-stream" {
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
			return b, true
		default:
			return b, false
		}
	}
	return b, false
}

// maxLead bounds the white space before a document.
const maxLead = 64

// isErrorEvent reports whether an event of type error has a form that the parsers of all wires read.
func isErrorEvent(data []byte) bool {
	return json.Valid(data) && (!rawjson.IsNull(rawjson.Field(data, "error")) ||
		rawjson.String(rawjson.Field(data, "type")) == "error")
}

package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/tenonhq/tenon/jsonrpc"
)

// answer writes the response to one request: plain JSON, or an event stream if a notification is sent before it.
type answer struct {
	w         http.ResponseWriter
	id        []byte
	mu        sync.Mutex
	streaming bool
	finished  bool         // w must not be used any more
	whole     *batchAnswer // if it answers a request of a batch; w is not used then
	large     *sync.Pool   // *[]byte, for large responses; may be nil
}

func (a *answer) stream() {
	h := a.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	a.streaming = true
	a.flush()
}

func (a *answer) flush() { _ = http.NewResponseController(a.w).Flush() } // errors do not matter: the client is gone

func (a *answer) event(b []byte) {
	_, _ = a.w.Write(append(append([]byte("event: message\ndata: "), bytes.ReplaceAll(b, []byte("\n"), []byte(" "))...),
		"\n\n"...))
	a.flush()
}

// numbered sends an event with an id, from which the client can resume the stream.
func (a *answer) numbered(e sentEvent) {
	b := []byte("id: " + e.id() + "\n")
	if e.body != nil {
		b = append(b, "event: message\n"...)
	}
	b = append(append(b, "data: "...), bytes.ReplaceAll(e.body, []byte("\n"), []byte(" "))...)
	_, _ = a.w.Write(append(b, "\n\n"...)) // errors do not matter: the client is gone, and may resume
	a.flush()
}

func (a *answer) notice(method string, params []byte) {
	a.request(jsonrpc.AppendRequest(nil, 0, method, params))
}

// request sends a message before the response.
func (a *answer) request(b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.finished {
		return // a notification that came too late
	}
	if a.whole != nil {
		a.whole.request(b)
		return
	}
	if !a.streaming {
		a.stream()
	}
	a.event(b)
}

// largeAnswer is the size of a response, in bytes, from which its buffer is used again.
const largeAnswer = 16 << 10

// finish writes the response itself.
func (a *answer) finish(result []byte, err error, modern bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finished = true
	status := http.StatusOK
	var b []byte
	if err == nil {
		size := len(result) + len(a.id) + 48
		if size > largeAnswer && a.large != nil && a.whole == nil {
			pooled, _ := a.large.Get().(*[]byte)
			if pooled == nil || cap(*pooled) < size {
				made := make([]byte, 0, size)
				pooled = &made
			}
			defer a.large.Put(pooled) // nobody keeps what was written
			b = (*pooled)[:0]
		} else {
			b = make([]byte, 0, size)
		}
		b = jsonrpc.AppendResult(b, a.id, result)
	} else {
		var e *jsonrpc.Error
		if !errors.As(err, &e) {
			e = jsonrpc.Errorf(jsonrpc.CodeInternal, "%s", err)
		}
		if modern {
			status = modernStatus(e.Code)
		}
		b = jsonrpc.AppendError(nil, a.id, e)
	}
	switch {
	case a.whole != nil:
		a.whole.add(b)
	case a.streaming:
		a.event(b)
	default:
		reply(a.w, status, b)
	}
}

// drop ends the answer without a response, because the client cancelled the request (2025-11-25, cancellation). The
// answer is then an event stream without a response.
func (a *answer) drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finished = true
	if a.whole == nil && !a.streaming {
		a.stream()
	}
}

// modernStatus is the HTTP status of an error in the modern era.
func modernStatus(code int) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case codeHeaderMismatch, codeMissingCapability, codeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// Refuse answers a request of HTTP with a JSON-RPC error without an id, for a reason outside of its message, such as an
// unknown session. A status of 500 and more is an internal error, every other an invalid request.
func Refuse(w http.ResponseWriter, status int, format string, args ...any) {
	code := jsonrpc.CodeInvalidRequest
	if status >= http.StatusInternalServerError {
		code = jsonrpc.CodeInternal
	}
	reply(w, status, jsonrpc.AppendError(nil, nil, jsonrpc.Errorf(code, format, args...)))
}

func reply(w http.ResponseWriter, status int, b json.RawMessage) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b))) // otherwise a long answer goes out in chunks
	w.WriteHeader(status)
	_, _ = w.Write(b) // errors do not matter: the client is gone
}

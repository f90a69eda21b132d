package jsonrpc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// The error codes of JSON-RPC 2.0, section 5.1.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// Error is the error object of a response. Data is the raw value as received.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the peer's message with its code.
func (e *Error) Error() string { return fmt.Sprintf("%s (JSON-RPC error %d)", e.Message, e.Code) }

// Errorf returns an error object without data.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// ParseError reads the error object of a response. If the value has neither a numeric code nor data, the error has code
// [CodeInternal] and the raw value as data.
func ParseError(raw []byte) *Error {
	e := &Error{Code: CodeInternal}
	var coded bool
	for k, v := range rawjson.Members(raw) {
		switch string(k) {
		case "code":
			f, err := strconv.ParseFloat(string(v), 64)
			coded = err == nil
			if coded {
				e.Code = int(f)
			}
		case "message":
			e.Message = rawjson.String(v)
		case "data":
			e.Data = v
		}
	}
	if !coded && e.Data == nil {
		e.Data = raw
	}
	e.Message = cmp.Or(e.Message, "the peer returned an error without a message")
	return e
}

// SizeError is returned by Stream.Recv for a message over the size limit. The message was skipped; the stream
// remains usable.
type SizeError struct {
	Prefix []byte // the message's first bytes
	Limit  int    // bytes
}

// Error reports the limit.
func (e *SizeError) Error() string {
	return fmt.Sprintf("a message is larger than the limit of %d bytes", e.Limit)
}

// LostError reports that the connection ended before a response arrived. Sent is false only if it is certain that the
// request did not reach the peer.
type LostError struct {
	Sent bool
	Err  error
}

// Error returns the text of the cause.
func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// AppendRequest appends a request, or a notification if id is 0. params is a raw JSON value. If it is empty, the
// message has no params.
func AppendRequest(b []byte, id int64, method string, params []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0"`...)
	if id != 0 {
		b = append(b, `,"id":`...)
		b = strconv.AppendInt(b, id, 10)
	}
	b = append(b, `,"method":`...)
	b = rawjson.AppendString(b, method)
	if len(params) > 0 {
		b = append(b, `,"params":`...)
		b = append(b, params...)
	}
	return append(b, '}')
}

// AppendResult appends a response. An empty result is written as {}.
func AppendResult(b, id, result []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"result":`...)
	if len(result) == 0 {
		result = []byte("{}")
	}
	return append(append(b, result...), '}')
}

// AppendError appends an error response. A nil id is written as null.
func AppendError(b, id []byte, e *Error) []byte {
	if id == nil {
		id = []byte("null")
	}
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, int64(e.Code), 10)
	b = append(b, `,"message":`...)
	b = rawjson.AppendString(b, e.Message)
	if len(e.Data) > 0 {
		b = append(append(b, `,"data":`...), e.Data...)
	}
	return append(b, "}}"...)
}

// Batch calls f with each message of a batch, and whether it is over the limit of [MaxBatch] messages. MCP revision
// 2025-03-26 allows batches. It returns false if b is not a batch, or is an empty batch.
func Batch(b []byte, f func(one []byte, over bool)) bool {
	if t := bytes.TrimLeft(b, " \t\r\n"); len(t) == 0 || t[0] != '[' || Valid(b) != nil {
		return false
	}
	n := 0
	for v := range rawjson.Elements(b) {
		f(v, n >= MaxBatch)
		n++
	}
	return n > 0
}

// MaxBatch bounds the messages of a batch. Further messages are treated as unreadable.
const MaxBatch = 1000

// ErrBatch is the error about a message over [MaxBatch].
var ErrBatch = fmt.Errorf("it follows the first %d messages of a batch; send smaller batches", MaxBatch)

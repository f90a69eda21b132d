package jsonrpc

import (
	"bytes"
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

// Error is the error object of an answer. Data is raw, as it came.
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

// ParseError reads the error object of an answer. What is no proper error object
// becomes one of code [CodeInternal] that holds the raw value as data.
func ParseError(raw []byte) *Error {
	e := &Error{Code: CodeInternal}
	var coded bool
	Fields(raw, func(k, v []byte) bool {
		switch string(k) {
		case "code":
			f, err := strconv.ParseFloat(string(v), 64)
			coded = err == nil
			if coded {
				e.Code = int(f)
			}
		case "message":
			e.Message, _ = String(v)
		case "data":
			e.Data = v
		}
		return true
	})
	if !coded && e.Data == nil {
		e.Data = raw
	}
	if e.Message == "" {
		e.Message = "the peer answered with an error without a message"
	}
	return e
}

// SizeError is returned by the Recv of a stream for a message that is over its
// limit and was skipped. The stream goes on.
type SizeError struct {
	Prefix []byte // the message's first bytes
	Limit  int    // bytes
}

// Error names the limit.
func (e *SizeError) Error() string {
	return fmt.Sprintf("a message is larger than the limit of %d bytes", e.Limit)
}

// LostError says that the connection broke before an answer came. Sent is false
// only where the request certainly did not reach the peer.
type LostError struct {
	Sent bool
	Err  error
}

// Error is the text of the cause.
func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// AppendRequest appends a request, or a notice where id is 0. Params is a raw
// JSON value, or empty for none.
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

// AppendResult appends an answer. An empty result is {}.
func AppendResult(b, id, result []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"result":`...)
	if len(result) == 0 {
		result = []byte("{}")
	}
	return append(append(b, result...), '}')
}

// AppendError appends an answer that is an error. A nil id is null.
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

// split returns the messages of a batch, which revision 2025-03-26 of MCP allows, at
// most maxBatch of them; nil where b is no batch, or an empty one.
func split(b []byte) ([][]byte, error) {
	if t := bytes.TrimLeft(b, " \t\r\n"); len(t) == 0 || t[0] != '[' {
		return nil, nil
	}
	if err := Valid(b); err != nil {
		return nil, err
	}
	var all [][]byte
	Elements(b, func(v []byte) bool {
		all = append(all, v)
		return len(all) < maxBatch
	})
	return all, nil
}

const maxBatch = 1000

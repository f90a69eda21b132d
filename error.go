package tenon

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Code classifies an [Error]. Every code maps to one exit code of the command
// line and to one HTTP status, each in one table (internal/cli and httpapi).
type Code string

// The table of codes. A code that is not listed here does not occur.
const (
	CodeInvalid     Code = "invalid"         // a request or argument that cannot be right
	CodeConfig      Code = "config"          // the configuration is wrong
	CodeNotFound    Code = "not_found"       // no such run, session, tool, server, file
	CodeConflict    Code = "conflict"        // another caller was first, or is working on it
	CodeAuth        Code = "auth_required"   // credentials are missing, expired or refused
	CodeDenied      Code = "denied"          // a rule or a person denied it
	CodeUnreachable Code = "unreachable"     // a server or model cannot be reached or started
	CodeTimeout     Code = "timeout"         // a deadline passed
	CodeProtocol    Code = "protocol"        // a peer broke its protocol
	CodeTooLarge    Code = "too_large"       // a size, depth or count is over its bound
	CodeTool        Code = "tool_error"      // the tool ran and reported a failure
	CodeUnknown     Code = "unknown_outcome" // a call may or may not have taken effect
	CodeModel       Code = "model_error"     // the model's provider refused or failed
	CodeRateLimited Code = "rate_limited"    // a provider or server asked for a pause that is too long
	CodeLimit       Code = "limit"           // a limit of tenon was reached
	CodeWaiting     Code = "waiting"         // a decision of a person is needed
	CodeStore       Code = "store"           // the store cannot be read or written
	CodeCancelled   Code = "cancelled"       // the caller gave up
	CodeInternal    Code = "internal"        // a defect of tenon
)

// Error is the error type that crosses package borders. Message is for people: it names what failed, where and why,
// and what to do. Err, if set, is the cause for errors.Is and errors.As; Message includes its text if that helps.
type Error struct {
	Code    Code            `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"` // data of a peer's error object, unchanged
	Err     error           `json:"-"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// ErrClosing is the cause ([context.Cause]) of a step's cancelled context if its process ends and another process may
// continue the step. Requests to servers should then not be cancelled.
var ErrClosing = errors.New("the process is closing; another one may go on")

// Errorf returns an [Error] with the given code. The format works as in fmt.Errorf, including %w. If an [Error] is
// wrapped, its data is kept.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e := &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
	var cause *Error
	if errors.As(e.Err, &cause) {
		e.Data = cause.Data
	}
	return e
}

// ErrorCode returns the code of the first [Error] in err's chain, [CodeInternal] if there is none, and "" for a nil
// error.
func ErrorCode(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	default:
		return CodeInternal
	}
}

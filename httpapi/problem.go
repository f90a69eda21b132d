package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// statuses maps error codes to HTTP statuses (RFC 9110). An error of a server or a model is 502, because tenon is a
// gateway to them. A server that requires credentials is 403, not 401: 401 would mean that the token of the request is
// wrong.
var statuses = map[tenon.Code]int{
	tenon.CodeInvalid:     http.StatusBadRequest,
	tenon.CodeConfig:      http.StatusInternalServerError,
	tenon.CodeNotFound:    http.StatusNotFound,
	tenon.CodeConflict:    http.StatusConflict,
	tenon.CodeAuth:        http.StatusForbidden,
	tenon.CodeDenied:      http.StatusForbidden,
	tenon.CodeUnreachable: http.StatusBadGateway,
	tenon.CodeTimeout:     http.StatusGatewayTimeout,
	tenon.CodeProtocol:    http.StatusBadGateway,
	tenon.CodeTooLarge:    http.StatusRequestEntityTooLarge,
	tenon.CodeTool:        http.StatusBadGateway,
	tenon.CodeUnknown:     http.StatusBadGateway,
	tenon.CodeModel:       http.StatusBadGateway,
	tenon.CodeRateLimited: http.StatusTooManyRequests,
	tenon.CodeLimit:       http.StatusTooManyRequests,
	tenon.CodeWaiting:     http.StatusConflict,
	tenon.CodeStore:       http.StatusInternalServerError,
	tenon.CodeCancelled:   http.StatusServiceUnavailable,
	tenon.CodeInternal:    http.StatusInternalServerError,
}

// Status returns the HTTP status of an error code. Unknown codes are 500.
func Status(code tenon.Code) int {
	if s, ok := statuses[code]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Problem is the body of an error (RFC 9457, application/problem+json). Code and Data are copied from the
// [tenon.Error].
type Problem struct {
	Type   string          `json:"type"` // always about:blank; see Code
	Title  string          `json:"title"`
	Status int             `json:"status"`
	Detail string          `json:"detail"`
	Code   tenon.Code      `json:"code"`
	Data   json.RawMessage `json:"data,omitempty"`
	// Run is the run of the request if the run may have taken effect. The request must then not be repeated.
	Run string `json:"run,omitempty"`
	// Approvals are what a tool call waits for, in the form of GET /api/v1/approvals. When they are decided, the run
	// continues.
	Approvals []host.Approval `json:"approvals,omitempty"`

	chat ofChat // run and session of a chat; only for errors of ResearchAI's API
}

// refusal is an error with an explicit status, such as 405 or 415, instead of the status of its code.
type refusal struct {
	err    *tenon.Error
	status int
}

func (r refusal) Error() string { return r.err.Error() }
func (r refusal) Unwrap() error { return r.err }

func refuse(status int, code tenon.Code, format string, args ...any) error {
	return refusal{tenon.Errorf(code, format, args...), status}
}

// problem converts an error to a [Problem]. known is false if the error is not a [tenon.Error]. That is a defect of
// tenon, whose text is only logged and not sent.
func problem(err error) (p Problem, known bool) {
	code := tenon.ErrorCode(err)
	p = Problem{Type: "about:blank", Status: Status(code), Code: code, Detail: err.Error()}
	var r refusal
	if errors.As(err, &r) {
		p.Status = r.status
	}
	_ = errors.As(err, &p.chat) // stays empty for other errors
	var f final
	if errors.As(err, &f) {
		p.Run = f.run
		if code != tenon.CodeAuth { // a refused sign-in has no effect, and clients do not repeat a 403
			p.Status = http.StatusFailedDependency
		}
	}
	var waits unanswered
	if errors.As(err, &waits) {
		p.Approvals = waits.list
	}
	var e *tenon.Error
	if known = errors.As(err, &e); known {
		p.Data = e.Data
	} else {
		p.Detail = "internal error of tenon; see its log"
	}
	p.Title = http.StatusText(p.Status)
	return p, known
}

var _ error = refusal{}

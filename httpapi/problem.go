package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/tenonhq/tenon"
)

// statuses is the one table from error codes to HTTP statuses (RFC 9110). What
// a server or a model did wrong is 502: this end is the gateway. That a server wants
// credentials is 403: 401 is about the token of the request alone, which is good then.
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

// Status is the HTTP status of an error code.
func Status(code tenon.Code) int {
	if s, ok := statuses[code]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Problem is an error as it is sent (RFC 9457, application/problem+json). Code
// is that of the [tenon.Error], Data what it carried.
type Problem struct {
	Type   string          `json:"type"` // always about:blank: the code says what it is
	Title  string          `json:"title"`
	Status int             `json:"status"`
	Detail string          `json:"detail"`
	Code   tenon.Code      `json:"code"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// refusal is an error of HTTP itself, whose status the table does not give.
type refusal struct {
	err    *tenon.Error
	status int
}

func (r refusal) Error() string { return r.err.Error() }
func (r refusal) Unwrap() error { return r.err }

func refuse(status int, code tenon.Code, format string, args ...any) error {
	return refusal{tenon.Errorf(code, format, args...), status}
}

// problem makes what is sent of an error. One that is no [tenon.Error] is a
// defect; its text is for the log only.
func problem(err error) (p Problem, known bool) {
	code := tenon.ErrorCode(err)
	p = Problem{Type: "about:blank", Status: Status(code), Code: code, Detail: err.Error()}
	var r refusal
	if errors.As(err, &r) {
		p.Status = r.status
	}
	var e *tenon.Error
	if known = errors.As(err, &e); known {
		p.Data = e.Data
	} else {
		p.Detail = "this is a defect of tenon; its log says more"
	}
	p.Title = http.StatusText(p.Status)
	return p, known
}

var _ error = refusal{}

package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// TestOverloaded checks the status of a query that is refused because too many others wait before it.
func TestOverloaded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		err    error
		status int
	}{
		{"RP-26_busy", tenon.Errorf(tenon.CodeLimit, "%w", host.ErrBusy), http.StatusServiceUnavailable},
		{"RP-26_own_limit", tenon.Errorf(tenon.CodeLimit, "too many runs"), http.StatusTooManyRequests},
		{"RP-26_store", tenon.Errorf(tenon.CodeStore, "broken"), http.StatusInternalServerError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, known := problem(overloaded(tt.err))
			if p.Status != tt.status || !known || p.Detail != tt.err.Error() {
				t.Errorf("%+v, known %v", p, known)
			}
			if got := errors.Is(overloaded(tt.err), host.ErrBusy); got != errors.Is(tt.err, host.ErrBusy) {
				t.Error(fmt.Sprint("the cause is lost: ", got))
			}
		})
	}
}

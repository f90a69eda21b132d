package httpapi

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// BehindHeader is a header of an answer with statistics or search results. It contains the number of runs that the
// answer omits. These are runs of an earlier release that tenon still reads in the background.
const BehindHeader = "Tenon-Behind"

// busyPause is the value of Retry-After, in seconds, for a query that was refused because too many others were waiting.
const busyPause = "5"

// behind sets the header with the number of runs that the answer omits.
func (c *call) behind(runs int) { c.w.Header().Set(BehindHeader, strconv.Itoa(runs)) }

// overloaded converts the error of a query that was refused because too many others were waiting. The answer becomes a
// 503, because a 429 would mean that the caller has exceeded its limit.
func overloaded(err error) error {
	var e *tenon.Error
	if errors.Is(err, host.ErrBusy) && errors.As(err, &e) {
		return refusal{e, http.StatusServiceUnavailable}
	}
	return err
}

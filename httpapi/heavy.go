package httpapi

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// BehindHeader is in an answer with statistics or search results that leave out runs, and has the number of these runs.
// They are runs of an earlier release that tenon still reads in the background.
const BehindHeader = "Tenon-Behind"

// busyPause is the Retry-After of a query that found too many others before it, in seconds.
const busyPause = "5"

// behind says in the answer how many runs it leaves out.
func (c *call) behind(runs int) { c.w.Header().Set(BehindHeader, strconv.Itoa(runs)) }

// overloaded makes the answer to a query that found too many others before it a 503. A 429 would mean that
// the caller has exceeded its limit.
func overloaded(err error) error {
	var e *tenon.Error
	if errors.Is(err, host.ErrBusy) && errors.As(err, &e) {
		return refusal{e, http.StatusServiceUnavailable}
	}
	return err
}

package host

import (
	"encoding/json"
	"errors"

	"github.com/tenonhq/tenon"
)

// redacted returns a tool's result without the values of secrets, before the
// model sees it or the journal keeps it.
func (h *Host) redacted(r *tenon.Result) *tenon.Result {
	if h.redactor.IsEmpty() {
		return r
	}
	raw, err := r.MarshalJSON() // not by json.Marshal, which goes over it once more
	if err != nil {
		return r // it came out of the protocol core, so it is JSON
	}
	clean := h.redactor.Bytes(raw)
	if len(clean) == len(raw) && &clean[0] == &raw[0] {
		return r
	}
	out := new(tenon.Result)
	if !json.Valid(clean) || json.Unmarshal(clean, out) != nil {
		return tenon.ErrorResult("the result is withheld: it holds a configured secret where it cannot be masked")
	}
	out.Input = r.Input
	return out
}

// Redacts reports whether a rule redacts fields of tool calls.
func (h *Host) Redacts() bool { return len(h.redacts) > 0 }

// shown returns a tool's result with every hidden character and control sequence in
// its texts written out, before the model sees it, a terminal shows it or the journal
// keeps it: in structured content and metadata as well. One without any is as it came,
// and as JSON already, which the journal wants.
func shown(r *tenon.Result) *tenon.Result {
	if len(r.Raw) == 0 {
		raw, err := r.MarshalJSON() // not by json.Marshal, which goes over it once more
		if err != nil {
			return r // whoever writes it down says so
		}
		made := *r
		made.Raw = raw
		r = &made
	}
	clean := tenon.VisibleJSON(r.Raw)
	if len(clean) == len(r.Raw) && &clean[0] == &r.Raw[0] {
		return r
	}
	out := new(tenon.Result)
	if json.Unmarshal(clean, out) != nil {
		return tenon.ErrorResult("the result is withheld: its hidden characters cannot be shown")
	}
	out.Input = r.Input
	return out
}

// asError gives an error a code and takes secrets out of it, so that it can stand
// in the journal.
func (h *Host) asError(err error) *tenon.Error {
	var e *tenon.Error
	if !errors.As(err, &e) || e.Message != err.Error() {
		e = tenon.Errorf(tenon.ErrorCode(err), "%w", err)
	}
	clean := *e
	clean.Message = tenon.Visible(h.redactor.Text(e.Message))
	if clean.Data = h.redactor.Bytes(e.Data); !json.Valid(clean.Data) {
		clean.Data = nil
	}
	return &clean
}

package tenon

import (
	"encoding/json"
	"errors"
)

// Result returns a tool's result with masked secrets, for the model and the journal. A picture, a sound or a file that
// holds one is replaced by a text. If a secret cannot be masked, Result returns an error result instead.
func (r *Redactor) Result(in *Result) *Result {
	if r.IsEmpty() {
		return in
	}
	raw, err := in.MarshalJSON() // json.Marshal would check the bytes again
	if err != nil {
		return in // cannot happen: the protocol core checked the JSON
	}
	plain := UnescapedJSON(raw)
	clean := r.JSON(plain)
	if len(clean) == len(plain) && &clean[0] == &plain[0] {
		return in
	}
	out := new(Result)
	if !json.Valid(clean) || json.Unmarshal(clean, out) != nil {
		return ErrorResult("the result is withheld: it holds a configured secret where it cannot be masked")
	}
	out.Input = in.Input
	return out
}

// VisibleResult returns a tool's result in which hidden characters are written as visible escapes (see [Visible]). It
// applies to texts, structured content and metadata. This form is for the model, terminals and the journal. The
// returned result contains its JSON in Raw.
func VisibleResult(r *Result) *Result {
	if len(r.Raw) == 0 {
		raw, err := r.MarshalJSON() // json.Marshal would check the bytes again
		if err != nil {
			return r // writing the result reports the error
		}
		made := *r
		made.Raw = raw
		r = &made
	}
	clean := VisibleJSON(r.Raw)
	if len(clean) == len(r.Raw) && &clean[0] == &r.Raw[0] {
		return r
	}
	out := new(Result)
	if json.Unmarshal(clean, out) != nil {
		return ErrorResult("the result is withheld: its hidden characters cannot be shown")
	}
	out.Input = r.Input
	return out
}

// Error returns err as an [Error] for the journal: secrets are masked, and hidden characters in the message are
// written as visible escapes.
func (r *Redactor) Error(err error) *Error {
	var e *Error
	if !errors.As(err, &e) || e.Message != err.Error() {
		e = Errorf(ErrorCode(err), "%w", err)
	}
	clean := *e
	clean.Message = Visible(r.Text(e.Message))
	if clean.Data = r.Bytes(e.Data); !json.Valid(clean.Data) {
		clean.Data = nil
	}
	return &clean
}

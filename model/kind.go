package model

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/tenonhq/tenon"
)

// Kind tells the failures of a model apart, more finely than the code of a
// [tenon.Error] does: what a person does about a quota is not what they do about
// an overload.
type Kind string

// The kinds of failure.
const (
	KindAuth        Kind = "auth"        // no key, or one that is not accepted
	KindQuota       Kind = "quota"       // money or allowance is used up
	KindRate        Kind = "rate"        // too many requests or tokens in a short time
	KindOverload    Kind = "overload"    // the provider has trouble
	KindTooLong     Kind = "too_long"    // the conversation does not fit the model
	KindRefused     Kind = "refused"     // the request is not accepted as it is
	KindMalformed   Kind = "malformed"   // the answer breaks its protocol
	KindCutOff      Kind = "cut_off"     // the answer ended before its end
	KindUnreachable Kind = "unreachable" // nobody answered there
	KindTimeout     Kind = "timeout"     // nothing came for too long
	KindOther       Kind = "other"
)

// Advice says in one sentence what to do about a kind of failure.
func (k Kind) Advice() string {
	switch k {
	case KindAuth:
		return "set the key, or check that it belongs to this provider and may use this model"
	case KindQuota:
		return "check plan, balance and spending limits at the provider, or use another model"
	case KindRate:
		return "wait and try again, send less at a time, or ask the provider for higher limits"
	case KindOverload:
		return "the provider has trouble: try again later, or use another model"
	case KindTooLong:
		return "shorten the conversation, offer fewer tools, or use a model with a larger context"
	case KindRefused:
		return "check the model's name, and the settings and tools that the message names"
	case KindMalformed:
		return "check provider and base_url: the server may speak another API than the one asked for"
	case KindCutOff:
		return "try again; where it happens again, look for a proxy that ends long answers"
	case KindUnreachable:
		return "check that the server runs, base_url, the network and the proxy settings"
	case KindTimeout:
		return "try again, raise the model's timeout, or use a faster model"
	}
	return "the message says what is known"
}

// KindOf returns the kind of an error that a model gave. Where no adapter of ours
// sorted it, its code says what can be said.
func KindOf(err error) Kind {
	var c *cause
	if errors.As(err, &c) {
		return c.kind
	}
	switch tenon.ErrorCode(err) {
	case tenon.CodeAuth:
		return KindAuth
	case tenon.CodeRateLimited:
		return KindRate
	case tenon.CodeTooLarge:
		return KindTooLong
	case tenon.CodeUnreachable:
		return KindUnreachable
	case tenon.CodeTimeout:
		return KindTimeout
	case tenon.CodeProtocol:
		return KindMalformed
	case tenon.CodeModel:
		return KindRefused
	}
	return KindOther
}

// cause is what stands behind the error that leaves an adapter: its kind, and a
// cause that errors.Is may be asked for.
type cause struct {
	kind Kind
	err  error
}

func (c *cause) Error() string { return string(c.kind) }
func (c *cause) Unwrap() error { return c.err }

// kindOf sorts a failure.
func (f *Failure) kindOf() Kind {
	switch {
	case f.Kind != "":
		return f.Kind
	case f.billing():
		return KindQuota
	case f.Code == tenon.CodeAuth:
		return KindAuth
	case f.Code == tenon.CodeRateLimited:
		return KindRate
	case f.Code == tenon.CodeTooLarge:
		return KindTooLong
	case f.Code == tenon.CodeUnreachable:
		return KindUnreachable
	case f.Code == tenon.CodeTimeout:
		return KindTimeout
	case errors.Is(f.Err, io.ErrUnexpectedEOF):
		return KindCutOff
	case f.Code == tenon.CodeProtocol:
		return KindMalformed
	case f.Code != tenon.CodeModel:
		return KindOther
	case f.Status >= http.StatusInternalServerError, f.Retry, strings.Contains(strings.ToLower(f.Type), "overloaded"):
		return KindOverload
	}
	return KindRefused
}

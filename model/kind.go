package model

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/tenonhq/tenon"
)

// Kind is the kind of a model failure. It is finer than the code of a [tenon.Error], because the
// user must do different things about a quota and about an overload.
type Kind string

// The kinds of failure.
const (
	KindAuth        Kind = "auth"        // the key is missing or not accepted
	KindQuota       Kind = "quota"       // the balance or quota is used up
	KindRate        Kind = "rate"        // too many requests or tokens in a short time
	KindOverload    Kind = "overload"    // the provider fails or is overloaded
	KindTooLong     Kind = "too_long"    // the conversation exceeds the model's context
	KindRefused     Kind = "refused"     // the provider rejects the request
	KindMalformed   Kind = "malformed"   // the answer violates the protocol
	KindCutOff      Kind = "cut_off"     // the answer ended early
	KindUnreachable Kind = "unreachable" // the server cannot be reached
	KindTimeout     Kind = "timeout"     // no data for too long
	KindBadCall     Kind = "bad_call"    // the provider could not parse the model's tool call
	KindOther       Kind = "other"
)

// Advice returns one sentence about what to do about a failure of this kind.
func (k Kind) Advice() string {
	switch k {
	case KindAuth:
		return "set the key, or check that it belongs to this provider and may use this model"
	case KindQuota:
		return "check plan, balance and spending limits at the provider, or use another model"
	case KindRate:
		return "wait and try again, send less at a time, or ask the provider for higher limits"
	case KindOverload:
		return "the provider has problems: try again later, or use another model"
	case KindTooLong:
		return "shorten the conversation, offer fewer tools, or use a model with a larger context"
	case KindRefused:
		return "check the model's name, and the settings and tools that the message names"
	case KindBadCall:
		return "try again, or use a model that is better at calling tools"
	case KindMalformed:
		return "check provider and base_url: the server may have another API than the configured one"
	case KindCutOff:
		return "try again; if it happens again, look for a proxy that ends long answers"
	case KindUnreachable:
		return "check that the server runs, base_url, the network and the proxy settings"
	case KindTimeout:
		return "try again, raise the model's timeout, or use a faster model"
	}
	return "see the message"
}

// KindOf returns the kind of a model error. If an adapter did not set the kind, it follows from the
// error's code.
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

// cause is the wrapped error of an adapter's error: its kind, and a cause for errors.Is.
type cause struct {
	kind Kind
	err  error
}

func (c *cause) Error() string { return string(c.kind) }
func (c *cause) Unwrap() error { return c.err }

// kindOf returns the kind of a failure.
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

package servers

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// check returns an error for an entry of a Go program that is not valid: an unknown word, a negative duration, an
// address or credentials that do not fit the transport. Package config makes these checks, and more, for the entries
// of a host.
func (c Config) check(name string) error {
	bad := func(key, format string, args ...any) error {
		return tenon.Errorf(tenon.CodeConfig, "servers.%s%s: %s", tenon.Visible(name), key,
			fmt.Sprintf(format, args...))
	}
	if key, why := wrongWord(reflect.ValueOf(c), ""); why != "" {
		return bad(key, "%s", why)
	}
	scheme := "http"
	if c.InferTransport() == TransportWebSocket {
		scheme = "ws"
	}
	u, err := url.Parse(c.URL)
	switch stdio := c.InferTransport() == TransportStdio; {
	case c.Command == "" && c.URL == "":
		return bad("", "'command' or 'url' is required")
	case c.Command != "" && c.URL != "":
		return bad("", "'command' and 'url' together: a server has one of them")
	case stdio && c.Command == "":
		return bad(".command", "'command' is required for stdio transport")
	case !stdio && c.URL == "":
		return bad(".url", "'url' is required for %s transport", c.InferTransport())
	case stdio && c.Auth.Type != "" && c.Auth.Type != AuthNone || stdio && len(c.Headers) > 0:
		return bad("", "'auth' and 'headers' have no effect for stdio transport")
	case stdio:
		return nil
	case err != nil || u.Host == "" || u.Scheme != scheme && u.Scheme != scheme+"s":
		return bad(".url", "'url' must begin with %ss:// or %s:// for %s transport", scheme, scheme, c.InferTransport())
	}
	switch none := c.Auth.Type == "" || c.Auth.Type == AuthNone; {
	case none && !c.Auth.Secret.IsZero():
		return bad(".auth", "'type' is required: a secret without a type is not sent")
	case !none && c.Auth.Type != AuthOAuth && c.Auth.Secret.IsZero():
		return bad(".auth", "'secret' is required for auth type %s", c.Auth.Type)
	}
	return nil
}

// wrongWord returns the first key whose value is not in the enum of its field, or is a negative duration.
func wrongWord(v reflect.Value, path string) (key, why string) {
	for i := range v.NumField() {
		f, member := v.Type().Field(i), v.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}
		at := path + "." + name
		if d, ok := member.Interface().(time.Duration); ok && d < 0 {
			return at, "must be positive"
		}
		if enum := f.Tag.Get("enum"); enum != "" && member.Kind() == reflect.String && member.String() != "" &&
			!slices.Contains(strings.Split(enum, ","), member.String()) {
			return at, fmt.Sprintf("no such value '%s'; values: %s", tenon.Visible(member.String()), enum)
		}
		if member.Kind() == reflect.Struct && f.Type != reflect.TypeFor[tenon.Secret]() {
			if key, why = wrongWord(member, at); why != "" {
				return key, why
			}
		}
	}
	return "", ""
}

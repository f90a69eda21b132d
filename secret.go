package tenon

import (
	"fmt"
	"log/slog"
)

// secretMask is what every printed form of a [Secret] shows.
const secretMask = "***"

// Secret holds a key, token or password. Every way to print it (fmt with any
// verb, slog, JSON, text, YAML) gives "***", also when it is a field of a
// struct, exported or not, because the value stands behind a pointer. Only
// [Secret.Reveal] gives it away, so that a search for that word lists every
// place where a secret is used. The zero value is an absent secret, which
// prints as nothing.
type Secret struct{ p *string }

// NewSecret returns a secret that holds s.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{&s}
}

// Reveal returns the value itself, "" where there is none.
func (s Secret) Reveal() string {
	if s.p == nil {
		return ""
	}
	return *s.p
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.p == nil }

// Equal reports whether both hold the same value; go-cmp uses it.
func (s Secret) Equal(o Secret) bool { return s.Reveal() == o.Reveal() }

// String returns "***", or "" where there is no secret.
func (s Secret) String() string {
	if s.p == nil {
		return ""
	}
	return secretMask
}

// Format prints the mask whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText writes the mask; JSON and YAML encoders use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the text as the secret's value; JSON and YAML decoders
// use it for a plain string.
func (s *Secret) UnmarshalText(b []byte) error {
	*s = NewSecret(string(b))
	return nil
}

var (
	_ fmt.Formatter  = Secret{}
	_ slog.LogValuer = Secret{}
)

package tenon

import (
	"fmt"
	"log/slog"
)

// secretMask is the printed form of a [Secret].
const secretMask = "***"

// Secret holds a key, token or password. Every way to print it (fmt with any verb, slog, JSON, text, YAML)
// writes "***". This also holds for fields of a struct, exported or not, because the value is behind a
// pointer. Only [Secret.Reveal] returns the value, so searching for its callers lists every use of a secret.
// The zero value is an absent secret, which prints as an empty string.
type Secret struct{ p *string }

// NewSecret returns a secret that holds s.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{&s}
}

// Reveal returns the value, or "" if there is none.
func (s Secret) Reveal() string {
	if s.p == nil {
		return ""
	}
	return *s.p
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.p == nil }

// Equal reports whether both secrets have the same value. Package go-cmp uses it.
func (s Secret) Equal(o Secret) bool { return s.Reveal() == o.Reveal() }

// String returns "***", or "" if there is no secret.
func (s Secret) String() string {
	if s.p == nil {
		return ""
	}
	return secretMask
}

// Format writes the mask for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue returns the mask for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the mask. JSON and YAML encoders use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText sets the value of the secret to the text. JSON and YAML decoders use it for strings.
func (s *Secret) UnmarshalText(b []byte) error {
	*s = NewSecret(string(b))
	return nil
}

var (
	_ fmt.Formatter  = Secret{}
	_ slog.LogValuer = Secret{}
)

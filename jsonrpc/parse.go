package jsonrpc

import (
	"errors"
	"fmt"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// MaxDepth is the maximum nesting of arrays and objects that [Parse] accepts.
const MaxDepth = 512

// Message is the envelope of one message. Its slices share the parsed bytes. A request has Method and ID, a
// notification only Method, a response ID and either Result or Error.
type Message struct {
	ID     []byte // raw: a string with its quotes, a number, or null; nil if absent
	Method string
	Params []byte
	Result []byte
	Error  []byte
}

// IsRequest reports whether the message is a request, which expects a response.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsAnswer reports whether the message is a response.
func (m *Message) IsAnswer() bool { return m.Method == "" }

// ErrSyntax is wrapped by every error of [Parse] and [Valid].
var ErrSyntax = errors.New("not an acceptable JSON message")

// maxNumber is the maximum length of a number. Python's json module reads no longer integers by default, and a client
// that cannot read a message cannot answer it.
const maxNumber = 4300

// wire contains the rules for every message.
var wire = rawjson.Rules{Depth: MaxDepth, UniqueKeys: true, UTF8: true, Number: maxNumber, Surrogates: true}

// Parse reads the envelope of b into m. It refuses anything but a single JSON object in valid UTF-8 (RFC
// 8259). It also refuses duplicate keys at any level, nesting over [MaxDepth], numbers of more than 4,300 bytes, and
// envelopes that are neither request, notification nor response, and requests and notifications of another version of
// JSON-RPC; a missing version is accepted. It replaces escapes of half a surrogate pair in b by
// \ufffd: programs that cut texts make them, and many decoders refuse the whole message because of one.
func Parse(b []byte, m *Message) error {
	*m = Message{}
	var method, version []byte
	err := rawjson.CheckObject(b, wire, func(key, value []byte) {
		switch string(key) {
		case "id":
			m.ID = value
		case "method":
			method = value
		case "jsonrpc":
			version = value
		case "params":
			m.Params = value
		case "result":
			m.Result = value
		case "error":
			m.Error = value
		}
	})
	if err != nil {
		*m = Message{}
		return fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	if method != nil && version != nil && rawjson.String(version) != "2.0" {
		return fmt.Errorf("%w: jsonrpc is %s instead of \"2.0\"", ErrSyntax, clip(version))
	}
	return m.check(method)
}

// Valid checks one JSON value against the rules of [Parse], and changes it in the same way.
func Valid(b []byte) error {
	if err := rawjson.Check(b, wire); err != nil {
		return fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	return nil
}

func (m *Message) check(method []byte) error {
	if method != nil {
		name, ok := rawjson.ParseString(method)
		if !ok || name == "" {
			return fmt.Errorf("%w: method is not a non-empty string", ErrSyntax)
		}
		m.Method = name
		if m.Result != nil || m.Error != nil {
			return fmt.Errorf("%w: both a request and a response", ErrSyntax)
		}
	} else if (m.Result == nil) == (m.Error == nil) {
		return fmt.Errorf("%w: neither a request nor a response", ErrSyntax)
	}
	if m.ID != nil {
		c := m.ID[0]
		null := c == 'n' && method == nil
		if c != '"' && c != '-' && (c < '0' || c > '9') && !null {
			return fmt.Errorf("%w: id is neither a string nor a number", ErrSyntax)
		}
	}
	return nil
}

package jsonrpc

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"unicode/utf8"
)

// MaxDepth is the nesting of arrays and objects that [Parse] accepts.
const MaxDepth = 512

// Message is the envelope of one message. Its slices are parts of the parsed
// bytes. Which fields are set tells a request (Method and ID), a notice (Method
// only) and an answer (ID and Result or Error) apart.
type Message struct {
	ID     []byte // raw: a string with its quotes, a number, or null; nil if absent
	Method string
	Params []byte
	Result []byte
	Error  []byte
}

// IsRequest reports whether the message wants an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsAnswer reports whether the message answers a request.
func (m *Message) IsAnswer() bool { return m.Method == "" }

// ErrSyntax is the cause of every refusal of [Parse] and [Valid].
var ErrSyntax = errors.New("not an acceptable JSON message")

func syntax(at int, what string) error {
	return fmt.Errorf("%w: %s at byte %d", ErrSyntax, what, at)
}

type scanner struct {
	b    []byte
	keys []span // of all objects that are open
}

type span struct{ from, to int }

var scanners = sync.Pool{New: func() any { return &scanner{keys: make([]span, 0, 64)} }}

func newScanner(b []byte) *scanner {
	s := scanners.Get().(*scanner)
	s.b, s.keys = b, s.keys[:0]
	return s
}

func (s *scanner) free() {
	if cap(s.keys) > 4096 {
		s.keys = nil
	}
	s.b = nil
	scanners.Put(s)
}

// Parse reads the envelope of b into m. It refuses what is not one JSON object
// in valid UTF-8 (RFC 8259), duplicate keys at any level, nesting over
// [MaxDepth], and envelopes that are neither request, notice nor answer.
func Parse(b []byte, m *Message) error {
	*m = Message{}
	if !utf8.Valid(b) {
		return fmt.Errorf("%w: invalid UTF-8", ErrSyntax)
	}
	s := newScanner(b)
	defer s.free()
	i := s.space(0)
	if i >= len(b) || b[i] != '{' {
		return syntax(i, "no JSON object")
	}
	var method []byte
	end, err := s.object(i, 1, func(key span, from, to int) {
		v := b[from:to]
		switch string(s.key(key)) {
		case "id":
			m.ID = v
		case "method":
			method = v
		case "params":
			m.Params = v
		case "result":
			m.Result = v
		case "error":
			m.Error = v
		}
	})
	if err != nil {
		return err
	}
	if end = s.space(end); end != len(b) {
		return syntax(end, "more after the message")
	}
	return m.check(method)
}

func (m *Message) check(method []byte) error {
	if method != nil {
		name, ok := String(method)
		if !ok || name == "" {
			return fmt.Errorf("%w: method is no string", ErrSyntax)
		}
		m.Method = name
		if m.Result != nil || m.Error != nil {
			return fmt.Errorf("%w: both a request and an answer", ErrSyntax)
		}
	} else if (m.Result == nil) == (m.Error == nil) {
		return fmt.Errorf("%w: neither a request nor an answer", ErrSyntax)
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

// Valid checks one JSON value by the rules of [Parse].
func Valid(b []byte) error {
	if !utf8.Valid(b) {
		return fmt.Errorf("%w: invalid UTF-8", ErrSyntax)
	}
	s := newScanner(b)
	defer s.free()
	end, err := s.value(s.space(0), 0)
	if err == nil {
		if end = s.space(end); end != len(b) {
			err = syntax(end, "more after the value")
		}
	}
	return err
}

func (s *scanner) space(i int) int {
	for i < len(s.b) && (s.b[i] == ' ' || s.b[i] == '\t' || s.b[i] == '\n' || s.b[i] == '\r') {
		i++
	}
	return i
}

func (s *scanner) value(i, depth int) (int, error) {
	if i >= len(s.b) {
		return i, syntax(i, "cut off")
	}
	switch c := s.b[i]; {
	case c == '"':
		return s.str(i)
	case c == '{':
		return s.object(i, depth+1, nil)
	case c == '[':
		return s.array(i, depth+1)
	case c == '-' || c >= '0' && c <= '9':
		return s.number(i)
	case c == 't':
		return s.word(i, "true")
	case c == 'f':
		return s.word(i, "false")
	case c == 'n':
		return s.word(i, "null")
	}
	return i, syntax(i, "no JSON value")
}

func (s *scanner) word(i int, w string) (int, error) {
	if len(s.b)-i < len(w) || string(s.b[i:i+len(w)]) != w {
		return i, syntax(i, "no JSON value")
	}
	return i + len(w), nil
}

func (s *scanner) array(i, depth int) (int, error) {
	if depth > MaxDepth {
		return i, syntax(i, "nested too deeply")
	}
	i = s.space(i + 1)
	if i < len(s.b) && s.b[i] == ']' {
		return i + 1, nil
	}
	for {
		end, err := s.value(i, depth)
		if err != nil {
			return end, err
		}
		i = s.space(end)
		if i >= len(s.b) {
			return i, syntax(i, "cut off")
		}
		switch s.b[i] {
		case ',':
			i = s.space(i + 1)
		case ']':
			return i + 1, nil
		default:
			return i, syntax(i, "no comma")
		}
	}
}

// object reads from '{' to behind '}'. It calls member, if given, for each.
func (s *scanner) object(i, depth int, member func(key span, from, to int)) (int, error) {
	if depth > MaxDepth {
		return i, syntax(i, "nested too deeply")
	}
	base := len(s.keys)
	var many map[string]struct{}
	i = s.space(i + 1)
	if i < len(s.b) && s.b[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(s.b) || s.b[i] != '"' {
			return i, syntax(i, "no key")
		}
		end, err := s.str(i)
		if err != nil {
			return end, err
		}
		key := span{i + 1, end - 1}
		if many, err = s.unique(key, base, many); err != nil {
			return i, err
		}
		i = s.space(end)
		if i >= len(s.b) || s.b[i] != ':' {
			return i, syntax(i, "no colon")
		}
		i = s.space(i + 1)
		if end, err = s.value(i, depth); err != nil {
			return end, err
		}
		if member != nil {
			member(key, i, end)
		}
		i = s.space(end)
		if i >= len(s.b) {
			return i, syntax(i, "cut off")
		}
		switch s.b[i] {
		case ',':
			i = s.space(i + 1)
		case '}':
			s.keys = s.keys[:base]
			return i + 1, nil
		default:
			return i, syntax(i, "no comma")
		}
	}
}

// unique remembers a key and refuses one that the object has already. Objects
// of many keys get a map, so that the check stays linear.
func (s *scanner) unique(key span, base int, many map[string]struct{}) (map[string]struct{}, error) {
	const few = 24
	k := s.key(key)
	if many == nil && len(s.keys)-base >= few {
		many = make(map[string]struct{}, 4*few)
		for _, o := range s.keys[base:] {
			many[string(s.key(o))] = struct{}{}
		}
	}
	if many != nil {
		if _, ok := many[string(k)]; ok {
			return many, syntax(key.from, "duplicate key")
		}
		many[string(k)] = struct{}{}
		return many, nil
	}
	for _, o := range s.keys[base:] {
		if o.to-o.from == len(k) && bytes.Equal(s.b[o.from:o.to], k) || s.escaped(o) && bytes.Equal(s.key(o), k) {
			return many, syntax(key.from, "duplicate key")
		}
	}
	s.keys = append(s.keys, key)
	return many, nil
}

func (s *scanner) escaped(k span) bool { return bytes.IndexByte(s.b[k.from:k.to], '\\') >= 0 }

// key returns a key's text, with its escapes resolved.
func (s *scanner) key(k span) []byte {
	raw := s.b[k.from:k.to]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	text, _ := String(s.b[k.from-1 : k.to+1])
	return []byte(text)
}

// str reads from the opening quote to behind the closing one, eight bytes at a
// time where nothing special is among them.
func (s *scanner) str(i int) (int, error) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	b := s.b
	i++
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			quote := w ^ ones*'"'
			slash := w ^ ones*'\\'
			hit := ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
			if hit != 0 {
				i += bits.TrailingZeros64(hit) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			return i, syntax(i, "cut off")
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c < 0x20:
			return i, syntax(i, "control character in a string")
		case c != '\\':
			i++
		default:
			n, err := s.escape(i)
			if err != nil {
				return n, err
			}
			i = n
		}
	}
}

func (s *scanner) escape(i int) (int, error) {
	if i+1 >= len(s.b) {
		return i, syntax(i, "cut off")
	}
	switch s.b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, nil
	case 'u':
		if i+6 > len(s.b) {
			return i, syntax(i, "cut off")
		}
		for _, c := range s.b[i+2 : i+6] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return i, syntax(i, "bad escape")
			}
		}
		return i + 6, nil
	}
	return i, syntax(i, "bad escape")
}

func (s *scanner) number(i int) (int, error) {
	b := s.b
	digits := func() bool {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return i, syntax(i, "bad number")
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return i, syntax(i, "bad number")
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return i, syntax(i, "bad number")
		}
	}
	return i, nil
}

// String returns the text of a raw JSON string, false for any other value.
func String(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if in := raw[1 : len(raw)-1]; bytes.IndexByte(in, '\\') < 0 {
		return string(in), true
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", false
	}
	return text, true
}

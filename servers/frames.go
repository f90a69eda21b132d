package servers

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// Frame is one message of the protocol as it was on the wire.
type Frame struct {
	Seq    uint64    `json:"seq"` // 1, 2, 3 … since the server was configured
	At     time.Time `json:"at"`
	Sent   bool      `json:"sent"`             // true: by tenon
	ID     string    `json:"id,omitempty"`     // raw, of a request or a response
	Method string    `json:"method,omitempty"` // of a response: the method of its request, while the request is kept
	Answer bool      `json:"answer,omitempty"`
	Bytes  int       `json:"bytes"`
	// Text is the kept text of the message. Cut says that it is only the beginning. Hidden is the reason if the text
	// is not shown.
	Text   string `json:"text"`
	Cut    bool   `json:"cut,omitempty"`
	Hidden string `json:"hidden,omitempty"`
}

// The bounds of the kept messages. Of a long message, frameSlack more bytes are kept than shown, so that a secret
// that begins in the shown part is recognized as a whole.
const (
	maxFrames  = 200
	frameShown = 4 << 10
	frameKept  = frameShown + frameSlack
	frameSlack = 1 << 10
	frameTail  = 200 // bytes of the end of a long message, which may have its id
)

// frames keeps the last messages. The zero value is ready.
type frames struct {
	mu   sync.Mutex
	last uint64
	ring []keptFrame
}

// keptFrame is the beginning of a message.
type keptFrame struct {
	at    time.Time
	sent  bool
	bytes int
	body  []byte
	tail  []byte // the end of a message that is longer than body
}

// add keeps a message. The memory grows with the messages: an idle server needs little, and a busy one reaches the
// bound once.
func (f *frames) add(sent bool, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ring) < maxFrames {
		f.ring = append(f.ring, keptFrame{})
	}
	k := &f.ring[f.last%maxFrames]
	f.last++
	k.at, k.sent, k.bytes = time.Now(), sent, len(body)
	k.body, k.tail = append(k.body[:0], body[:min(len(body), frameKept)]...), k.tail[:0]
	if len(body) > frameKept {
		k.tail = append(k.tail, body[len(body)-frameTail:]...)
	}
}

// all returns copies of the kept messages, oldest first, and the number of the last one. The lock is held only for
// the copying, so that sending and receiving wait no longer.
func (f *frames) all() (list []keptFrame, last uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for seq := max(f.last, maxFrames) - maxFrames; seq < f.last; seq++ {
		k := f.ring[seq%maxFrames]
		k.body, k.tail = slices.Clone(k.body), slices.Clone(k.tail)
		list = append(list, k)
	}
	return list, f.last
}

// trace keeps a message of a connection, with the credentials of its caller masked.
func (s *Server) trace(sent bool, body []byte) {
	if s.veil != nil {
		body = s.veil.Bytes(body)
	}
	s.frames.add(sent, body)
}

// The beginnings and the end of long messages by which their kinds are recognized. The last bracket of a message
// closes the message, so an id in front of it is the message's.
var (
	frameID     = lazyregexp.New(`^[^{]*\{(?:[^{}]{0,300}?,)?\s*"id"\s*:\s*("(?:[^"\\]|\\.){0,100}"|-?[0-9]+)`)
	frameMethod = lazyregexp.New(`^[^{]*\{(?:[^{}]{0,300}?,)?\s*"method"\s*:\s*"([^"\\]{1,100})"`)
	frameEnd    = lazyregexp.New(`[{,]\s*"id"\s*:\s*("(?:[^"\\]|\\.){0,100}"|-?[0-9]+)\s*` +
		`(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// head returns the raw id and the method of a message, or "" for what it does not have. The keys may be in any order.
func (k keptFrame) head() (id, method string) {
	if k.bytes <= len(k.body) {
		var top map[string]json.RawMessage
		if json.Unmarshal(k.body, &top) == nil {
			_ = json.Unmarshal(top["method"], &method) // a method that is no text is none
			if id = string(top["id"]); id == "null" {
				id = ""
			}
			return id, method
		}
	}
	g := frameID().FindSubmatch(k.body)
	if g == nil {
		g = frameEnd().FindSubmatch(k.tail)
	}
	if g != nil {
		id = string(g[1])
	}
	if g := frameMethod().FindSubmatch(k.body); g != nil {
		method = string(g[1])
	}
	return id, method
}

// Frames returns the last messages, oldest first. mask removes secrets from each. If withhold is not empty, the texts
// of tool calls are not shown, and withhold is the reason.
func (s *Server) Frames(mask func([]byte) []byte, withhold string) []Frame {
	list := []Frame{}
	asked := map[string]string{} // id -> method of our requests
	kept, last := s.frames.all()
	for i, k := range kept {
		m := Frame{Seq: last - uint64(len(kept)-1-i), At: k.at, Sent: k.sent, Bytes: k.bytes,
			Cut: k.bytes > len(k.body)}
		m.ID, m.Method = k.head()
		switch {
		case m.Method != "" && m.Sent && m.ID != "":
			asked[m.ID] = m.Method
		case m.Method == "" && m.ID != "" && !m.Sent:
			m.Answer, m.Method = true, asked[m.ID]
		}
		body := mask(k.body)
		switch {
		case withhold != "" && (m.Method == "" || m.Method == "tools/call" || m.Method == "notifications/progress"):
			m.Hidden = withhold
		case m.Cut:
			m.Text = string(body[:max(0, len(body)-frameSlack)])
		default:
			m.Text = string(body)
		}
		list = append(list, m)
	}
	return list
}

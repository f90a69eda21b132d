package servers

import (
	"slices"
	"sync"
	"time"

	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// Frame is one message of the protocol, as it was on the wire.
type Frame struct {
	Seq    uint64    `json:"seq"` // 1, 2, 3 … since the server was configured
	At     time.Time `json:"at"`
	Sent   bool      `json:"sent"`             // by us
	ID     string    `json:"id,omitempty"`     // raw, of a request or an answer
	Method string    `json:"method,omitempty"` // of an answer: the method of its request, while that is kept
	Answer bool      `json:"answer,omitempty"`
	Bytes  int       `json:"bytes"`
	// Text is what is kept of the message, Cut says that it is only the beginning. Hidden says
	// why there is none.
	Text   string `json:"text"`
	Cut    bool   `json:"cut,omitempty"`
	Hidden string `json:"hidden,omitempty"`
}

// The bounds of what is kept. Of a message that is cut some bytes more are kept than
// shown, so that no part of a secret that begins in them is seen.
const (
	maxFrames  = 200
	frameShown = 4 << 10
	frameKept  = frameShown + frameSlack
	frameSlack = 1 << 10
)

// frames keeps the last messages. The zero value is ready.
type frames struct {
	mu   sync.Mutex
	last uint64
	ring []keptFrame
}

// keptFrame is a message as it is kept: its beginning.
type keptFrame struct {
	at    time.Time
	sent  bool
	bytes int
	body  []byte
}

// add keeps a message. A server that is idle after its first messages has room for
// little more than those; one that is used takes what it needs of memory once.
func (f *frames) add(sent bool, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ring) < maxFrames {
		f.ring = append(f.ring, keptFrame{})
	}
	k := &f.ring[f.last%maxFrames]
	f.last++
	k.at, k.sent, k.bytes = time.Now(), sent, len(body)
	k.body = append(k.body[:0], body[:min(len(body), frameKept)]...)
}

// all returns copies of what is kept, oldest first, and the number of the last one. Who
// sends and receives waits for no more than that.
func (f *frames) all() (list []keptFrame, last uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for seq := max(f.last, maxFrames) - maxFrames; seq < f.last; seq++ {
		k := f.ring[seq%maxFrames]
		k.body = slices.Clone(k.body)
		list = append(list, k)
	}
	return list, f.last
}

// trace keeps a message of a connection, without the credentials of its caller.
func (s *Server) trace(sent bool, body []byte) {
	if s.veil != nil {
		body = s.veil.Bytes(body)
	}
	s.frames.add(sent, body)
}

// The beginnings of messages by which their kinds are recognized. Our messages and most servers' have these forms.
var (
	frameID     = lazyregexp.New(`^[^{]*\{(?:[^{}]{0,300}?,)?\s*"id"\s*:\s*("(?:[^"\\]|\\.){0,100}"|-?[0-9]+)`)
	frameMethod = lazyregexp.New(`^[^{]*\{(?:[^{}]{0,300}?,)?\s*"method"\s*:\s*"([^"\\]{1,100})"`)
)

// Frames returns the last messages, oldest first. Mask takes secrets out of each. With
// withhold nothing of calls of tools is shown but that there was one.
func (s *Server) Frames(mask func([]byte) []byte, withhold string) []Frame {
	list := []Frame{}
	asked := map[string]string{} // id -> method of our requests
	kept, last := s.frames.all()
	for i, k := range kept {
		m := Frame{Seq: last - uint64(len(kept)-1-i), At: k.at, Sent: k.sent, Bytes: k.bytes,
			Cut: k.bytes > len(k.body)}
		if g := frameID().FindSubmatch(k.body); g != nil {
			m.ID = string(g[1])
		}
		if g := frameMethod().FindSubmatch(k.body); g != nil {
			m.Method = string(g[1])
		}
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

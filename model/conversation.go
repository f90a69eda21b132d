package model

import (
	"bytes"
	"slices"
	"sync"

	"github.com/tenonhq/tenon"
)

// Conversations caches the wire form of the last few conversations as lists of pieces. Adding the
// next turn of a conversation costs time only for its new messages. Earlier messages are recognised
// by comparing pointers, and their pieces are shared. The zero value is ready to use. Conversations
// is safe for concurrent use. It keeps at most eight conversations alive.
type Conversations struct {
	mu   sync.Mutex
	ring [8]*conversation
	next int
}

// conversation is a cached list. It only grows. Bodies use shorter slices of its arrays, which
// appending does not modify.
type conversation struct {
	first  bool
	msgs   []*tenon.Message
	pieces [][]byte
	ends   []int64 // cumulative lengths of the pieces
}

// Form describes how an adapter encodes the messages of a model.
type Form struct {
	Key   string // identifies the wire and the quirks that change the encoding; the cache key in a message
	Maker string // the model, as in [tenon.Message.By]; messages of other models are encoded plain
	// Encode returns the wire form of a message with a leading comma, or nothing if the message has
	// none.
	Encode func(*tenon.Message) ([]byte, error)
	// Bridge is inserted, with a leading comma, between the results of a turn and a user message.
	// Some servers refuse a user message there. If nil, nothing is inserted.
	Bridge []byte
	// Mark returns the pieces of a wire form with a mark for the provider's prompt cache at its end. It returns nil if
	// the message cannot have one. It must not modify the form, which other requests share. If Marks is 0, it may be
	// nil.
	Mark func(m *tenon.Message, form []byte) [][]byte
	// Marks is the maximum number of messages that are marked. The last message that is not the model's gets the first
	// mark. Each further one is at the end of an earlier turn: there is the mark of the request before, from which the
	// provider reads, however many blocks follow it.
	Marks int
}

// encode returns the wire form of a message. before is the message in front of it, or nil.
func (f *Form) encode(before, m *tenon.Message) ([]byte, error) {
	key, encode := f.Key, f.Encode
	if m.By != "" && m.By != f.Maker {
		// Signatures and encrypted reasoning are useful only to the model that made them. Other
		// models refuse or misread them.
		key, encode = key+" plain", func(m *tenon.Message) ([]byte, error) { return f.Encode(m.Plain()) }
	}
	p, err := m.Encoded(key, encode)
	if err != nil || len(p) == 0 || len(f.Bridge) == 0 || before == nil ||
		before.Role != tenon.RoleTool || m.Role != tenon.RoleUser && m.Role != tenon.RoleSystem {
		return p, err
	}
	return append(f.Bridge[:len(f.Bridge):len(f.Bridge)], p...), nil
}

// Message returns the wire form of a message, from the cache in the message if possible.
func (f *Form) Message(m *tenon.Message) ([]byte, error) { return f.encode(nil, m) }

// Add appends the wire forms of the messages to the body, with the marks of the form. If first is true, it removes the
// comma of the first form.
func (c *Conversations) Add(b *Body, f *Form, msgs []*tenon.Message, first bool) error {
	old, n := c.find(msgs, first)
	var size int64
	if n > 0 {
		size = old.ends[n-1]
	}
	fresh := make([][]byte, 0, len(msgs)-n)
	for i, m := range msgs[n:] {
		var before *tenon.Message
		if n+i > 0 {
			before = msgs[n+i-1]
		}
		p, err := f.encode(before, m)
		if err != nil {
			return err
		}
		if first && size == 0 && len(p) > 0 {
			p = p[1:]
		}
		fresh = append(fresh, p)
		size += int64(len(p))
	}
	list := forms{old, n, fresh}
	from := 0
	for _, m := range f.marked(msgs, list) {
		list.add(b, from, m.at)
		for _, p := range m.pieces {
			b.Add(p)
		}
		from = m.at + 1
	}
	list.add(b, from, len(msgs))
	if len(fresh) > 0 {
		c.keep(old, n, &conversation{first: first, msgs: msgs[n:], pieces: fresh})
	}
	return nil
}

// forms are the wire forms of the messages of a request: the first n of a cached conversation, and new ones.
type forms struct {
	old   *conversation
	n     int
	fresh [][]byte
}

func (l forms) at(i int) []byte {
	if i < l.n {
		return l.old.pieces[i]
	}
	return l.fresh[i-l.n]
}

// add appends the forms of the messages from index from to before index to. It shares the forms of the cached
// conversation.
func (l forms) add(b *Body, from, to int) {
	if end := min(to, l.n); from < end {
		size := l.old.ends[end-1]
		if from > 0 {
			size -= l.old.ends[from-1]
		}
		b.share(l.old.pieces[from:end:end], size)
	}
	for i := max(from, l.n); i < to; i++ {
		b.Add(l.fresh[i-l.n])
	}
}

// marking is a message with a mark.
type marking struct {
	at     int // index of the message
	pieces [][]byte
}

// marked returns the messages that are marked, in their order.
func (f *Form) marked(msgs []*tenon.Message, list forms) []marking {
	var found []marking
	open := true // the turn has no mark yet
	for i := len(msgs) - 1; i >= 0 && len(found) < f.Marks; i-- {
		if msgs[i].Role == tenon.RoleAssistant {
			open = true
			continue
		}
		if form := list.at(i); open && len(form) > 0 {
			if pieces := f.Mark(msgs[i], form); pieces != nil {
				found, open = append(found, marking{i, pieces}), false
			}
		}
	}
	slices.Reverse(found)
	return found
}

// CacheMark is the member that marks a block for a prompt cache in Anthropic's API, with a comma in front of it.
const CacheMark = `,"cache_control":{"type":"ephemeral"}`

// MaxCacheMarks is the number of marks in a request that Anthropic's API accepts.
const MaxCacheMarks = 4

// MarkEnd inserts [CacheMark] before an ending of a wire form. It returns nil if the form does not have the ending.
func MarkEnd(form []byte, ending string) [][]byte {
	head, ok := bytes.CutSuffix(form, []byte(ending))
	if !ok {
		return nil
	}
	return [][]byte{head, []byte(CacheMark), []byte(ending)}
}

// find returns the cached conversation with the longest common prefix, and the length of that
// prefix.
func (c *Conversations) find(msgs []*tenon.Message, first bool) (*conversation, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var best *conversation
	most := 0
	for _, e := range c.ring {
		if e == nil || e.first != first || len(msgs) == 0 || e.msgs[0] != msgs[0] {
			continue
		}
		n := 0
		for n < len(e.msgs) && n < len(msgs) && e.msgs[n] == msgs[n] {
			n++
		}
		if n > most {
			best, most = e, n
		}
	}
	if best == nil {
		return nil, 0
	}
	// Return a copy of the headers: another turn may append to the conversation.
	return &conversation{first: first, msgs: best.msgs, pieces: best.pieces, ends: best.ends}, most
}

// keep caches the new messages after the first n of old. It extends the cached conversation if that
// still ends there, and otherwise caches a new one.
func (c *Conversations) keep(old *conversation, n int, fresh *conversation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var e *conversation
	if n > 0 && n == len(old.msgs) {
		for _, x := range c.ring {
			if x != nil && len(x.msgs) == n && &x.msgs[0] == &old.msgs[0] {
				e = x
			}
		}
	}
	if e == nil {
		e = &conversation{first: fresh.first}
		if n > 0 {
			e.msgs = append(e.msgs, old.msgs[:n]...)
			e.pieces = append(e.pieces, old.pieces[:n]...)
			e.ends = append(e.ends, old.ends[:n]...)
		}
		c.ring[c.next] = e
		c.next = (c.next + 1) % len(c.ring)
	}
	size := int64(0)
	if n > 0 {
		size = e.ends[n-1]
	}
	for i, p := range fresh.pieces {
		size += int64(len(p))
		e.msgs = append(e.msgs, fresh.msgs[i])
		e.pieces = append(e.pieces, p)
		e.ends = append(e.ends, size)
	}
}

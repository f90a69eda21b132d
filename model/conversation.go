package model

import (
	"sync"

	"github.com/tenonhq/tenon"
)

// Conversations remembers the wire forms of the last few conversations as
// whole lists of pieces. The next turn of one of them then costs its new
// messages: what came before is recognised by comparing pointers, and its
// pieces are shared and not even looked up. The zero value is ready, and safe
// for concurrent use. It keeps at most eight conversations alive.
type Conversations struct {
	mu   sync.Mutex
	ring [8]*conversation
	next int
}

// conversation is one remembered list. It only grows; bodies hold shorter
// views of the same arrays, which growing does not touch.
type conversation struct {
	first  bool
	msgs   []*tenon.Message
	pieces [][]byte
	ends   []int64 // sum of the lengths up to and with each piece
}

// Form is how one model's adapter writes messages.
type Form struct {
	Key   string // names the wire and the switches that change it, for the memo in a message
	Maker string // the model, as [tenon.Message.By] has it; messages of others go plain
	// Encode gives a message's form with a comma before it, or nothing for a message
	// that has none.
	Encode func(*tenon.Message) ([]byte, error)
	// Bridge stands, with a comma before it, between the results of a turn and a
	// message of the user, which some servers refuse there; nil: nothing does.
	Bridge []byte
}

// encode returns the form of a message behind another one, which may be nil.
func (f *Form) encode(before, m *tenon.Message) ([]byte, error) {
	key, encode := f.Key, f.Encode
	if m.By != "" && m.By != f.Maker {
		// Signatures, encrypted reasoning and the like are of use to the model that made
		// them; another one refuses them, or is misled.
		key, encode = key+" plain", func(m *tenon.Message) ([]byte, error) { return f.Encode(m.Plain()) }
	}
	p, err := m.Encoded(key, encode)
	if err != nil || len(p) == 0 || len(f.Bridge) == 0 || before == nil || before.Role != tenon.RoleTool || m.Role != tenon.RoleUser {
		return p, err
	}
	return append(f.Bridge[:len(f.Bridge):len(f.Bridge)], p...), nil
}

// Add appends the wire form of every message to the body; where first is set the
// first form loses its comma.
func (c *Conversations) Add(b *Body, f *Form, msgs []*tenon.Message, first bool) error {
	old, n := c.find(msgs, first)
	var size int64
	if n > 0 {
		size = old.ends[n-1]
		b.share(old.pieces[:n:n], size)
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
		b.Add(p)
	}
	if len(fresh) > 0 {
		c.keep(old, n, &conversation{first: first, msgs: msgs[n:], pieces: fresh})
	}
	return nil
}

// find returns the conversation with the longest common beginning, and its
// length.
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
	// A view: another turn may lengthen the conversation meanwhile.
	return &conversation{first: first, msgs: best.msgs, pieces: best.pieces, ends: best.ends}, most
}

// keep remembers the new messages behind the first n of old: in place where
// that is still a conversation's end, else as another one.
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

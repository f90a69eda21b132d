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

// Add appends the wire form of every message to the body. encode gives a form
// with a comma before it, or nothing for a message that has none; where first
// is set the first form loses its comma. key names the wire and the switches
// that change it, for the memo in the message.
func (c *Conversations) Add(b *Body, key string, msgs []*tenon.Message, first bool,
	encode func(*tenon.Message) ([]byte, error)) error {
	old, n := c.find(msgs, first)
	var size int64
	if n > 0 {
		size = old.ends[n-1]
		b.share(old.pieces[:n:n], size)
	}
	fresh := make([][]byte, 0, len(msgs)-n)
	for _, m := range msgs[n:] {
		p, err := m.Encoded(key, encode)
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

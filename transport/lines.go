package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/tenonhq/tenon/jsonrpc"
)

// DefaultMaxMessage is the bound of one message in bytes where none is given.
const DefaultMaxMessage = 16 << 20

const (
	maxQueue   = 4 << 20  // bytes of messages that wait to be written
	prefixSize = 4 << 10  // kept of a message over its bound
	readSize   = 16 << 10 // of the buffers that are read into
	wideSize   = 64 << 10 // of that for the rest of a line that is longer; what a pipe holds (Linux)
	keepBuffer = 1 << 20  // larger write buffers are not kept
)

// Lines is a stream of messages, one a line (MCP, stdio transport), on a
// reader and a writer.
type Lines struct {
	max int
	in  lineReader
	out lineWriter
}

// NewLines returns a stream on r and w, whose incoming messages are at most max
// bytes long, 0 for [DefaultMaxMessage]. Close ends its writer goroutine; r and
// w stay the caller's, who has to close them to end a Recv.
func NewLines(r io.Reader, w io.Writer, max int) *Lines {
	if max <= 0 {
		max = DefaultMaxMessage
	}
	l := &Lines{max: max, in: lineReader{src: r, max: max}}
	l.out.start(w)
	return l
}

// Send queues a message. It waits only while the queue is full.
func (l *Lines) Send(ctx context.Context, m jsonrpc.Outgoing) error { return l.out.send(ctx, m.Body) }

// Recv returns the next line that is not blank. The context is not looked at:
// the end of the reader ends it.
func (l *Lines) Recv(context.Context) ([]byte, error) { return l.in.next() }

// Close takes no more messages. What is queued is written by a goroutine that ends
// once the writer has taken it or refuses.
func (l *Lines) Close() error { l.out.stop(); return nil }

// lender is a source that has a buffer only while there is something in it.
type lender interface {
	// Lend waits for what can be read and returns it, valid until the next call,
	// with the error that came with it.
	Lend() ([]byte, error)
}

// buffers are those that are lent.
var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

func borrow() *[readSize]byte    { return buffers.Get().(*[readSize]byte) }
func giveBack(b *[readSize]byte) { buffers.Put(b) }

// lineReader cuts a stream into lines of a bounded length.
type lineReader struct {
	src  io.Reader
	max  int
	buf  []byte // stays, unless the source lends its own
	wide []byte // only during a long line
	have []byte // read, and not looked at yet
	err  error
}

func (r *lineReader) next() ([]byte, error) {
	var line pieces
	size, over := 0, false
	for {
		part, rest, ended := bytes.Cut(r.have, []byte{'\n'})
		r.have = rest
		size += len(part)
		switch {
		case size <= r.max:
			line.add(part)
		case !over: // the rest is skipped
			over = true
			line.add(part)
			line = pieces{last: line.prefix()}
		}
		if ended || r.err != nil {
			switch {
			case size > r.max:
				return nil, &jsonrpc.SizeError{Prefix: line.last, Limit: r.max}
			case !isBlank(&line):
				return line.bytes(), nil
			case !ended: // the end comes behind all lines that came with it
				return nil, r.err
			}
			line, size = pieces{}, 0
			continue
		}
		r.fill(size)
	}
}

// fill reads more when all has been looked at. So much of the line has come.
func (r *lineReader) fill(size int) {
	if size >= wideSize {
		if r.wide == nil {
			r.wide = make([]byte, wideSize)
		}
		n, err := r.src.Read(r.wide)
		r.have, r.err = r.wide[:n], err
		return
	}
	r.wide = nil
	if l, ok := r.src.(lender); ok {
		r.have, r.err = l.Lend()
		return
	}
	if r.buf == nil {
		r.buf = make([]byte, min(readSize, r.max))
	}
	n, err := r.src.Read(r.buf)
	r.have, r.err = r.buf[:n], err
}

// isBlank reports whether a line holds nothing but white space.
func isBlank(line *pieces) bool {
	for _, b := range line.full {
		if len(bytes.TrimSpace(b)) > 0 {
			return false
		}
	}
	return len(bytes.TrimSpace(line.last)) == 0
}

// lineWriter lets any number of goroutines write lines. What waits while a
// write is in progress goes out together with the next one.
type lineWriter struct {
	try func([]byte) int // writes without waiting; nil: not possible
	dst io.Writer

	mu    sync.Mutex
	buf   []byte // waits to be written
	spare []byte
	busy  bool // somebody writes, and looks at buf when done
	err   error
	ended bool
	room  chan struct{} // closed and replaced when buf was taken; nil: nobody waits
	gone  chan struct{} // closed when it has ended and nobody writes
}

var errStopped = errors.New("the connection is closed")

func (w *lineWriter) start(dst io.Writer) {
	w.dst, w.try = dst, tryWriter(dst)
	w.gone = make(chan struct{})
}

func (w *lineWriter) send(ctx context.Context, msg []byte) error {
	w.mu.Lock()
	for len(w.buf) > 0 && len(w.buf)+len(msg) > maxQueue && w.err == nil && !w.ended {
		if w.room == nil {
			w.room = make(chan struct{})
		}
		room := w.room
		w.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
		w.mu.Lock()
	}
	if w.err != nil || w.ended {
		defer w.mu.Unlock()
		if w.err == nil {
			return errStopped
		}
		return w.err
	}
	from := len(w.buf)
	w.buf = append(append(w.buf, msg...), '\n')
	// A message is one line: newlines can only stand between JSON tokens.
	for line := w.buf[from : len(w.buf)-1]; ; {
		i := bytes.IndexByte(line, '\n')
		if i < 0 {
			break
		}
		line[i] = ' '
		line = line[i:]
	}
	if w.busy {
		w.mu.Unlock()
		return nil
	}
	w.busy = true
	var left []byte
	if w.try != nil {
		for range 2 {
			left = w.take()
			w.mu.Unlock()
			left = left[w.try(left):]
			w.mu.Lock()
			if len(left) > 0 {
				break
			}
			if len(w.buf) == 0 {
				w.rest()
				w.mu.Unlock()
				return nil
			}
		}
	}
	w.mu.Unlock()
	go w.run(left) // busy, so there is one; gone says when it has ended
	return nil
}

// take returns what waits, and makes room. The lock is held.
func (w *lineWriter) take() []byte {
	b := w.buf
	w.buf = w.spare[:0]
	if cap(b) > keepBuffer {
		w.spare = nil
	} else {
		w.spare = b
	}
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
	return b
}

// run writes what the caller of send would have had to wait for, until nothing is left.
func (w *lineWriter) run(left []byte) {
	for {
		var err error
		if len(left) > 0 {
			_, err = w.dst.Write(left)
		}
		w.mu.Lock()
		if err != nil {
			w.fail(err)
		}
		if err != nil || len(w.buf) == 0 {
			w.rest()
			w.mu.Unlock()
			return
		}
		left = w.take()
		w.mu.Unlock()
	}
}

// rest ends the busy state. The lock is held.
func (w *lineWriter) rest() {
	w.busy = false
	if w.ended {
		close(w.gone)
	}
}

// fail keeps the first error, which all senders get. The lock is held.
func (w *lineWriter) fail(err error) {
	w.err = err
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}

// stop lets nobody send any more. What waits is still written; gone says when.
func (w *lineWriter) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
	if !w.busy {
		close(w.gone)
	}
}

var _ jsonrpc.Stream = (*Lines)(nil)

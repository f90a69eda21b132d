package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/tenonhq/tenon/jsonrpc"
)

// DefaultMaxMessage is the default limit of one message in bytes.
const DefaultMaxMessage = 16 << 20

const (
	maxQueue   = 4 << 20  // bytes of queued outgoing messages
	prefixSize = 4 << 10  // kept bytes of a message over its limit
	readSize   = 16 << 10 // size of a read buffer
	wideSize   = 64 << 10 // size of the read buffer for the rest of a long line; capacity of a pipe (Linux)
	keepBuffer = 1 << 20  // write buffers above this size are not reused
)

// Lines is a stream with one message a line (MCP, stdio transport) on a reader and a writer.
type Lines struct {
	max int
	in  lineReader
	out lineWriter
}

// NewLines returns a stream on r and w. An incoming message is at most max bytes long; 0 means
// [DefaultMaxMessage]. Close stops the writer. The caller still owns r and w, and must close them to end a
// Recv.
func NewLines(r io.Reader, w io.Writer, max int) *Lines {
	if max <= 0 {
		max = DefaultMaxMessage
	}
	l := &Lines{max: max, in: lineReader{src: r, max: max}}
	l.out.start(w)
	return l
}

// Send queues a message. It blocks only while the queue is full.
func (l *Lines) Send(ctx context.Context, m jsonrpc.Outgoing) error { return l.out.send(ctx, m.Body) }

// Recv returns the next non-blank line. It ignores the context; closing the reader ends it.
func (l *Lines) Recv(context.Context) ([]byte, error) { return l.in.next() }

// Close refuses further messages. A goroutine still writes the queued messages. It ends when the writer has accepted
// them or has failed.
func (l *Lines) Close() error { l.out.stop(); return nil }

// lender is a source that uses a buffer only while it has data.
type lender interface {
	// Lend waits for data and returns it together with the error of the read. The data is valid until the
	// next call.
	Lend() ([]byte, error)
}

// buffers pools the buffers of lenders.
var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

func borrow() *[readSize]byte    { return buffers.Get().(*[readSize]byte) }
func giveBack(b *[readSize]byte) { buffers.Put(b) }

// lineReader splits a stream into lines of a bounded length.
type lineReader struct {
	src  io.Reader
	max  int
	buf  []byte // allocated once, unless the source is a lender
	wide []byte // allocated during a long line
	have []byte // read but not yet split
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
		case !over: // skip the rest
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
			case !ended: // report the end after the last line
				return nil, r.err
			}
			line, size = pieces{}, 0
			continue
		}
		r.fill(size)
	}
}

// fill reads more data. size is the length of the current line so far.
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

// isBlank reports whether a line contains only white space.
func isBlank(line *pieces) bool {
	for _, b := range line.full {
		if len(bytes.TrimSpace(b)) > 0 {
			return false
		}
	}
	return len(bytes.TrimSpace(line.last)) == 0
}

// lineWriter lets any number of goroutines write lines. Lines queued during a write are written together
// afterwards.
type lineWriter struct {
	try func([]byte) int // writes without blocking; nil if dst does not support this
	dst io.Writer

	mu    sync.Mutex
	buf   []byte // queued lines
	spare []byte // buffer for the next queue
	busy  bool   // a goroutine is writing, and will also write buf
	err   error
	ended bool
	room  chan struct{} // closed and replaced when buf is taken; nil if no sender waits
	gone  chan struct{} // closed when the writer is stopped and idle
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
	// Newlines within a message are white space between JSON tokens. Replace them, so that a message is one line.
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
	go w.run(left) // at most one, because busy is set; gone reports its end
	return nil
}

// take returns the queued lines and wakes waiting senders. The lock is held.
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

// run writes the data that send could not write without blocking, until the queue is empty.
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

// fail stores the error that all senders get after this. The lock is held.
func (w *lineWriter) fail(err error) {
	w.err = err
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}

// stop refuses further messages. Queued messages are still written. gone is closed at the end.
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

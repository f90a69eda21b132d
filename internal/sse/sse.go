// Package sse reads server-sent events (WHATWG HTML, section 9.2.6) from a
// byte stream.
//
// It stands between an HTTP response body and those who understand what the
// events say: package transport reads MCP messages with it, package model the
// streamed answers of language models. Both face peers that may be broken or
// hostile, so a [Reader] is bounded: it counts bytes before it has seen the end
// of a line, holds one event at a time, and never reads ahead of an event that
// is complete in what has arrived. Buffers are pooled, so that a stream of
// small events costs no allocation for each of them.
//
// The package neither connects nor reconnects; the last event id and the
// retry time that reconnecting needs are offered by the Reader.
package sse

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

// ErrTooLarge is returned by [Reader.Next] when a line or an event is larger
// than the reader's bound. The stream cannot be read further.
var ErrTooLarge = errors.New("sse: an event is over its size limit")

// DefaultMax is the bound of an event where [NewReader] is given none: 16 MiB.
const DefaultMax = 16 << 20

const (
	startSize = 4 << 10
	keepSize  = 64 << 10 // larger buffers are not pooled
)

// Event is one dispatched event.
type Event struct {
	// Type is the event's name, "" for the default, which is "message".
	Type string
	// Data is the joined data lines. It is valid until the next call of Next.
	Data []byte
	// ID is the last event id of the stream when the event was dispatched.
	ID string
}

// Reader reads events. It is not safe for concurrent use.
type Reader struct {
	src    io.Reader
	max    int
	buf    []byte // read but not consumed: buf[pos:end]
	pos    int
	end    int
	seen   int // bytes after pos that hold no line end
	data   []byte
	lines  int // data lines of the event so far
	typ    string
	id     string
	retry  time.Duration
	skipLF bool // the last line ended with CR: a LF that follows belongs to it
	begun  bool
	empty  int // reads in a row that gave nothing
	err    error
}

type buffers struct{ buf, data []byte }

var pool = sync.Pool{New: func() any {
	return &buffers{buf: make([]byte, startSize), data: make([]byte, 0, startSize)}
}}

// NewReader returns a reader of src whose lines and events are at most max
// bytes long, [DefaultMax] where max is not positive. It does not close src.
func NewReader(src io.Reader, max int) *Reader {
	if max <= 0 {
		max = DefaultMax
	}
	b := pool.Get().(*buffers)
	return &Reader{src: src, max: max, buf: b.buf, data: b.data[:0]}
}

// LastID returns the last event id that the stream has set.
func (r *Reader) LastID() string { return r.id }

// Retry returns the reconnection time that the stream has set, 0 for none.
func (r *Reader) Retry() time.Duration { return r.retry }

// Close gives the buffers back. It is needed only where reading stops before
// Next has returned an error. It does not close the source.
func (r *Reader) Close() {
	if r.err == nil {
		r.err = io.ErrClosedPipe
	}
	if r.buf != nil && len(r.buf) <= keepSize && cap(r.data) <= keepSize {
		pool.Put(&buffers{buf: r.buf, data: r.data})
	}
	r.buf, r.data = nil, nil
}

// Next returns the next event. An event that the stream's end cuts off is
// dropped, as the standard says. The error is io.EOF at the end, [ErrTooLarge],
// or what the source gave; it stays.
func (r *Reader) Next() (Event, error) {
	if r.err != nil {
		return Event{}, r.err
	}
	r.data, r.lines, r.typ = r.data[:0], 0, ""
	for {
		line, err := r.line()
		if err == nil && len(line) > 0 {
			err = r.field(line)
		}
		if err != nil {
			r.err = err
			r.Close()
			return Event{}, err
		}
		if len(line) > 0 {
			continue
		}
		if r.lines == 0 {
			r.typ = ""
			continue
		}
		return Event{Type: r.typ, Data: r.data[:len(r.data)-1], ID: r.id}, nil
	}
}

// line returns the next line without its end. A CR at the end of what has
// arrived ends the line at once; waiting for a LF could hold back an event.
func (r *Reader) line() ([]byte, error) {
	for {
		if r.skipLF && r.pos < r.end {
			r.skipLF = false
			if r.buf[r.pos] == '\n' {
				r.pos++
			}
		}
		if !r.begun && r.end-r.pos >= 3 || !r.begun && r.end > r.pos && r.buf[r.pos] != 0xEF {
			r.begun = true
			if bytes.HasPrefix(r.buf[r.pos:r.end], []byte("\xEF\xBB\xBF")) {
				r.pos += 3
			}
		}
		if r.begun {
			have := r.buf[r.pos:r.end]
			rest := have[r.seen:]
			n := bytes.IndexByte(rest, '\n')
			if n >= 0 {
				rest = rest[:n]
			}
			if c := bytes.IndexByte(rest, '\r'); c >= 0 {
				n, r.skipLF = c, true
			}
			if n >= 0 {
				n += r.seen
				r.pos, r.seen = r.pos+n+1, 0
				if n > r.max {
					return nil, ErrTooLarge
				}
				return have[:n], nil
			}
			r.seen = len(have)
			if r.seen > r.max {
				return nil, ErrTooLarge
			}
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads once, making room before.
func (r *Reader) fill() error {
	switch {
	case r.pos == r.end:
		r.pos, r.end = 0, 0
	case r.end == len(r.buf) && r.pos > 0:
		r.end = copy(r.buf, r.buf[r.pos:r.end])
		r.pos = 0
	case r.end == len(r.buf):
		size := min(2*len(r.buf), r.max+startSize)
		grown := make([]byte, max(size, r.end+1))
		copy(grown, r.buf[:r.end])
		r.buf = grown
	}
	n, err := r.src.Read(r.buf[r.end:])
	r.end += n
	if n > 0 {
		r.empty = 0
		return nil // an error comes again with the next read
	}
	if err != nil {
		return err
	}
	if r.empty++; r.empty > 100 {
		return io.ErrNoProgress
	}
	return nil
}

// field takes one line that is not empty.
func (r *Reader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		if len(r.data)+len(value)+1 > r.max+1 {
			return ErrTooLarge
		}
		r.data = append(append(r.data, value...), '\n')
		r.lines++
	case "event":
		r.typ = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 && string(value) != r.id {
			r.id = string(value)
		}
	case "retry":
		if d, ok := digits(value); ok {
			r.retry = d
		}
	}
	return nil
}

// digits reads a time in milliseconds; more than an hour counts as an hour.
func digits(b []byte) (time.Duration, bool) {
	var ms int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		ms = min(ms*10+int64(c-'0'), time.Hour.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, len(b) > 0
}

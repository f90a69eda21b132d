// Package sse reads server-sent events (WHATWG HTML, section 9.2.6) from a
// byte stream.
//
// Package transport reads MCP messages with it, and package model the streamed responses of language models.
// Both face peers that may be broken or hostile, so a [Reader] is bounded. It counts bytes before it has seen
// the end of a line, holds one event at a time, and returns a complete event without waiting for more bytes.
// Buffers are pooled, so that a stream of small events needs no allocation for each event.
//
// The package neither connects nor reconnects. The Reader provides the last event id and the retry time for
// reconnecting.
package sse

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

// ErrTooLarge is returned by [Reader.Next] if a line or an event exceeds the reader's limit. The stream
// cannot be read further.
var ErrTooLarge = errors.New("sse: an event is over its size limit")

// DefaultMax is the default limit of an event in bytes.
const DefaultMax = 16 << 20

const (
	startSize = 4 << 10
	keepSize  = 64 << 10 // larger buffers are not pooled
)

// Event is one dispatched event.
type Event struct {
	// Type is the event's name, or "" for the default, which is "message".
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
	buf    []byte // unconsumed bytes: buf[pos:end]
	pos    int
	end    int
	seen   int // bytes after pos without a line end
	data   []byte
	lines  int // data lines of the event so far
	typ    string
	id     string
	retry  time.Duration
	skipLF bool // the last line ended with CR; a following LF belongs to it
	begun  bool
	empty  int  // consecutive reads without data
	errors bool // see KeepErrors
	bare   bool // the event consists of lines without a field name
	err    error
}

type buffers struct{ buf, data []byte }

var pool = sync.Pool{New: func() any {
	return &buffers{buf: make([]byte, startSize), data: make([]byte, 0, startSize)}
}}

// NewReader returns a reader of src. Its lines and events are at most max bytes long, or [DefaultMax] if max
// is not positive. It does not close src.
func NewReader(src io.Reader, max int) *Reader {
	if max <= 0 {
		max = DefaultMax
	}
	b := pool.Get().(*buffers)
	return &Reader{src: src, max: max, buf: b.buf, data: b.data[:0]}
}

// LastID returns the last event id that the stream has set.
func (r *Reader) LastID() string { return r.id }

// Retry returns the reconnection time that the stream has set, or 0 if there is none.
func (r *Reader) Retry() time.Duration { return r.retry }

// Close releases the buffers. It is only needed if reading stops before Next has returned an error. It does
// not close the source.
func (r *Reader) Close() {
	if r.err == nil {
		r.err = io.ErrClosedPipe
	}
	if r.buf != nil && len(r.buf) <= keepSize && cap(r.data) <= keepSize {
		pool.Put(&buffers{buf: r.buf, data: r.data})
	}
	r.buf, r.data = nil, nil
}

// KeepErrors makes the reader return a line "error: TEXT" and JSON that is not in a data line as events of type error.
// The standard ignores both; providers of models report failures in the middle of a stream like that.
func (r *Reader) KeepErrors() { r.errors = true }

// Next returns the next event. An event cut off by the end of the stream is dropped, as the standard
// requires. The error is io.EOF at the end, [ErrTooLarge], or the error of the source. Later calls return the
// same error.
func (r *Reader) Next() (Event, error) {
	if r.err != nil {
		return Event{}, r.err
	}
	r.data, r.lines, r.typ, r.bare = r.data[:0], 0, "", false
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

// line returns the next line without its terminator. A CR at the end of the received bytes ends the line at
// once, because waiting for a LF could delay an event.
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

// fill reads once, after making room in the buffer.
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
		return nil // an error recurs on the next read
	}
	if err != nil {
		return err
	}
	if r.empty++; r.empty > 100 {
		return io.ErrNoProgress
	}
	return nil
}

// field handles one non-empty line.
func (r *Reader) field(line []byte) error {
	if r.errors && r.lines == 0 && line[0] == '{' {
		r.bare, r.typ = true, "error"
	}
	if r.bare {
		return r.add(line)
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		return r.add(value)
	case "error":
		if r.errors {
			r.typ = "error"
			return r.add(value)
		}
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

// add appends a line to the data of the event.
func (r *Reader) add(line []byte) error {
	if len(r.data)+len(line)+1 > r.max+1 {
		return ErrTooLarge
	}
	r.data = append(append(r.data, line...), '\n')
	r.lines++
	return nil
}

// digits parses a time in milliseconds. Times over an hour become an hour.
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

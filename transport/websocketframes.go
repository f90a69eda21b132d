package transport

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// socketReader reads the frames after an upgrade. It checks them and records whether the connection was read to
// its end. The library treats a message as complete if the connection ends before its next frame.
type socketReader struct {
	src    io.Reader
	close  func() error // closes the connection without a handshake
	frames frameCheck
	late   error // error returned after the last bytes
	ended  atomic.Bool
}

// Read returns an error only after all bytes that precede it. It returns no byte of an invalid frame, except bytes that
// were returned before the frame proved invalid. After the valid frames it returns a [frameError].
func (c *socketReader) Read(b []byte) (int, error) {
	if c.late != nil {
		return c.fail(c.late)
	}
	n, err := c.src.Read(b)
	if good, bad := c.frames.next(b[:n]); bad != nil {
		n, err = good, bad
	}
	switch {
	case err != nil && n > 0:
		c.late = err
		return n, nil
	case err != nil:
		return c.fail(err)
	}
	return n, nil
}

func (c *socketReader) fail(err error) (int, error) {
	if _, ok := err.(*frameError); ok {
		c.late = err // frames after an invalid one are ignored
	}
	c.ended.Store(true)
	return 0, err
}

// upgrading is a round tripper that puts a socketReader around the connection of an upgrade.
type upgrading struct {
	http.RoundTripper
	in *socketReader
}

// RoundTrip implements [http.RoundTripper].
func (u *upgrading) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.RoundTripper.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return resp, err
	}
	if body, ok := resp.Body.(io.ReadWriteCloser); ok {
		u.in = &socketReader{src: body, close: body.Close, frames: frameCheck{client: true}}
		resp.Body = upgraded{body, u.in}
	}
	return resp, nil
}

// upgraded is the client's connection after the upgrade.
type upgraded struct {
	io.ReadWriteCloser
	in *socketReader
}

// Read implements [io.Reader].
func (u upgraded) Read(b []byte) (int, error) { return u.in.Read(b) }

// hijacker keeps a reference to the connection that an upgrade of a client's request takes over.
type hijacker struct {
	http.ResponseWriter
	in *socketReader
}

// Hijack implements [http.Hijacker] for the upgrade. The reader begins with the bytes that are already buffered.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early, _ := rw.Reader.Peek(rw.Reader.Buffered()) // cannot fail: the bytes are there
	h.in = &socketReader{src: io.MultiReader(bytes.NewReader(bytes.Clone(early)), c), close: c.Close}
	conn := hijacked{c, h.in}
	return conn, bufio.NewReadWriter(bufio.NewReader(conn), rw.Writer), nil
}

// hijacked is the server's connection after the upgrade.
type hijacked struct {
	net.Conn
	in *socketReader
}

// Read implements [io.Reader].
func (h hijacked) Read(b []byte) (int, error) { return h.in.Read(b) }

// frameError reports a frame that RFC 6455 forbids, with the close code for it.
type frameError struct {
	code websocket.StatusCode
	what string // text after "the other side sent"
}

func (e *frameError) Error() string { return "invalid frame: " + e.what }

// frameCheck follows the frames of a stream. It refuses two kinds that the library accepts: frames masked in
// the wrong direction (RFC 6455, section 5.1), and close frames whose reason is not UTF-8 (section 5.5.1).
type frameCheck struct {
	client bool // this end is the client, so frames must not be masked
	head   [14]byte
	have   int    // bytes of the header so far
	need   int    // size of the header, once known
	left   uint64 // bytes of the payload that are still to come
	close  bool   // the frame is a close frame of legal size
	reason [maxControl]byte
	read   int // bytes of reason so far
}

// maxControl bounds the payload of a control frame (RFC 6455, section 5.5).
const maxControl = 125

const opClose = 8

// next consumes bytes. For an invalid frame it returns the number of bytes before that frame.
func (f *frameCheck) next(b []byte) (good int, bad *frameError) {
	for i := 0; i < len(b); {
		if f.left > 0 {
			n := int(min(uint64(len(b)-i), f.left))
			if f.close {
				f.read += copy(f.reason[f.read:], b[i:i+n])
			}
			i, f.left = i+n, f.left-uint64(n)
			if f.left > 0 {
				return len(b), nil
			}
			if err := f.end(); err != nil {
				return good, err
			}
			good = i
			continue
		}
		f.head[f.have] = b[i]
		f.have, i = f.have+1, i+1
		if f.have == 2 && f.masked() == f.client {
			what := "a masked frame, which only clients may send"
			if !f.client {
				what = "a frame without a mask, which clients must use"
			}
			return good, &frameError{websocket.StatusProtocolError, what}
		}
		if f.header() {
			good = i
		}
	}
	return len(b), nil
}

func (f *frameCheck) masked() bool { return f.head[1]&0x80 != 0 }

// header reads the header once it is complete. It reports whether the frame ends with the header, because
// it has no payload.
func (f *frameCheck) header() bool {
	if f.have < 2 {
		return false
	}
	size := uint64(f.head[1] & 0x7f)
	f.need = 2
	switch size {
	case 126:
		f.need = 4
	case 127:
		f.need = 10
	}
	mask := f.need
	if f.masked() {
		f.need += 4
	}
	if f.have < f.need {
		return false
	}
	switch size {
	case 126:
		size = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		size = binary.BigEndian.Uint64(f.head[2:])
	}
	f.have, f.left, f.read = 0, size, 0
	f.close = f.head[0]&0x0f == opClose && size <= maxControl
	copy(f.head[10:], f.head[mask:f.need])
	return size == 0
}

// end checks the payload of a frame that is complete.
func (f *frameCheck) end() *frameError {
	if !f.close {
		return nil
	}
	text := f.reason[:f.read]
	if f.masked() {
		for i := range text {
			text[i] ^= f.head[10+i%4]
		}
	}
	if len(text) > 2 && !utf8.Valid(text[2:]) {
		return &frameError{websocket.StatusInvalidFramePayloadData, "a close frame whose reason is not UTF-8"}
	}
	return nil
}

package testserver

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/tenonhq/tenon/jsonrpc"
)

// socket is a handwritten WebSocket (RFC 6455), because a library would not produce invalid frames.
type socket struct {
	conn net.Conn
	in   *bufio.Reader
	mu   sync.Mutex
}

// serveSocket upgrades the connection and serves with the fault.
func (s *server) serveSocket(w http.ResponseWriter, r *http.Request) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "no WebSocket", http.StatusBadRequest)
		return
	}
	defer conn.Close()
	c := &socket{conn: conn, in: rw.Reader}
	c.write(fmt.Appendf(nil,
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Protocol: mcp\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:])))
	_ = s.srv.Serve(r.Context(), newHostile(c, s.fault, c)) // the end of the connection is expected
}

func (c *socket) write(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.conn.Write(b) // fails if the client has gone
}

// frame writes one frame. The opcodes are 1 text, 2 binary, 8 close, 9 ping, 10 pong.
func (c *socket) frame(final bool, op byte, b []byte) {
	head := []byte{op, 0}
	if final {
		head[0] |= 0x80
	}
	switch {
	case len(b) < 126:
		head[1] = byte(len(b))
	case len(b) < 1<<16:
		head[1] = 126
		head = binary.BigEndian.AppendUint16(head, uint16(len(b)))
	default:
		head[1] = 127
		head = binary.BigEndian.AppendUint64(head, uint64(len(b)))
	}
	c.write(append(head, b...))
}

func (c *socket) message(b []byte) { c.frame(true, 1, b) }
func (c *socket) raw(b []byte)     { c.frame(true, 1, b) }
func (c *socket) drop()            { _ = c.conn.Close() }

// Send writes a message.
func (c *socket) Send(_ context.Context, m jsonrpc.Outgoing) error { c.message(m.Body); return nil }

// Recv reads the next text message. Clients send each in one frame.
func (c *socket) Recv(context.Context) ([]byte, error) {
	for {
		var head [2]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return nil, err
		}
		size := uint64(head[1] & 0x7f)
		if wide := map[uint64]int{126: 2, 127: 8}[size]; wide > 0 {
			var b [8]byte
			if _, err := io.ReadFull(c.in, b[8-wide:]); err != nil {
				return nil, err
			}
			size = binary.BigEndian.Uint64(b[:])
		}
		if size > 4<<20 {
			return nil, errors.New("a frame is too large")
		}
		b := make([]byte, 4+size)
		if _, err := io.ReadFull(c.in, b); err != nil {
			return nil, err
		}
		mask, b := b[:4], b[4:]
		for i := range b {
			b[i] ^= mask[i%4]
		}
		switch head[0] & 0xf {
		case 1:
			return b, nil
		case 8:
			c.frame(true, 8, b)
			return nil, io.EOF
		case 9:
			c.frame(true, 10, b)
		}
	}
}

var _ jsonrpc.Stream = (*socket)(nil)

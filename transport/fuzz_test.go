package transport

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/jsonrpc"
)

// maxFuzzed is the message limit of the fuzz targets. It is small, so that short inputs exceed it.
const maxFuzzed = 64

// recvAll describes the messages of a stream until its end, and returns the error that ended it.
func recvAll(t *testing.T, recv func() ([]byte, error)) (got []string, err error) {
	t.Helper()
	for {
		b, err := recv()
		var size *jsonrpc.SizeError
		switch {
		case errors.As(err, &size):
			if size.Limit != maxFuzzed || len(size.Prefix) > maxFuzzed+readSize {
				t.Fatalf("limit %d, %d bytes kept", size.Limit, len(size.Prefix))
			}
			got = append(got, "too large")
		case err != nil:
			return got, err
		case len(b) > maxFuzzed:
			t.Fatalf("a message of %d bytes", len(b))
		default:
			got = append(got, string(b))
		}
	}
}

// lent lends a buffer with n bytes at a time.
type lent struct {
	b []byte
	n int
}

func (l *lent) Read([]byte) (int, error) { panic("it lends") }

func (l *lent) Lend() ([]byte, error) {
	n := min(l.n, len(l.b))
	part := bytes.Clone(l.b[:n])
	if l.b = l.b[n:]; len(l.b) == 0 {
		return part, io.EOF
	}
	return part, nil
}

// FuzzLines checks the framing of stdio. However the bytes arrive, the messages are the lines that are
// neither blank nor over the limit, complete and in order.
func FuzzLines(f *testing.F) {
	long := strings.Repeat("x", maxFuzzed)
	for _, s := range []string{"", "\n", "{}\n", "{}", "a\n\n  \t\r\nb\r\n", "{\"a\":1}\n{\"b\":2}\n{", long + "\n" +
		long + "y\nz\n", long + long + long, strings.Repeat(" ", 2*maxFuzzed) + "\na\n", "\x00\n\xff\xfe\n"} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		var want []string
		for line := range bytes.SplitSeq(b, []byte{'\n'}) {
			switch {
			case len(line) > maxFuzzed:
				want = append(want, "too large")
			case len(bytes.TrimSpace(line)) > 0:
				want = append(want, string(line))
			}
		}
		for name, r := range map[string]io.Reader{
			"whole": bytes.NewReader(b), "byte by byte": iotest.OneByteReader(bytes.NewReader(b)),
			"halves":        iotest.HalfReader(bytes.NewReader(b)),
			"end with data": iotest.DataErrReader(bytes.NewReader(b)), "lent": &lent{b, int(n)%7 + 1},
		} {
			l := NewLines(r, io.Discard, maxFuzzed)
			got, err := recvAll(t, func() ([]byte, error) { return l.Recv(t.Context()) })
			if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, io.EOF) {
				t.Fatalf("%s: %v\n%s", name, err, diff)
			}
			_ = l.Close()
		}
	})
}

// spoken is a connection that delivers fixed bytes, n at a time, and then EOF. It ignores what is written.
type spoken struct {
	net.Conn
	b []byte
	n int
}

func (s *spoken) Read(b []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.b[:min(s.n, len(s.b))])
	s.b = s.b[n:]
	return n, nil
}

func (s *spoken) Write(b []byte) (int, error) { return len(b), nil }
func (s *spoken) Close() error                { return nil }

// fuzzed returns a WebSocket whose server sends b.
func fuzzed(t *testing.T, b []byte, n int) *WebSocket {
	t.Helper()
	up := &upgrading{RoundTripper: accepts{&spoken{b: b, n: n}}}
	conn, _, err := websocket.Dial(t.Context(), "ws://fuzz/",
		&websocket.DialOptions{HTTPClient: &http.Client{Transport: up}, Subprotocols: []string{Subprotocol}})
	if err != nil {
		t.Fatal(err)
	}
	return newWebSocket(conn, up.in, "fuzz", WebSocketConfig{MaxMessage: maxFuzzed})
}

// accepts is a RoundTripper that accepts an upgrade and returns conn as its connection.
type accepts struct{ conn net.Conn }

func (a accepts) RoundTrip(r *http.Request) (*http.Response, error) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") +
		"258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455, section 4.2.2
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: a.conn, Request: r, Header: http.Header{
		"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Protocol": {Subprotocol},
		"Sec-Websocket-Accept": {base64.StdEncoding.EncodeToString(sum[:])}}}, nil
}

// frame encodes one unmasked frame, as a server sends it (RFC 6455, section 5.2).
func frame(first byte, payload string) string {
	switch n := len(payload); {
	case n < 126:
		return string([]byte{first, byte(n)}) + payload
	default:
		return string(binary.BigEndian.AppendUint16([]byte{first, 126}, uint16(n))) + payload
	}
}

// FuzzWebSocket checks the messages read from arbitrary frames. However the bytes are split, the messages are
// the same, are UTF-8 text within the limit, and the stream ends.
func FuzzWebSocket(f *testing.F) {
	const text, binary, more, ping, bye = 0x81, 0x82, 0x80, 0x89, 0x88
	for _, s := range []string{"", frame(text, "{}"), frame(text, "{}") + frame(text, "{\"a\":1}"),
		frame(0x01, "{\"a\"") + frame(ping, "x") + frame(more, ":1}"),
		frame(0x01, "\xf0\x9f") + frame(more, "\x98\x80"), frame(text, "\xff"), frame(binary, "{}"),
		frame(bye, "\x03\xe8bye"), frame(bye, "x"),
		frame(text, strings.Repeat("x", maxFuzzed+1)) + frame(text, "{}"), frame(text, strings.Repeat("x", 300)),
		frame(0xC1, "{}"), frame(0x83, "?"), frame(more, "alone"),
		"\x81\xffxxxxxxxx", "\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", "\x81\x82keyy{}", frame(0x09, "half a ping"),
		frame(0x01, "{\"a1"), "\x81\x04", frame(0x01, "{}") + frame(ping, "x")} {
		f.Add([]byte(s), uint8(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		if len(b) > 4<<10 {
			return
		}
		var first []string
		for i, n := range []int{len(b) + 1, int(n)%9 + 1} {
			w := fuzzed(t, b, n)
			got, err := recvAll(t, func() ([]byte, error) { return w.Recv(context.Background()) })
			for _, m := range got {
				if !utf8.ValidString(m) {
					t.Fatalf("message %q", m)
				}
			}
			if w.Send(t.Context(), jsonrpc.Outgoing{Body: []byte("{}")}) == nil {
				t.Fatalf("it ended with %v, but continues", err)
			}
			_ = w.Close()
			if i == 0 {
				first = got
			} else if diff := cmp.Diff(first, got); diff != "" {
				t.Fatal(fmt.Sprintf("cut into %d bytes:\n", n) + diff)
			}
		}
	})
}

package transport

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
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rawSocket starts a server that upgrades by hand, sends the bytes in pieces, and reports the frames that the
// client sends until its close frame or the end.
func rawSocket(t *testing.T, sent []string) (string, <-chan []rawFrame) {
	t.Helper()
	got := make(chan []rawFrame, 1)
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		_, _ = fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Protocol: mcp\r\nSec-WebSocket-Accept: %s\r\n\r\n",
			base64.StdEncoding.EncodeToString(sum[:]))
		for _, s := range sent {
			_, _ = io.WriteString(c, s)
		}
		got <- framesOf(t, rw.Reader)
	})
	return "ws" + strings.TrimPrefix(url, "http"), got
}

// rawFrame is a frame of the client without its mask.
type rawFrame struct {
	First   byte
	Payload string
}

func framesOf(t *testing.T, r *bufio.Reader) (all []rawFrame) {
	for {
		var head [2]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return all
		}
		if head[1]&0x80 == 0 {
			t.Error("the client sent a frame without a mask")
		}
		size := int(head[1] & 0x7f)
		if size == 126 {
			var long [2]byte
			_, _ = io.ReadFull(r, long[:])
			size = int(binary.BigEndian.Uint16(long[:]))
		}
		b := make([]byte, 4+size)
		if _, err := io.ReadFull(r, b); err != nil {
			t.Error(err)
			return all
		}
		for i := range b[4:] {
			b[4+i] ^= b[i%4]
		}
		all = append(all, rawFrame{head[0], string(b[4:])})
		if head[0]&0x0f == 8 {
			return all
		}
	}
}

// maskedFrame encodes a frame as a client does.
func maskedFrame(first byte, payload string) string {
	b := []byte(payload)
	key := "key!"
	for i := range b {
		b[i] ^= key[i%4]
	}
	return string([]byte{first, 0x80 | byte(len(b))}) + key + string(b)
}

// First bytes of frames that are the last of their message.
const firstText, firstBinary, firstMore, firstPing, firstPong, firstClose = 0x81, 0x82, 0x80, 0x89, 0x8a, 0x88

// longText is one byte longer than the payload of a control frame may be.
var longText = strings.Repeat("p", 126)

// framesCase has the frames that a server sends, the messages that the client must receive, and the frames that it must
// answer with.
type framesCase struct {
	name  string
	sent  string
	want  []string // messages
	pongs []string
	code  int // of the client's close frame; 0: a close frame without a code
	err   string
}

// TestRFC6455 sends group 1 of the cases of Autobahn's fuzzing client: framing. Its frames are written by hand, because
// Autobahn's releases need Python 2.
func TestRFC6455(t *testing.T) {
	checkFrames(t, []framesCase{
		{"text", frame(firstText, frameText), []string{frameText}, nil, 1000, ""},
		{"empty_text", frame(firstText, "") + frame(firstText, frameText), []string{"", frameText}, nil, 1000, ""},
		{"text_of_125", frame(firstText, longText[:125]), []string{longText[:125]}, nil, 1000, ""},
		{"text_of_126", frame(firstText, longText), []string{longText}, nil, 1000, ""},
		{"binary_json", frame(firstBinary, frameText), []string{frameText}, nil, 1000, ""},
		{"binary_fragments", frame(0x02, "{\"a\"") + frame(firstMore, ":1}"), []string{`{"a":1}`}, nil, 1000, ""},
		{"binary_not_utf8", frame(firstBinary, "\xff\xfe"), nil, nil, 1003, "a binary message that is not UTF-8"},
	})
}

// TestRFC6455Pings sends group 2: pings and pongs.
func TestRFC6455Pings(t *testing.T) {
	checkFrames(t, []framesCase{
		{"ping", frame(firstPing, "x") + frame(firstText, frameText), []string{frameText}, []string{"x"}, 1000, ""},
		{"empty_ping", frame(firstPing, "") + frame(firstText, frameText), []string{frameText}, []string{""}, 1000, ""},
		{"ping_of_125", frame(firstPing, longText[:125]) + frame(firstText, frameText), []string{frameText},
			[]string{longText[:125]}, 1000, ""},
		{"ping_of_126", frame(firstPing, longText), nil, nil, 1002, ""},
		{"ten_pings", strings.Repeat(frame(firstPing, "x"), 10) + frame(firstText, frameText), []string{frameText},
			slices.Repeat([]string{"x"}, 10), 1000, ""},
		{"unasked_pong", frame(firstPong, "x") + frame(firstText, frameText), []string{frameText}, nil, 1000, ""},
	})
}

// TestRFC6455ReservedBits sends group 3: reserved bits.
func TestRFC6455ReservedBits(t *testing.T) {
	checkFrames(t, []framesCase{
		{"rsv1", frame(0xc1, frameText), nil, nil, 1002, ""},
		{"rsv2", frame(0xa1, frameText), nil, nil, 1002, ""},
		{"rsv3", frame(firstText, frameText) + frame(0x91, frameText), []string{frameText}, nil, 1002, ""},
		{"rsv_of_a_ping", frame(0xf9, ""), nil, nil, 1002, ""},
	})
}

// TestRFC6455Opcodes sends group 4: opcodes.
func TestRFC6455Opcodes(t *testing.T) {
	checkFrames(t, []framesCase{
		{"opcode_3", frame(0x83, ""), nil, nil, 1002, ""},
		{"opcode_7", frame(firstText, frameText) + frame(0x87, "x"), []string{frameText}, nil, 1002, ""},
		{"opcode_11", frame(0x8b, ""), nil, nil, 1002, ""},
		{"opcode_15", frame(0x8f, "x"), nil, nil, 1002, ""},
	})
}

// TestRFC6455Fragments sends group 5: fragments.
func TestRFC6455Fragments(t *testing.T) {
	checkFrames(t, []framesCase{
		{"fragments", frame(0x01, "{\"a\"") + frame(0x00, ":") + frame(firstMore, "1}"), []string{`{"a":1}`}, nil, 1000, ""},
		{"ping_between", frame(0x01, "{\"a\"") + frame(firstPing, "x") + frame(firstMore, ":1}"), []string{`{"a":1}`},
			[]string{"x"}, 1000, ""},
		{"fragmented_ping", frame(0x09, "a") + frame(firstMore, "b"), nil, nil, 1002, ""},
		{"fragmented_close", frame(0x08, "\x03\xe8"), nil, nil, 1002, ""},
		{"continuation_alone", frame(firstMore, "x"), nil, nil, 1002, ""},
		{"continuation_after_the_end", frame(firstText, frameText) + frame(0x00, "x"), []string{frameText}, nil, 1002, ""},
		{"text_inside_a_text", frame(0x01, "{") + frame(firstText, "}"), nil, nil, 1002, ""},
	})
}

// TestRFC6455UTF8 sends group 6: text that is UTF-8, and text that is not.
func TestRFC6455UTF8(t *testing.T) {
	checkFrames(t, []framesCase{
		{"character_in_two_frames", frame(0x01, "\xf0\x9f") + frame(firstMore, "\x98\x80"), []string{"😀"}, nil, 1000, ""},
		{"not_utf8", frame(firstText, "\xff"), nil, nil, 1007, "text that is not UTF-8"},
		{"overlong", frame(firstText, "\xc0\xaf"), nil, nil, 1007, "text that is not UTF-8"},
		{"surrogate", frame(firstText, "\xed\xa0\x80"), nil, nil, 1007, "text that is not UTF-8"},
		{"half_a_character", frame(0x01, "\xf0\x9f") + frame(firstMore, "\x92"), nil, nil, 1007, "text that is not UTF-8"},
		{"beyond_unicode", frame(firstText, "\xf4\x90\x80\x80"), nil, nil, 1007, "text that is not UTF-8"},
	})
}

// TestRFC6455Close sends group 7: the close frame.
func TestRFC6455Close(t *testing.T) {
	checkFrames(t, []framesCase{
		{"close", frame(firstClose, "\x03\xe8"), nil, nil, 1000, "closed the connection (1000)"},
		{"close_without_code", frame(firstClose, ""), nil, nil, 0, "closed the connection (1005)"},
		{"close_with_reason", frame(firstClose, "\x03\xe9bye"), nil, nil, 1001, "'bye' (1001)"},
		{"close_of_one_byte", frame(firstClose, "x"), nil, nil, 1002, ""},
		{"close_of_126", frame(firstClose, "\x03\xe8"+longText[:124]), nil, nil, 1002, ""},
		{"close_reason_of_123", frame(firstClose, "\x03\xe8"+longText[:123]), nil, nil, 1000, "(1000)"},
		{"close_reason_not_utf8", frame(firstClose, "\x03\xe8\xce\xba\xff"), nil, nil, 1007,
			"a close frame whose reason is not UTF-8"},
		{"close_code_999", frame(firstClose, "\x03\xe7"), nil, nil, 1002, ""},
		{"close_code_1004", frame(firstClose, "\x03\xec"), nil, nil, 1002, ""},
		{"close_code_1005", frame(firstClose, "\x03\xed"), nil, nil, 1002, ""},
		{"close_code_1006", frame(firstClose, "\x03\xee"), nil, nil, 1002, ""},
		{"close_code_2999", frame(firstClose, "\x0b\xb7"), nil, nil, 1002, ""},
		{"close_code_3000", frame(firstClose, "\x0b\xb8"), nil, nil, 3000, "(3000)"},
		{"close_code_4999", frame(firstClose, "\x13\x87"), nil, nil, 4999, "(4999)"},
		{"close_code_5000", frame(firstClose, "\x13\x88"), nil, nil, 1002, ""},
		{"text_after_close", frame(firstClose, "\x03\xe8") + frame(firstText, frameText), nil, nil, 1000, "(1000)"},
	})
}

// TestRFC6455Masks sends frames with masks, which only a client may send (section 5.1).
func TestRFC6455Masks(t *testing.T) {
	checkFrames(t, []framesCase{
		{"masked_text", maskedFrame(firstText, frameText), nil, nil, 1002, "a masked frame"},
		{"masked_text_later", frame(firstText, frameText) + maskedFrame(firstText, frameText), []string{frameText}, nil,
			1002, "a masked frame"},
		{"masked_empty_text", frame(firstText, frameText) + maskedFrame(firstText, ""), []string{frameText}, nil,
			1002, "a masked frame"},
		{"masked_ping", maskedFrame(firstPing, "x"), nil, nil, 1002, "a masked frame"},
		{"masked_close", maskedFrame(firstClose, "\x03\xe8"), nil, nil, 1002, "a masked frame"},
		{"masked_without_its_payload", "\x81\xfe", nil, nil, 1002, "a masked frame"},
	})
}

// checkFrames sends each case byte by byte and at once.
func checkFrames(t *testing.T, cases []framesCase) {
	t.Helper()
	for _, c := range cases {
		for _, pieces := range []int{1, 1 << 20} {
			t.Run(fmt.Sprintf("RP-13_%s/%d", c.name, pieces), func(t *testing.T) {
				t.Parallel()
				c.check(t, pieces)
			})
		}
	}
}

// check sends the frames of a case in pieces of the given number of bytes.
func (c framesCase) check(t *testing.T, pieces int) {
	var sent []string
	for p := range slices.Chunk([]byte(c.sent), pieces) {
		sent = append(sent, string(p))
	}
	url, frames := rawSocket(t, sent)
	w := dialSocket(t, WebSocketConfig{URL: url})
	var got []string
	var err error
	for len(got) < len(c.want) || c.code != 1000 || c.err != "" {
		var b []byte
		if b, err = w.Recv(context.Background()); err != nil {
			break
		}
		got = append(got, string(b))
	}
	if diff := cmp.Diff(c.want, got); diff != "" {
		t.Error(diff)
	}
	if c.err != "" && !strings.Contains(fmt.Sprint(err), c.err) {
		t.Errorf("%v, want %s", err, c.err)
	}
	_ = w.Close() // must not replace the close frame of the error
	all := <-frames
	if len(all) == 0 {
		t.Fatal("no frame of the client")
	}
	last := all[len(all)-1]
	code := 0
	if len(last.Payload) >= 2 {
		code = int(last.Payload[0])<<8 | int(last.Payload[1])
	}
	if last.First != firstClose || code != c.code {
		t.Errorf("the last frame is %+v, want code %d", last, c.code)
	}
	var pongs []string
	for _, f := range all[:len(all)-1] {
		if f.First == firstPong {
			pongs = append(pongs, f.Payload)
		}
	}
	if diff := cmp.Diff(c.pongs, pongs); diff != "" {
		t.Error(diff)
	}
}

const frameText = `{"jsonrpc":"2.0","id":1}`

// TestRFC6455Accept checks frames that a client sends to the listening end.
func TestRFC6455Accept(t *testing.T) {
	for _, c := range []struct {
		name, sent, want string
		code             int
	}{
		{"RP-13_masked", maskedFrame(0x81, frameText), "", 0},
		{"RP-13_unmasked", frame(0x81, frameText), "a frame without a mask", 1002},
		{"RP-13_close_reason_not_utf8", maskedFrame(0x88, "\x03\xe8\xff"), "reason is not UTF-8", 1007},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make(chan error, 1)
			url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				s, err := AcceptWebSocket(w, r, WebSocketConfig{})
				if err != nil {
					t.Error(err)
					return
				}
				b, err := s.Recv(r.Context())
				if err == nil && string(b) != frameText {
					err = errors.New(string(b))
				}
				got <- err
				_ = s.Close()
			})
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"+c.sent)
			err = <-got
			if c.want == "" && err != nil || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%v", err)
			}
			r := bufio.NewReader(conn)
			resp, err := http.ReadResponse(r, nil)
			if err != nil || resp.StatusCode != 101 {
				t.Fatal(resp, err)
			}
			b, _ := io.ReadAll(r)
			if c.code != 0 && (len(b) < 4 || b[0] != 0x88 || int(b[2])<<8|int(b[3]) != c.code) {
				t.Errorf("the last frame is %q, want code %d", b, c.code)
			}
		})
	}
}

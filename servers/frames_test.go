package servers

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestFrames checks that only the last messages are kept, that answers are matched to their requests, that a cut
// message contains no part of a secret, and that calls can be withheld.
func TestFrames(t *testing.T) {
	s := &Server{frames: &frames{}}
	same := func(b []byte) []byte { return b }
	if list := s.Frames(same, ""); len(list) != 0 {
		t.Fatalf("there are %d frames before the first", len(list))
	}
	s.frames.add(true, []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","id":9}}`))
	s.frames.add(false, []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`))
	s.frames.add(false, []byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`))
	s.frames.add(false, []byte(`{"result":{"id":3},"jsonrpc":"2.0"}`)) // the id of its request is missing
	list := s.Frames(same, "")
	for i, want := range []Frame{{Seq: 1, Sent: true, ID: "7", Method: "tools/call"}, {Seq: 2, ID: "7", Method: "tools/call", Answer: true}, {Seq: 3, Method: "notifications/message"}, {Seq: 4}} {
		got := list[i]
		got.At, got.Text, got.Bytes = want.At, "", 0
		if got != want {
			t.Errorf("frame %d is %+v, want %+v", i+1, got, want)
		}
	}
	for i, f := range s.Frames(same, "hush") {
		if hidden := f.Hidden == "hush" && f.Text == ""; hidden != (i != 2) {
			t.Errorf("withheld: frame %d is %+v", i+1, f)
		}
	}

	// A secret at the point where the kept text is cut, and another one where the shown text is cut.
	const secret = "top-secret-value"
	mask := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(secret), []byte("*")) }
	for _, at := range []int{frameShown - 8, frameShown - 1, frameKept - 8, frameKept - 1} {
		s.frames.add(true, []byte(`{"id":1,"method":"m","x":"`+secret+strings.Repeat(".", at-26-len(secret))+secret+strings.Repeat(".", 9000)+`"}`))
		list := s.Frames(mask, "")
		f := list[len(list)-1]
		if !f.Cut || f.Bytes < 13_000 || strings.Contains(f.Text, "top") || strings.Contains(f.Text, "secret") || len(f.Text) > frameShown {
			t.Errorf("a secret at %d: %d bytes shown, it ends with %q", at, len(f.Text), f.Text[max(0, len(f.Text)-20):])
		}
	}
	for i := range 3 * maxFrames {
		s.frames.add(true, fmt.Appendf(nil, `{"id":%d,"method":"m"}`, i))
	}
	if list = s.Frames(same, ""); len(list) != maxFrames || list[maxFrames-1].ID != fmt.Sprint(3*maxFrames-1) || list[0].Seq+maxFrames-1 != list[maxFrames-1].Seq {
		t.Errorf("%d frames, from %+v to %+v", len(list), list[0], list[len(list)-1])
	}
}

// TestFramesKeyOrder checks that an answer is matched with its request wherever its id is, and that the id of something
// inside a message is not taken for the message's.
func TestFramesKeyOrder(t *testing.T) {
	long := strings.Repeat("x", 2*frameKept)
	for name, tt := range map[string]struct {
		body, id, method string
		answer           bool
	}{
		"UX-11 the result first":        {`{"result":{},"jsonrpc":"2.0","id":4}`, "4", "ping", true},
		"UX-11 the result has an id":    {`{"result":{"id":9,"method":"x"},"jsonrpc":"2.0","id":4}`, "4", "ping", true},
		"UX-11 an error, the id inside": {`{"error":{"code":1,"message":"no"},"id":4,"jsonrpc":"2.0"}`, "4", "ping", true},
		"UX-11 long, the id last":       {`{"result":{"id":9,"t":"` + long + `"},"jsonrpc":"2.0","id":4}`, "4", "ping", true},
		"UX-11 long, then the version":  {`{"result":{"t":"` + long + `"},"id":4,"jsonrpc":"2.0"}`, "4", "ping", true},
		"UX-11 long, an id inside":      {`{"jsonrpc":"2.0","method":"n","params":{"t":"` + long + `","x":{"id":4}}}`, "", "n", false},
		"UX-11 a notice":                {`{"params":{"id":4},"method":"n","jsonrpc":"2.0"}`, "", "n", false},
		"UX-11 a request, params first": {`{"params":{},"method":"ask","id":"a"}`, `"a"`, "ask", false},
		"UX-11 an error without an id":  {`{"error":{"code":1},"id":null}`, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Server{frames: &frames{}}
			s.frames.add(true, []byte(`{"jsonrpc":"2.0","id":4,"method":"ping"}`))
			s.frames.add(false, []byte(tt.body))
			f := s.Frames(func(b []byte) []byte { return b }, "")[1]
			if f.ID != tt.id || f.Method != tt.method || f.Answer != tt.answer {
				t.Errorf("id %q, method %q, answer %v; want %+v", f.ID, f.Method, f.Answer, tt)
			}
		})
	}
}

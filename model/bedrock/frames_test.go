package bedrock_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/bedrock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// frame encodes a frame with string headers, given as pairs.
func frame(payload string, headers ...string) []byte {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = append(append(h, byte(len(headers[i]))), headers[i]...)
		h = append(binary.BigEndian.AppendUint16(append(h, 7), uint16(len(headers[i+1]))), headers[i+1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(h)+len(payload)+4))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// event encodes the frame of an event.
func event(name, payload string) []byte {
	return frame(payload, ":event-type", name, ":content-type", "application/json", ":message-type", "event")
}

// stream encodes events, given as pairs of a name and a payload. The name of an exception begins with "!".
func stream(events ...string) []byte {
	var b []byte
	for i := 0; i < len(events); i += 2 {
		if kind, ok := strings.CutPrefix(events[i], "!"); ok {
			b = append(b, frame(events[i+1], ":exception-type", kind, ":message-type", "exception")...)
			continue
		}
		b = append(b, event(events[i], events[i+1])...)
	}
	return b
}

// read reads all events.
func read(r io.Reader) (events []string, err error) {
	next := bedrock.Frames(r)
	for {
		e, err := next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, string(e))
	}
}

// Test_MD10_Frames checks how frames are decoded to events, and the errors about malformed frames.
func Test_MD10_Frames(t *testing.T) {
	// The first two are vectors of AWS's event stream suite: a frame without anything, and one with a header of type 4.
	empty := "\x00\x00\x00\x10\x00\x00\x00\x00\x05\xc2\x48\xeb\x7d\x98\xc8\xff"
	number := "\x00\x00\x00\x2d\x00\x00\x00\x10\x41\xc4\x24\xb8\x0a" + "event-type\x04\x00\x00\xa0\x0c{'foo':'bar'}\x36\xf4\x80\xa0"
	long := string(event("x", "{}"))
	for name, c := range map[string]struct{ body, want string }{
		"nothing":        {"", "[]"},
		"empty frame":    {empty, "a frame of the answer has the unknown message type ''"},
		"number header":  {number, "a frame of the answer has the unknown message type ''"},
		"two":            {string(stream("a", `{"x":1}`, "b", "")), `[{"a":{"x":1}} {"b":{}}]`},
		"exception":      {string(stream("!throttlingException", `{"message":"slow"}`)), `[{"!throttlingException":{"message":"slow"}}]`},
		"error":          {string(frame("", ":message-type", "error", ":error-code", "Internal", ":error-message", "bad \"x\"")), `[{"!Internal":{"message":"bad \"x\""}}]`},
		"not JSON":       {string(event("a", "{")), "an event of the answer is not JSON: {"},
		"cut in prelude": {long[:5], "the answer was cut off: the stream ended before the end of a frame"},
		"cut in frame":   {long[:40], "the answer was cut off: the stream ended before the end of a frame"},
		"wrong lengths":  {"\x01" + long[1:], "the lengths of a frame has a wrong check sum"},
		"wrong content":  {long[:30] + "!" + long[31:], "the content of a frame has a wrong check sum"},
		"name in name":   {string(event(`a":{},"b`, "{}")), `[{"ab":{}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			events, err := read(strings.NewReader(c.body))
			got := fmt.Sprint(events)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Test_MD10_FramesSizes checks that a length that a frame claims never allocates more memory than the limit.
func Test_MD10_FramesSizes(t *testing.T) {
	for _, c := range [][2]uint32{{1 << 31, 0}, {16, 1 << 20}, {15, 0}, {100, 90}} {
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, c[0]), c[1])
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
		if _, err := read(bytes.NewReader(append(b, make([]byte, 200)...))); err == nil {
			t.Errorf("lengths %d: no error", c)
		}
	}
}

// Test_MD10_RecordedFrames reads recorded streams of the service: as a whole, in single bytes, and with each byte
// damaged.
func Test_MD10_RecordedFrames(t *testing.T) {
	const dir = "../../../shared/data/llm-streams/fantasy/cassettes"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no recorded streams: the folder shared/data/llm-streams beside the repository is not there")
	}
	files, err := filepath.Glob(dir + "/TestBedrock*/*/*_streaming.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	bodies := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split(string(data), "!!binary |\n")[1:] {
			var text strings.Builder
			for line := range strings.Lines(part) {
				if !strings.HasPrefix(line, "      ") {
					break
				}
				text.WriteString(strings.TrimSpace(line))
			}
			body, err := base64.StdEncoding.DecodeString(text.String())
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			events, err := read(bytes.NewReader(body))
			if err != nil || len(events) < 5 {
				t.Fatalf("%s %d: %d events: %v", file, i, len(events), err)
			}
			single, err := read(iotest.OneByteReader(bytes.NewReader(body)))
			if err != nil || strings.Join(single, "\n") != strings.Join(events, "\n") {
				t.Errorf("%s %d: single bytes give other events: %v", file, i, err)
			}
			for at := 0; at < len(body); at += 7 {
				bad := bytes.Clone(body)
				bad[at] ^= 0x10
				if _, err := read(bytes.NewReader(bad)); err == nil {
					t.Fatalf("%s %d: byte %d is damaged, and nobody noticed", file, i, at)
				}
			}
			bodies++
		}
	}
	if bodies < 8 {
		t.Errorf("%d streams", bodies)
	}
}

// FuzzFrames checks that no bytes make the reader panic, and that each event is JSON with one member.
func FuzzFrames(f *testing.F) {
	f.Add(stream("messageStart", `{"role":"assistant"}`, "!validationException", `{"message":"no"}`))
	f.Add(frame("", ":message-type", "error"))
	f.Fuzz(func(t *testing.T, body []byte) {
		next := bedrock.Frames(bytes.NewReader(body))
		for {
			e, err := next()
			var failure *model.Failure
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.As(err, &failure) {
					t.Fatalf("%T: %v", err, err)
				}
				return
			}
			var one map[string]json.RawMessage
			if err := json.Unmarshal(e, &one); err != nil || len(one) != 1 {
				t.Fatalf("%q: %v", e, err)
			}
		}
	})
}

package model_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
)

// framed reads the events of a stream as binary frames of Bedrock. A line that ends early becomes a frame that ends
// early, and a line without an end a frame that announces more bytes than any frame may have.
type framed struct {
	r      *bufio.Reader
	flip   bool // one bit of one of the frames is wrong
	random *rand.Rand
	rest   []byte
	err    error
}

func (f *framed) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		f.next()
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// next reads the next line.
func (f *framed) next() {
	var line []byte
	line, f.err = f.r.ReadSlice('\n')
	if errors.Is(f.err, bufio.ErrBufferFull) {
		var b [8]byte
		binary.BigEndian.PutUint32(b[:], 1<<31)
		f.rest = append(binary.BigEndian.AppendUint32(b[:], crc32.ChecksumIEEE(b[:])), line...)
		f.err = nil
		return
	}
	data, isEvent := bytes.CutPrefix(bytes.TrimRight(line, "\n"), []byte("data: "))
	switch {
	case len(line) == 1: // between events
		return
	case bytes.HasPrefix(line, []byte(":")):
		f.rest = frameOf("ping", []byte("{}"), false)
		return
	case !isEvent: // no frame at all
		f.rest = bytes.Clone(line)
		return
	}
	f.rest = eventFrame(data)
	if f.flip {
		f.rest[f.random.IntN(len(f.rest))] ^= 1 << f.random.IntN(8)
		f.flip = false
	}
	if errors.Is(f.err, io.EOF) && len(line) > 0 { // the line was cut
		f.rest = f.rest[:f.random.IntN(len(f.rest))]
	}
}

// eventFrame returns the frame of an event: an object with one member, which is its name. Others are payloads of pieces.
func eventFrame(data []byte) []byte {
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) == nil {
		if string(object["type"]) == `"error"` {
			return frameOf("serviceUnavailableException", []byte(`{"message":"Overloaded"}`), true)
		}
		if len(object) == 1 {
			for name, payload := range object {
				return frameOf(name, payload, false)
			}
		}
	}
	return frameOf("contentBlockDelta", data, false)
}

// frameOf encodes a frame of an event or of an exception.
func frameOf(name string, payload []byte, exception bool) []byte {
	var h []byte
	add := func(k, v string) {
		h = append(append(h, byte(len(k))), k...)
		h = append(binary.BigEndian.AppendUint16(append(h, 7), uint16(len(v))), v...)
	}
	if exception {
		add(":exception-type", name)
		add(":message-type", "exception")
	} else {
		add(":event-type", name)
		add(":message-type", "event")
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(h)+len(payload)+4))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

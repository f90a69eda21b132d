package bedrock

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"strings"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// The parts of a frame: the lengths of the frame and of its headers, the checksum of these lengths, the headers, the
// payload, and the checksum of the frame.
const (
	preludeSize = 12
	sumSize     = 4
	maxHeaders  = 128 << 10
	maxFrame    = 16 << 20
)

// frames reads the frames of a stream.
type frames struct {
	r   *bufio.Reader
	buf []byte // the current frame
	out []byte // the current event
}

// Frames returns the events of a body of binary frames. An event is a JSON object with one member: the name of the
// event, and its payload. The name of an exception begins with "!".
func Frames(body io.Reader) model.Events {
	f := &frames{r: bufio.NewReaderSize(body, 32<<10)}
	return f.next
}

func (f *frames) next() ([]byte, error) {
	headers, payload, err := f.read()
	if err != nil {
		return nil, err
	}
	h, err := readHeaders(headers)
	if err != nil {
		return nil, err
	}
	name := h.event
	switch h.message {
	case "event":
	case "exception":
		name = "!" + h.exception
	case "error": // of the service, which ends the stream
		f.out = append(f.out[:0], `{"!`...)
		f.out = append(f.out, plain(h.code)...)
		f.out = append(f.out, `":{"message":`...)
		f.out = append(rawjson.AppendString(f.out, h.text), "}}"...)
		return f.out, nil
	default:
		return nil, model.Broken("a frame of the answer has the unknown message type '%s'", model.Visible(h.message))
	}
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	if !json.Valid(payload) {
		return nil, model.NotJSON(payload)
	}
	f.out = append(append(append(f.out[:0], `{"`...), plain(name)...), `":`...)
	f.out = append(append(f.out, payload...), '}')
	return f.out, nil
}

// plain returns the letters and digits of a name, and its leading mark if there is one. Names of events contain only
// these characters.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '!' {
			return r
		}
		return -1
	}, name)
}

// read returns the headers and the payload of the next frame, or io.EOF between two frames. The slices are valid until
// the next call.
func (f *frames) read() (headers, payload []byte, err error) {
	var prelude [preludeSize]byte
	n, err := io.ReadFull(f.r, prelude[:])
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, nil, model.CutOff("the end of a frame")
	case err != nil && n == 0:
		return nil, nil, err
	case err != nil:
		return nil, nil, err
	}
	total, head := binary.BigEndian.Uint32(prelude[:4]), binary.BigEndian.Uint32(prelude[4:8])
	sum := crc32.ChecksumIEEE(prelude[:8])
	switch {
	case sum != binary.BigEndian.Uint32(prelude[8:]):
		return nil, nil, damaged("lengths")
	case total > maxFrame:
		return nil, nil, model.Broken("a frame of the answer has %d bytes, more than %d MiB", total, maxFrame>>20)
	case head > maxHeaders || total < preludeSize+head+sumSize:
		return nil, nil, model.Broken("a frame of %d bytes has headers of %d bytes", total, head)
	}
	rest := int(total) - preludeSize
	if cap(f.buf) < rest {
		f.buf = make([]byte, rest)
	}
	f.buf = f.buf[:rest]
	if _, err := io.ReadFull(f.r, f.buf); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, nil, model.CutOff("the end of a frame")
		}
		return nil, nil, err
	}
	body := f.buf[:rest-sumSize]
	sum = crc32.Update(crc32.ChecksumIEEE(prelude[:]), crc32.IEEETable, body)
	if sum != binary.BigEndian.Uint32(f.buf[rest-sumSize:]) {
		return nil, nil, damaged("content")
	}
	return body[:head], body[head:], nil
}

// damaged is the failure of a frame with a wrong checksum. A retry may help.
func damaged(part string) *model.Failure {
	f := model.CutOff("")
	f.Message = "the answer was damaged on its way: the " + part + " of a frame has a wrong check sum"
	return f
}

// header contains the headers that name an event.
type header struct{ message, event, exception, code, text string }

var errHeaders = model.Broken("the headers of a frame are malformed")

// sizes are the lengths of header values by their type; -1 means that a length precedes the value.
var sizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

const typeString = 7

// known returns a value as a text. The values that almost all frames have are not allocated again.
func known(value []byte) string {
	switch string(value) {
	case "event":
		return "event"
	case "contentBlockDelta":
		return "contentBlockDelta"
	}
	return string(value)
}

func readHeaders(b []byte) (header, error) {
	var h header
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+1 {
			return h, errHeaders
		}
		name, kind := b[1:1+n], int(b[1+n])
		b = b[2+n:]
		if kind >= len(sizes) {
			return h, errHeaders
		}
		size := sizes[kind]
		if size < 0 {
			if len(b) < 2 {
				return h, errHeaders
			}
			size = int(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		if len(b) < size {
			return h, errHeaders
		}
		value := b[:size]
		b = b[size:]
		if kind != typeString {
			continue
		}
		switch string(name) {
		case ":message-type":
			h.message = known(value)
		case ":event-type":
			h.event = known(value)
		case ":exception-type":
			h.exception = string(value)
		case ":error-code":
			h.code = string(value)
		case ":error-message":
			h.text = string(value)
		}
	}
	return h, nil
}

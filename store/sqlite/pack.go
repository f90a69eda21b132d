package sqlite

import (
	"encoding/binary"
	"errors"

	"github.com/tenonhq/tenon"
)

// packedSize is about what an event takes beside its data, in bytes.
const packedSize = 64

// pack appends an event to the column events: time and attempt as varints, then
// step, kind and data, each after its length. The number of the event is known
// from the row.
func pack(b []byte, e *tenon.Event) []byte {
	b = binary.AppendVarint(b, nanos(e.Time))
	b = binary.AppendVarint(b, int64(e.Attempt))
	for _, s := range [...]string{e.Step, e.Kind} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Data)))
	return append(b, e.Data...)
}

// errPacked says that the column events is damaged.
var errPacked = errors.New("packed events are damaged")

// unpack takes one event off the column events. Its data is a part of b.
func unpack(b []byte, e *tenon.Event) (rest []byte, err error) {
	at, n := binary.Varint(b)
	if n <= 0 {
		return nil, errPacked
	}
	b = b[n:]
	attempt, n := binary.Varint(b)
	if n <= 0 {
		return nil, errPacked
	}
	b = b[n:]
	var parts [3][]byte
	for i := range parts {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, errPacked
		}
		end := n + int(size)
		parts[i], b = b[n:end:end], b[end:]
	}
	e.Time, e.Attempt, e.Step, e.Kind = fromNanos(at), int(attempt), string(parts[0]), string(parts[1])
	if len(parts[2]) > 0 {
		e.Data = parts[2]
	}
	return b, nil
}

package forms

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store/signed"
)

// BlobFrom is the size in bytes from which on the data of an event is stored as a blob.
const BlobFrom = 32<<10 + 1

// packedSize is the approximate size of a packed event without its data, in bytes.
const packedSize = 64

// Nanos returns the stored form of a time: the nanoseconds since 1970, or 0 for the zero time.
func Nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// FromNanos is the inverse of [Nanos].
func FromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// Pack appends an event to a row of packed events. It writes time and attempt as varints, and then step, kind and data,
// each preceded by its length. The number of the event follows from the row.
func Pack(b []byte, e *tenon.Event) []byte {
	b = binary.AppendVarint(b, Nanos(e.Time))
	b = binary.AppendVarint(b, int64(e.Attempt))
	for _, s := range [...]string{e.Step, e.Kind} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Data)))
	return append(b, e.Data...)
}

// ErrPacked means that packed events are damaged.
var ErrPacked = errors.New("packed events are damaged")

// Unpack reads one event from the beginning of a row of packed events, and returns the rest. The event's data refers to
// b.
func Unpack(b []byte, e *tenon.Event) (rest []byte, err error) {
	at, n := binary.Varint(b)
	if n <= 0 {
		return nil, ErrPacked
	}
	b = b[n:]
	attempt, n := binary.Varint(b)
	if n <= 0 {
		return nil, ErrPacked
	}
	b = b[n:]
	var parts [3][]byte
	for i := range parts {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, ErrPacked
		}
		end := n + int(size)
		parts[i], b = b[n:end:end], b[end:]
	}
	e.Time, e.Attempt, e.Step, e.Kind = FromNanos(at), int(attempt), string(parts[0]), string(parts[1])
	if len(parts[2]) > 0 {
		e.Data = parts[2]
	}
	return b, nil
}

// Row is the content of one row of events.
type Row struct {
	N      int // number of events
	Last   time.Time
	Packed []byte
	Digest []byte // digest of Blob
	Blob   []byte
	MAC    []byte
}

// RowsOf converts the events of an append to rows. It packs their data into buf. Each event with large data gets a
// separate row; the others share one. It is called before the write is queued, because all callers wait for the writer.
func RowsOf(list []tenon.Event, buf *[]byte) []Row {
	var rows []Row
	b := (*buf)[:0]
	for len(list) > 0 {
		r := Row{N: 1}
		if e := list[0]; isBlob(&e) {
			sum := sha256.Sum256(e.Data)
			r.Digest, r.Blob, e.Data = sum[:], e.Data, nil
			start := len(b)
			b = Pack(b, &e)
			r.Packed = b[start:len(b):len(b)]
		} else {
			size := len(e.Data) + packedSize
			for r.N < len(list) && !isBlob(&list[r.N]) && size < BlobFrom {
				size += len(list[r.N].Data) + packedSize
				r.N++
			}
			b = slices.Grow(b, size)
			start := len(b)
			for i := range list[:r.N] {
				b = Pack(b, &list[i])
			}
			r.Packed = b[start:len(b):len(b)]
		}
		r.Last = list[r.N-1].Time
		rows, list = append(rows, r), list[r.N:]
	}
	*buf = b
	return rows
}

func isBlob(e *tenon.Event) bool { return len(e.Data) >= BlobFrom }

// Sign computes the MACs of rows with the events of an append. Without a key it does nothing.
func Sign(key *signed.Key, run string, events []tenon.Event, rows []Row) {
	if key == nil || len(events) == 0 {
		return
	}
	seq := events[0].Seq
	for i := range rows {
		r := &rows[i]
		r.MAC = key.Events(&signed.Events{Run: run, Seq: seq, N: r.N, Last: r.Last, Packed: r.Packed, Blob: r.Digest})
		seq += uint64(r.N)
	}
}

// AfterPrefix returns the least text that is greater than all texts with a prefix. The prefix is ASCII and not empty.
func AfterPrefix(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string(rune(prefix[last]+1))
}

package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// messages reads the messages of a stream, or the messages that the footer of a file lists. It
// checks each message before the Arrow library reads it. It implements [ipc.MessageReader].
type messages struct {
	next   func() (io.Reader, error) // returns a reader at the next message, or io.EOF
	mem    *allowance
	schema bool // the schema has been read
	first  bool // no message has been read yet, so the end of the stream means that it is empty
}

// The magic bytes of a file, and the marker before the length of a message (Arrow columnar format,
// "IPC File Format" and "Encapsulated message format").
var magic = []byte("ARROW1")

const continuation = 0xFFFFFFFF

// streamMessages reads the messages of a stream.
func streamMessages(r io.Reader, mem *allowance) *messages {
	return &messages{mem: mem, first: true, next: func() (io.Reader, error) { return r, nil }}
}

// file is the input of [fileMessages].
type file interface {
	io.ReaderAt
	Size() int64
}

// fileMessages reads the messages of a file in the order of its footer.
func fileMessages(r file, mem *allowance) (*messages, *footer, error) {
	size := r.Size()
	end := make([]byte, 10)
	if size < 8+10 {
		return nil, nil, errors.New("the file is cut off")
	}
	if _, err := r.ReadAt(end, size-10); err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(end[4:], magic) {
		return nil, nil, errors.New("the file is cut off: it does not end as an Arrow file")
	}
	length := int64(binary.LittleEndian.Uint32(end))
	at := size - 10 - length
	if length > maxMeta || at < 8 {
		return nil, nil, fmt.Errorf("its footer claims %d bytes", length)
	}
	raw := make([]byte, length)
	if _, err := r.ReadAt(raw, at); err != nil {
		return nil, nil, err
	}
	foot, err := readFooter(raw, at)
	if err != nil {
		return nil, nil, err
	}
	i := -1
	return &messages{mem: mem, next: func() (io.Reader, error) {
		if i++; i == 0 {
			return bytes.NewReader(foot.schema), nil
		}
		if i > len(foot.blocks) {
			return nil, io.EOF
		}
		k := foot.blocks[i-1]
		return io.NewSectionReader(r, k.offset, int64(k.meta)+k.body), nil
	}}, foot, nil
}

// Message reads the next message.
func (m *messages) Message() (*ipc.Message, error) {
	r, err := m.next()
	if err != nil {
		return nil, err
	}
	m.mem.used = 0
	length, err := m.length(r)
	if err != nil {
		return nil, err
	}
	meta, err := readPart(r, int64(length))
	if err != nil {
		return nil, err
	}
	header, size, err := checkMessage(meta)
	if err != nil {
		return nil, err
	}
	if m.schema == (header == headerSchema) {
		return nil, errors.New("its messages are not in the order of a table")
	}
	m.schema = true
	body, err := readPart(r, size)
	if err != nil {
		return nil, err
	}
	return ipc.NewMessage(memory.NewBufferBytes(meta), memory.NewBufferBytes(body)), nil
}

// notTable is the reason why an input is not a table.
type notTable string

func (e notTable) Error() string { return string(e) }

// length reads the length of the next message. It returns io.EOF at the end of the stream.
func (m *messages) length(r io.Reader) (uint32, error) {
	var word [4]byte
	_, err := io.ReadFull(r, word[:])
	switch {
	case errors.Is(err, io.EOF) && m.first:
		return 0, notTable("it is empty")
	case errors.Is(err, io.EOF):
		return 0, io.EOF // a stream may end without an end marker
	case err != nil:
		return 0, cutOff(err)
	}
	begins := m.first
	m.first = false
	n := binary.LittleEndian.Uint32(word[:])
	if n == continuation {
		begins = false
		if _, err := io.ReadFull(r, word[:]); err != nil {
			return 0, cutOff(err)
		}
		n = binary.LittleEndian.Uint32(word[:])
	}
	switch {
	case n == 0 && m.schema:
		return 0, io.EOF
	case n == 0 && !begins:
		return 0, notTable("it ends before its schema")
	case begins && (n < 8 || n > maxMeta):
		return 0, notTable("it begins neither as an Arrow file or stream nor as a .tooltable")
	case n < 8 || n > maxMeta:
		return 0, fmt.Errorf("a message claims %d bytes of metadata", n)
	}
	return n, nil
}

// readPart reads n bytes. It allocates large buffers only as the data arrives, so a false claim
// costs no memory.
func readPart(r io.Reader, n int64) ([]byte, error) {
	if n <= 1<<20 {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, cutOff(err)
	}
	var buf bytes.Buffer
	if got, err := io.CopyN(&buf, r, n); err != nil || got < n {
		return nil, cutOff(err)
	}
	return buf.Bytes(), nil
}

func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCutOff
	}
	return err
}

var errCutOff = errors.New("the table is cut off")

// Retain does nothing: the garbage collector frees messages.
func (m *messages) Retain() {}

// Release does nothing; see Retain.
func (m *messages) Release() {}

// allowance is an allocator that bounds the memory for reading one message. Otherwise a few
// compressed bytes could claim all memory. Exceeding the bound panics; the Arrow library or
// [contain] recovers.
type allowance struct {
	memory.GoAllocator
	used int
}

var errClaims = fmt.Errorf("a batch claims more than %d bytes", maxMemory)

func (a *allowance) take(n int) {
	if n < 0 || n > maxMemory-a.used {
		panic(errClaims)
	}
	a.used += n
}

func (a *allowance) Allocate(n int) []byte {
	a.take(n)
	return a.GoAllocator.Allocate(n)
}

func (a *allowance) Reallocate(n int, b []byte) []byte {
	a.take(n)
	return a.GoAllocator.Reallocate(n, b)
}

var (
	_ ipc.MessageReader = (*messages)(nil)
	_ memory.Allocator  = (*allowance)(nil)
)

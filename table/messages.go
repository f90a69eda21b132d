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

// messages reads the messages of a stream, or those that the footer of a file
// names, and looks at each before the Arrow library does. It implements
// [ipc.MessageReader].
type messages struct {
	next   func() (io.Reader, error) // where the next message begins; io.EOF: there is none
	mem    *allowance
	schema bool // the schema has been read
	first  bool // a stream may begin with nothing at all
}

// The magic of a file, and what stands before a message's length (Arrow
// columnar format, "Encapsulated message format" and "IPC File Format").
var magic = []byte("ARROW1")

const continuation = 0xFFFFFFFF

// streamMessages reads a stream.
func streamMessages(r io.Reader, mem *allowance) *messages {
	return &messages{mem: mem, first: true, next: func() (io.Reader, error) { return r, nil }}
}

// file is what a file is read from.
type file interface {
	io.ReaderAt
	Size() int64
}

// fileMessages reads a file by its footer.
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
		return nil, nil, errors.New("the file is cut off: it does not end as an Arrow file does")
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

// notTable says why something is no table at all.
type notTable string

func (e notTable) Error() string { return string(e) }

// length reads what stands before a message. Its end, and that of the stream, is io.EOF.
func (m *messages) length(r io.Reader) (uint32, error) {
	var word [4]byte
	_, err := io.ReadFull(r, word[:])
	switch {
	case errors.Is(err, io.EOF) && m.first:
		return 0, notTable("there is nothing in it")
	case errors.Is(err, io.EOF):
		return 0, io.EOF // a stream may end by being closed
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
		return 0, notTable("it ends before it says which columns it has")
	case begins && (n < 8 || n > maxMeta):
		return 0, notTable("it begins neither as an Arrow file or stream nor as a .tooltable")
	case n < 8 || n > maxMeta:
		return 0, fmt.Errorf("a message claims %d bytes of metadata", n)
	}
	return n, nil
}

// readPart reads n bytes. What is only claimed costs no memory.
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

// Retain does nothing: messages belong to the garbage collector.
func (m *messages) Retain() {}

// Release does nothing, as Retain.
func (m *messages) Release() {}

// allowance is an allocator with a bound on what reading one message takes, so
// that a few compressed bytes cannot ask for all memory. Going over it panics,
// which is an error where the library recovers.
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

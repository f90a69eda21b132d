package table

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The limits for the sizes that a file declares. Real tables are far below them.
const (
	maxMeta   = 16 << 20  // bytes of a message's metadata or of a footer
	maxBody   = 256 << 20 // bytes of a message's body
	maxMemory = 512 << 20 // bytes of memory for reading one batch, decompressed
	maxRows   = 1 << 26   // rows of a batch
	maxNodes  = 1 << 16   // fields of a schema, including nested fields and metadata
	maxDepth  = 64        // levels of nested fields
)

// flat validates an untrusted flatbuffer. The Arrow library follows the offsets of a flatbuffer
// without checking them. A field that is its own child would make it recurse until the process
// dies, and no recover helps against that. A vector may claim more elements than fit into memory.
// So flat first walks everything that the library walks or counts. Offsets are unsigned and do not
// wrap here, so every step leads forward; nodes bounds the number of steps.
//
// The slot numbers are those in Message.fbs, Schema.fbs and File.fbs of the Arrow format.
type flat struct {
	b     []byte
	nodes int
}

var errFlat = errors.New("an offset leads out of the metadata")

// root returns the position of the root table.
func (f *flat) root() (int64, error) { return f.follow(0) }

// follow returns the target of the offset at pos.
func (f *flat) follow(pos int64) (int64, error) {
	off, err := f.u32(pos)
	if err != nil {
		return 0, err
	}
	at := pos + int64(off)
	if off == 0 || at+4 > int64(len(f.b)) {
		return 0, errFlat
	}
	return at, nil
}

func (f *flat) u32(pos int64) (uint32, error) {
	if pos < 0 || pos+4 > int64(len(f.b)) {
		return 0, errFlat
	}
	return binary.LittleEndian.Uint32(f.b[pos:]), nil
}

func (f *flat) u16(pos int64) (uint16, error) {
	if pos < 0 || pos+2 > int64(len(f.b)) {
		return 0, errFlat
	}
	return binary.LittleEndian.Uint16(f.b[pos:]), nil
}

// slot returns the position of a table's field, or 0 if it is absent.
func (f *flat) slot(table int64, n int) (int64, error) {
	back, err := f.u32(table)
	if err != nil {
		return 0, err
	}
	vtable := table - int64(int32(back))
	size, err := f.u16(vtable)
	if err != nil {
		return 0, err
	}
	at := int64(4 + 2*n)
	if at+2 > int64(size) {
		return 0, nil
	}
	off, err := f.u16(vtable + at)
	if err != nil || off == 0 {
		return 0, err
	}
	if pos := table + int64(off); pos < int64(len(f.b)) {
		return pos, nil
	}
	return 0, errFlat
}

// table returns the position of a sub-table, or 0 if it is absent.
func (f *flat) table(of int64, n int) (int64, error) {
	pos, err := f.slot(of, n)
	if err != nil || pos == 0 {
		return 0, err
	}
	return f.follow(pos)
}

// vector returns the position of a vector's first element and the number of elements.
func (f *flat) vector(of int64, n int, size int64) (start, count int64, err error) {
	pos, err := f.slot(of, n)
	if err != nil || pos == 0 {
		return 0, 0, err
	}
	at, err := f.follow(pos)
	if err != nil {
		return 0, 0, err
	}
	c, err := f.u32(at)
	if err != nil {
		return 0, 0, err
	}
	if at+4+int64(c)*size > int64(len(f.b)) {
		return 0, 0, errFlat
	}
	return at + 4, int64(c), nil
}

// text reads a string. It returns "" if the field is absent.
func (f *flat) text(of int64, n int) (string, error) {
	start, count, err := f.vector(of, n, 1)
	if err != nil {
		return "", err
	}
	return string(f.b[start : start+count]), nil
}

// count adds n to the nodes and checks their bound.
func (f *flat) count(n int64) error {
	f.nodes += int(n)
	if f.nodes > maxNodes {
		return fmt.Errorf("its schema has more than %d fields", maxNodes)
	}
	return nil
}

// pairs reads key-value metadata.
func (f *flat) pairs(of int64, n int) (map[string]string, error) {
	start, count, err := f.vector(of, n, 4)
	if err != nil || count == 0 {
		return nil, err
	}
	if err := f.count(count); err != nil {
		return nil, err
	}
	m := make(map[string]string, count)
	for i := range count {
		kv, err := f.follow(start + 4*i)
		if err != nil {
			return nil, err
		}
		k, err := f.text(kv, 0)
		if err != nil {
			return nil, err
		}
		if m[k], err = f.text(kv, 1); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// schema validates a Schema.
func (f *flat) schema(at int64) error {
	if _, err := f.pairs(at, 2); err != nil {
		return err
	}
	if _, _, err := f.vector(at, 3, 8); err != nil {
		return err
	}
	return f.fields(at, 1, 0)
}

// fields validates a vector of Field and their children.
func (f *flat) fields(of int64, n, depth int) error {
	start, count, err := f.vector(of, n, 4)
	if err != nil || count == 0 {
		return err
	}
	if depth >= maxDepth {
		return fmt.Errorf("its schema is nested more than %d deep", maxDepth)
	}
	if err := f.count(count); err != nil {
		return err
	}
	for i := range count {
		field, err := f.follow(start + 4*i)
		if err != nil {
			return err
		}
		if _, err := f.text(field, 0); err != nil {
			return err
		}
		if err := f.dataType(field); err != nil {
			return err
		}
		if _, err := f.table(field, 4); err != nil { // dictionary
			return err
		}
		if _, err := f.pairs(field, 6); err != nil {
			return err
		}
		if err := f.fields(field, 5, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// typeUnion is the number of Union in the union Type (Schema.fbs).
const typeUnion = 14

// dataType validates the type of a field. Only the type Union contains a vector.
func (f *flat) dataType(field int64) error {
	at, err := f.table(field, 3)
	if err != nil || at == 0 {
		return err
	}
	kind, err := f.slot(field, 2)
	if err == nil && kind != 0 && f.b[kind] == typeUnion {
		_, _, err = f.vector(at, 1, 4)
	}
	return err
}

// The numbers of MessageHeader (Message.fbs).
const (
	headerSchema     = 1
	headerDictionary = 2
	headerBatch      = 3
)

// checkMessage validates the metadata of one message. It returns the type of its header and the
// size of its body in bytes.
func checkMessage(meta []byte) (header byte, body int64, err error) {
	f := &flat{b: meta}
	at, err := f.root()
	if err != nil {
		return 0, 0, err
	}
	if pos, err := f.slot(at, 1); err != nil {
		return 0, 0, err
	} else if pos != 0 {
		header = meta[pos]
	}
	if pos, err := f.slot(at, 3); err != nil {
		return 0, 0, err
	} else if pos != 0 {
		if pos+8 > int64(len(meta)) {
			return 0, 0, errFlat
		}
		body = int64(binary.LittleEndian.Uint64(meta[pos:]))
	}
	if body < 0 || body > maxBody {
		return 0, 0, fmt.Errorf("a message claims %d bytes, at most %d are read", body, int64(maxBody))
	}
	if _, err := f.pairs(at, 4); err != nil {
		return 0, 0, err
	}
	h, err := f.table(at, 2)
	switch {
	case err != nil:
		return 0, 0, err
	case h == 0:
		return 0, 0, errors.New("a message has no header")
	case header == headerSchema:
		return header, body, f.schema(h)
	case header == headerDictionary:
		if h, err = f.table(h, 1); err != nil || h == 0 {
			return 0, 0, errFlat
		}
		return header, body, f.batch(h)
	case header == headerBatch:
		return header, body, f.batch(h)
	}
	return 0, 0, fmt.Errorf("a message has header type %d, which is not part of a table", header)
}

// batch validates a RecordBatch: its nodes, buffers and view counts.
func (f *flat) batch(at int64) error {
	for n, size := range map[int]int64{1: 16, 2: 16, 4: 8} {
		if _, _, err := f.vector(at, n, size); err != nil {
			return err
		}
	}
	if _, err := f.table(at, 3); err != nil {
		return err
	}
	pos, err := f.slot(at, 0)
	if err != nil || pos == 0 {
		return err
	}
	if pos+8 > int64(len(f.b)) {
		return errFlat
	}
	if rows := int64(binary.LittleEndian.Uint64(f.b[pos:])); rows < 0 || rows > maxRows {
		return fmt.Errorf("a batch claims %d rows, at most %d are read", rows, maxRows)
	}
	return nil
}

// block is the position of a message in a file (File.fbs, struct Block).
type block struct {
	offset int64
	meta   int32
	body   int64
}

// footer is the footer of a file.
type footer struct {
	blocks   []block // dictionaries, then batches
	metadata map[string]string
	schema   []byte // as a message
}

// readFooter reads a Footer. limit is the position of the footer in the file; all blocks must end
// before it.
func readFooter(b []byte, limit int64) (*footer, error) {
	f := &flat{b: b}
	at, err := f.root()
	if err != nil {
		return nil, err
	}
	out := &footer{}
	if out.metadata, err = f.pairs(at, 4); err != nil {
		return nil, err
	}
	schema, err := f.table(at, 1)
	if err != nil || schema == 0 {
		return nil, errors.Join(errors.New("its footer has no schema"), err)
	}
	version, err := f.slot(at, 0)
	if err != nil || version+2 > int64(len(b)) {
		return nil, errFlat
	}
	out.schema = schemaMessage(b, schema, version)
	for _, n := range []int{2, 3} {
		start, count, err := f.vector(at, n, 24)
		if err != nil {
			return nil, err
		}
		for i := range count {
			p := b[start+24*i:]
			k := block{
				offset: int64(binary.LittleEndian.Uint64(p)),
				meta:   int32(binary.LittleEndian.Uint32(p[8:])),
				body:   int64(binary.LittleEndian.Uint64(p[16:])),
			}
			if k.offset < 8 || k.meta < 8 || k.body < 0 || k.offset > limit ||
				int64(k.meta) > limit-k.offset || k.body > limit-k.offset-int64(k.meta) {
				return nil, fmt.Errorf("its footer lists a batch at byte %d, which is outside of the file", k.offset)
			}
			out.blocks = append(out.blocks, k)
		}
	}
	return out, nil
}

// schemaMessage returns the schema of a footer as an encapsulated message; some writers store the
// schema only in the footer. All offsets of a flatbuffer are relative, so the footer is copied
// unchanged after a Message table that points into it.
func schemaMessage(foot []byte, schema, version int64) []byte {
	const vtable, table, begin = 4, 16, 32
	m := make([]byte, begin, begin+len(foot))
	le := binary.LittleEndian
	le.PutUint32(m, table)
	for i, v := range []uint16{10, 12, 8, 10, 4} { // sizes; version, header_type, header
		le.PutUint16(m[vtable+2*i:], v)
	}
	le.PutUint32(m[table:], table-vtable)
	le.PutUint32(m[table+4:], uint32(begin+schema-(table+4)))
	if version != 0 {
		copy(m[table+8:table+10], foot[version:])
	}
	m[table+10] = headerSchema
	m = append(m, foot...)
	frame := le.AppendUint32(nil, continuation)
	frame = le.AppendUint32(frame, uint32(len(m)))
	return append(frame, m...)
}

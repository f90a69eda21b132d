package table

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"os"
)

// Rows go into SQLite as pages of its file format, which is documented and kept
// (https://www.sqlite.org/fileformat2.html): a table whose rows come in order is a
// list of full leaves and a small tree above them. Inserting them by statements takes
// ten times as long.

const (
	pageSize = 16 << 10
	// lockPage is the page that SQLite keeps free of data, for locks.
	lockPage = 1<<30/pageSize + 1
	// maxLocal is what a leaf's cell keeps of a row at most; minLocal is what it keeps
	// where the row goes on in pages of its own.
	maxLocal = pageSize - 35
	minLocal = (pageSize-12)*32/255 - 23
)

// pages appends to a database that SQLite made, with a page for each table's root.
type pages struct {
	file *os.File
	buf  *bufio.Writer
	next uint32 // number of the next page
}

func newPages(f *os.File) (*pages, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	return &pages{file: f, buf: bufio.NewWriterSize(f, 16*pageSize), next: uint32(size/pageSize) + 1}, nil
}

// bytes is how large the file is.
func (p *pages) bytes() int64 { return int64(p.next-1) * pageSize }

// append writes a page and returns its number.
func (p *pages) append(b []byte) (uint32, error) {
	if p.next == lockPage {
		if _, err := p.buf.Write(make([]byte, pageSize)); err != nil {
			return 0, err
		}
		p.next++
	}
	n := p.next
	p.next++
	_, err := p.buf.Write(b)
	return n, err
}

// finish makes the file one that SQLite opens.
func (p *pages) finish() error {
	if err := p.buf.Flush(); err != nil {
		return err
	}
	_, err := p.file.WriteAt(binary.BigEndian.AppendUint32(nil, p.next-1), 28)
	return err
}

// child is a page and the largest row id below it.
type child struct {
	page  uint32
	rowID int64
}

// tree is the rows of one table. Rows get the ids 1, 2, …
type tree struct {
	pages *pages
	root  uint32
	rows  int64
	leaf  page
	below []child // the leaves that are written
	cell  []byte
}

func newTree(p *pages, root uint32) *tree {
	return &tree{pages: p, root: root, leaf: newPage(0x0d)}
}

// add appends a row: a record of SQLite's.
func (t *tree) add(record []byte) error {
	t.rows++
	local, rest := record, []byte(nil)
	if len(record) > maxLocal {
		n := minLocal + (len(record)-minLocal)%(pageSize-4)
		if n > maxLocal {
			n = minLocal
		}
		local, rest = record[:n], record[n:]
	}
	t.cell = appendVarint(t.cell[:0], uint64(len(record)))
	t.cell = appendVarint(t.cell, uint64(t.rows))
	t.cell = append(t.cell, local...)
	if len(rest) > 0 {
		first, err := t.overflow(rest)
		if err != nil {
			return err
		}
		t.cell = binary.BigEndian.AppendUint32(t.cell, first)
	}
	for len(t.cell) < 4 {
		t.cell = append(t.cell, 0) // the room that a freed cell would need
	}
	if t.leaf.fits(t.cell) {
		t.leaf.add(t.cell)
		return nil
	}
	n, err := t.pages.append(t.leaf.finish())
	if err != nil {
		return err
	}
	t.below = append(t.below, child{n, t.rows - 1})
	t.leaf.reset()
	t.leaf.add(t.cell)
	return nil
}

// overflow writes what a leaf does not keep and returns the first of its pages. They
// are written one after the other, so that each knows the next one's number.
func (t *tree) overflow(rest []byte) (first uint32, err error) {
	b := make([]byte, pageSize)
	for len(rest) > 0 {
		clear(b)
		n := copy(b[4:], rest)
		rest = rest[n:]
		if len(rest) > 0 {
			next := t.pages.next + 1
			if t.pages.next == lockPage || next == lockPage {
				next++
			}
			binary.BigEndian.PutUint32(b, next)
		}
		at, err := t.pages.append(b)
		if err != nil {
			return 0, err
		}
		if first == 0 {
			first = at
		}
	}
	return first, nil
}

// finish writes what is left and the tree above the leaves.
func (t *tree) finish() error {
	top := t.leaf
	if len(t.below) > 0 {
		n, err := t.pages.append(t.leaf.finish())
		if err != nil {
			return err
		}
		level := append(t.below, child{n, t.rows})
		for len(level) > fan {
			var above []child
			for len(level) > 0 {
				n := min(fan, len(level))
				if len(level)-n == 1 {
					n-- // a page has two children at least
				}
				p := inner(level[:n])
				at, err := t.pages.append(p.finish())
				if err != nil {
					return err
				}
				above, level = append(above, child{at, level[n-1].rowID}), level[n:]
			}
			level = above
		}
		top = inner(level)
	}
	if err := t.pages.buf.Flush(); err != nil {
		return err
	}
	_, err := t.pages.file.WriteAt(top.finish(), int64(t.root-1)*pageSize)
	return err
}

// fan is how many children an inner page has at most: a cell takes a pointer, a page
// number and a row id.
const fan = (pageSize-12)/(2+4+9) + 1

// inner makes the page above some children. The last one is not a cell but its right
// pointer.
func inner(list []child) page {
	p := newPage(0x05)
	last := len(list) - 1
	for _, c := range list[:last] {
		p.add(appendVarint(binary.BigEndian.AppendUint32(nil, c.page), uint64(c.rowID)))
	}
	p.right = list[last].page
	return p
}

// page is a page of a tree in the making: pointers grow from its head, cells from its
// end.
type page struct {
	b     []byte
	kind  byte
	head  int // bytes of the header
	cells int
	start int    // of the cells
	right uint32 // of an inner page
}

func newPage(kind byte) page {
	p := page{b: make([]byte, pageSize), kind: kind, head: 8}
	if kind == 0x05 {
		p.head = 12
	}
	p.reset()
	return p
}

func (p *page) reset() {
	clear(p.b)
	p.cells, p.start, p.right = 0, pageSize, 0
}

func (p *page) fits(cell []byte) bool { return p.head+2*(p.cells+1)+len(cell) <= p.start }

func (p *page) add(cell []byte) {
	p.start -= len(cell)
	copy(p.b[p.start:], cell)
	binary.BigEndian.PutUint16(p.b[p.head+2*p.cells:], uint16(p.start))
	p.cells++
}

func (p *page) finish() []byte {
	p.b[0] = p.kind
	binary.BigEndian.PutUint16(p.b[3:], uint16(p.cells))
	binary.BigEndian.PutUint16(p.b[5:], uint16(p.start))
	if p.head == 12 {
		binary.BigEndian.PutUint32(p.b[8:], p.right)
	}
	return p.b
}

// appendVarint writes SQLite's variable-length integer: seven bits a byte, the most
// significant first; a ninth byte has eight.
func appendVarint(b []byte, v uint64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	if v >= 1<<56 {
		for s := 57; s >= 8; s -= 7 {
			b = append(b, byte(v>>s)|0x80)
		}
		return append(b, byte(v))
	}
	n := 1
	for x := v >> 7; x > 0; x >>= 7 {
		n++
	}
	for i := n - 1; i > 0; i-- {
		b = append(b, byte(v>>(7*i))|0x80)
	}
	return append(b, byte(v)&0x7f)
}

// record is a row in the making: the types of its values, and their bytes.
type record struct {
	types, body, out []byte
}

func (r *record) reset() { r.types, r.body = r.types[:0], r.body[:0] }

func (r *record) null() { r.types = append(r.types, 0) }

func (r *record) integer(v int64) {
	switch {
	case v == 0 || v == 1:
		r.types = append(r.types, 8+byte(v))
	case v == int64(int8(v)):
		r.types, r.body = append(r.types, 1), append(r.body, byte(v))
	case v == int64(int16(v)):
		r.types, r.body = append(r.types, 2), binary.BigEndian.AppendUint16(r.body, uint16(v))
	case v == int64(int32(v)):
		r.types, r.body = append(r.types, 4), binary.BigEndian.AppendUint32(r.body, uint32(v))
	default:
		r.types, r.body = append(r.types, 6), binary.BigEndian.AppendUint64(r.body, uint64(v))
	}
}

// real writes a number; SQL has no NaN, it is null.
func (r *record) real(v float64) {
	if math.IsNaN(v) {
		r.null()
		return
	}
	r.types, r.body = append(r.types, 7), binary.BigEndian.AppendUint64(r.body, math.Float64bits(v))
}

func (r *record) text(s string) {
	r.types, r.body = appendVarint(r.types, uint64(len(s))*2+13), append(r.body, s...)
}

func (r *record) blob(b []byte) {
	r.types, r.body = appendVarint(r.types, uint64(len(b))*2+12), append(r.body, b...)
}

// size is how many bytes the record has, but for the one that says how many types it has.
func (r *record) size() int { return len(r.types) + len(r.body) }

// bytes returns the record; it is valid until the next one.
func (r *record) bytes() []byte {
	r.out = r.out[:0]
	for n := 1; ; n++ { // the size of the head counts itself
		if r.out = appendVarint(r.out[:0], uint64(len(r.types)+n)); len(r.out) <= n {
			break
		}
	}
	r.out = append(append(r.out, r.types...), r.body...)
	return r.out
}

package table

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"io"
	"math"
	"os"
)

// The rows are written as pages of SQLite's file format (https://www.sqlite.org/fileformat2.html),
// which is documented and stable. A table with rows in order is a list of full leaf pages and a
// small tree above them. INSERT statements would take ten times as long.

const (
	pageSize = 16 << 10
	// lockPage is the page that SQLite reserves for locks.
	lockPage = 1<<30/pageSize + 1
	// maxLocal is the maximum size of a record in a leaf cell. A larger record continues on
	// overflow pages, and minLocal is the minimum size of its part in the cell.
	maxLocal = pageSize - 35
	minLocal = (pageSize-12)*32/255 - 23
)

// pages appends pages to a database. SQLite has created the database with a root page for each
// table.
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

// bytes returns the size of the file.
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

// finish writes the number of pages to the header of the database.
func (p *pages) finish() error {
	if err := p.buf.Flush(); err != nil {
		return err
	}
	_, err := p.file.WriteAt(binary.BigEndian.AppendUint32(nil, p.next-1), 28)
	return err
}

// child is a page and the largest row id in its subtree.
type child struct {
	page  uint32
	rowID int64
}

// tree writes the B-tree of one table. The row ids are 1, 2 and so on.
type tree struct {
	pages *pages
	root  uint32
	rows  int64
	leaf  page
	below []child // the leaves that have been written
	cell  []byte
}

func newTree(p *pages, root uint32) *tree {
	return &tree{pages: p, root: root, leaf: newPage(0x0d)}
}

// add appends a row. The record is in SQLite's record format.
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
		t.cell = append(t.cell, 0) // a cell has at least four bytes, the size of a free block
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

// overflow writes the rest of a record to overflow pages and returns the first of them. Each page
// contains the number of the next one, which is known because they are consecutive.
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
		first = cmp.Or(first, at)
	}
	return first, nil
}

// finish writes the last leaf and the inner pages.
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
					n-- // leave two children for the last page
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

// fan is the maximum number of children of an inner page. A cell takes a pointer, a page number and
// a row id.
const fan = (pageSize-12)/(2+4+9) + 1

// inner returns a page above some children. The last child is the right pointer of the page, the
// others are cells.
func inner(list []child) page {
	p := newPage(0x05)
	last := len(list) - 1
	for _, c := range list[:last] {
		p.add(appendVarint(binary.BigEndian.AppendUint32(nil, c.page), uint64(c.rowID)))
	}
	p.right = list[last].page
	return p
}

// page is a B-tree page under construction. Pointers grow from its header, cells from its end.
type page struct {
	b     []byte
	kind  byte
	head  int // bytes of the header
	cells int
	start int    // offset of the first cell
	right uint32 // right pointer of an inner page
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

// appendVarint appends SQLite's variable-length integer: seven bits per byte, the most significant
// first. A ninth byte has eight bits.
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

// record is a record under construction: the types and the bytes of its values.
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

// real appends a float. SQL has no NaN, so NaN becomes null.
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

// size returns the size of the record without the length of its header.
func (r *record) size() int { return len(r.types) + len(r.body) }

// bytes returns the record. It is valid until the next call.
func (r *record) bytes() []byte {
	r.out = r.out[:0]
	for n := 1; ; n++ { // the size of the header includes itself
		r.out = appendVarint(r.out[:0], uint64(len(r.types)+n))
		if len(r.out) <= n {
			break
		}
	}
	r.out = append(append(r.out, r.types...), r.body...)
	return r.out
}

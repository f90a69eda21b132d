// Package ziptest makes legal and hostile zip archives for tests.
//
//	Legal, Hostile ──► bytes ──► tests of safezip, workflow, table and the command line
//
// Every archive contains one given file, for example the workflow file of a pack or the table of a bundle.
// A program that refuses a hostile archive thus refuses it for its fault and not for a missing file.
//
// archive/zip and other libraries cannot write most of these archives. This package therefore writes all
// records itself, as APPNOTE.TXT 6.3.10 sections 4.3 to 4.5 define them, and lets a case change every field.
// The large contents are compressed zeros, so that the archives stay small and are made in little time.
//
// Only tests import the package.
package ziptest

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"math"
)

var le = binary.LittleEndian

// Flags, methods and attributes of entries.
const (
	store    = 0
	deflate  = 8
	describe = 1 << 3
	link     = 0o120777 << 16
	pipe     = 0o010644 << 16
	regular  = 0o100644 << 16
)

// file is an entry of an archive. If only name is set, it is an ordinary empty entry.
type file struct {
	name, text string
	method     uint16
	flags      uint16
	creator    byte
	attributes uint32
	extra      string // of both headers
	localExtra string // instead of extra
	comment    string
	localName  string
	raw        []byte // the compressed content
	claims     int    // declared size of the content; if 0, the real size
	descriptor int    // bytes of the data descriptor: 0, 12, 16, 20 or 24
	badSum     bool   // the checksum is wrong in all headers
	localSize  uint32 // added to the size in the local header
	gap        string // bytes before the local header
	alias      string // another entry of the same length for the same local header
	inner      []file // entries inside this entry's content, which stay in the directory
	long       bool   // sizes and offset are in a ZIP64 field
	lyingTail  bool   // the data descriptor disagrees
}

// archive is an archive to write.
type archive struct {
	files   []file
	prefix  string
	suffix  string
	comment string
	end64   bool // with a ZIP64 end record
	again   int  // entries of the directory that are repeated
	change  func(end []byte)
	change6 func(end64 []byte)
}

type writer struct {
	b       bytes.Buffer
	central []byte
	n       int
}

func (a archive) bytes() []byte {
	w := &writer{}
	w.b.WriteString(a.prefix)
	for _, f := range a.files {
		w.add(f)
	}
	at := w.b.Len()
	for range a.again {
		w.central = append(w.central, w.central[:len(w.central)/w.n]...)
		w.n++
	}
	w.b.Write(w.central)
	size := w.b.Len() - at
	count, short, offset := uint16(min(w.n, math.MaxUint16)), uint32(size), uint32(at)
	if a.end64 {
		end64 := make([]byte, 56)
		copy(end64, "PK\x06\x06")
		le.PutUint64(end64[4:], 44)
		le.PutUint16(end64[12:], 45)
		le.PutUint16(end64[14:], 45)
		le.PutUint64(end64[24:], uint64(w.n))
		le.PutUint64(end64[32:], uint64(w.n))
		le.PutUint64(end64[40:], uint64(size))
		le.PutUint64(end64[48:], uint64(at))
		if a.change6 != nil {
			a.change6(end64)
		}
		locator := make([]byte, 20)
		copy(locator, "PK\x06\x07")
		le.PutUint64(locator[8:], uint64(w.b.Len()))
		le.PutUint32(locator[16:], 1)
		w.b.Write(end64)
		w.b.Write(locator)
		count, short, offset = math.MaxUint16, math.MaxUint32, math.MaxUint32
	}
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	le.PutUint16(end[8:], count)
	le.PutUint16(end[10:], count)
	le.PutUint32(end[12:], short)
	le.PutUint32(end[16:], offset)
	le.PutUint16(end[20:], uint16(len(a.comment)))
	if a.change != nil {
		a.change(end)
	}
	w.b.Write(end)
	w.b.WriteString(a.comment + a.suffix)
	return w.b.Bytes()
}

// content returns the compressed content, its checksum and its real size.
func (f *file) content() (packed []byte, sum uint32, size int) {
	if f.raw != nil {
		return f.raw, crc32.ChecksumIEEE([]byte(f.text)), len(f.text)
	}
	sum, size = crc32.ChecksumIEEE([]byte(f.text)), len(f.text)
	if f.method != deflate {
		return []byte(f.text), sum, size
	}
	return pack(func(w *flate.Writer) { _, _ = w.Write([]byte(f.text)) }), sum, size // a buffer takes all
}

func pack(write func(*flate.Writer)) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression) // the level is valid, so this cannot fail
	write(w)
	_ = w.Close() // a buffer takes all
	return b.Bytes()
}

// zeros returns n deflated zeros, a multiple of 1 MiB, and their checksum. Only 1 MiB is compressed: the blocks of a
// flushed stream end at a byte and, as the first blocks, refer to nothing before them, so that they can be repeated.
func zeros(n int) (packed []byte, sum uint32) {
	block := make([]byte, 1<<20)
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression) // the level is valid
	_, _ = w.Write(block)                              // a buffer takes all
	_ = w.Flush()
	first := b.Len()
	_ = w.Close()
	packed = append(bytes.Repeat(b.Bytes()[:first], n/len(block)), b.Bytes()[first:]...)
	h := crc32.NewIEEE()
	for range n / len(block) {
		_, _ = h.Write(block)
	}
	return packed, h.Sum32()
}

// add writes an entry and keeps its record of the directory.
func (w *writer) add(f file) {
	w.b.WriteString(f.gap)
	header := w.b.Len()
	packed, sum, size := f.content()
	size = cmp.Or(f.claims, size)
	if f.badSum {
		sum++
	}
	localName := cmp.Or(f.localName, f.name)
	flags := f.flags
	if f.descriptor > 0 {
		flags |= describe
	}
	inner := &writer{}
	if len(f.inner) > 0 {
		data := header + 30 + len(localName) + len(f.extra)
		inner.b.Write(make([]byte, data))
		for _, g := range f.inner {
			inner.add(g)
		}
		packed = inner.b.Bytes()[data:]
		sum, size = crc32.ChecksumIEEE(packed), len(packed)
	}
	local, central := f.extra, f.extra
	sizes := [2]uint32{uint32(len(packed)), uint32(size)}
	localSizes, localSum := sizes, sum
	if f.descriptor > 0 {
		localSizes, localSum = [2]uint32{}, 0
	}
	offset := uint32(header)
	if f.long {
		long := le.AppendUint16(nil, 1)
		long = le.AppendUint16(long, 16)
		long = le.AppendUint64(long, uint64(size))
		long = le.AppendUint64(long, uint64(len(packed)))
		local += string(long)
		le.PutUint16(long[2:], 24)
		central += string(le.AppendUint64(long, uint64(header)))
		sizes = [2]uint32{math.MaxUint32, math.MaxUint32}
		localSizes, offset = sizes, math.MaxUint32
	}
	local = cmp.Or(f.localExtra, local)
	common := func(b []byte, sizes [2]uint32, sum uint32, name, extra string) []byte {
		b = le.AppendUint16(b, 20)
		b = le.AppendUint16(b, flags)
		b = le.AppendUint16(b, f.method)
		b = le.AppendUint32(b, 0x58210000) // a date
		b = le.AppendUint32(b, sum)
		b = le.AppendUint32(b, sizes[0])
		b = le.AppendUint32(b, sizes[1])
		b = le.AppendUint16(b, uint16(len(name)))
		return le.AppendUint16(b, uint16(len(extra)))
	}
	localSizes[1] += f.localSize
	w.b.Write(common([]byte("PK\x03\x04"), localSizes, localSum, localName, local))
	w.b.WriteString(localName + local)
	w.b.Write(packed)
	w.descriptor(&f, sum, len(packed), size)
	w.central = append(w.central, 'P', 'K', 1, 2, 20, f.creator)
	w.central = common(w.central, sizes, sum, f.name, central)
	w.central = le.AppendUint16(w.central, uint16(len(f.comment)))
	w.central = append(w.central, 0, 0, 0, 0)
	w.central = le.AppendUint32(w.central, f.attributes)
	w.central = le.AppendUint32(w.central, offset)
	w.central = append(w.central, f.name+central+f.comment...)
	w.central = append(w.central, inner.central...)
	w.n += 1 + inner.n
	if f.alias != "" {
		from := len(w.central) - 46 - len(f.name)
		w.central = append(w.central, w.central[from:from+46]...)
		w.central = append(w.central, f.alias...)
		w.n++
	}
}

func (w *writer) descriptor(f *file, sum uint32, packed, size int) {
	if f.descriptor == 0 {
		return
	}
	if f.lyingTail {
		size++
	}
	d := []byte("PK\x07\x08")
	if f.descriptor%8 == 4 { // without the signature
		d = nil
	}
	d = le.AppendUint32(d, sum)
	if f.descriptor >= 20 {
		d = le.AppendUint64(d, uint64(packed))
		d = le.AppendUint64(d, uint64(size))
	} else {
		d = le.AppendUint32(d, uint32(packed))
		d = le.AppendUint32(d, uint32(size))
	}
	w.b.Write(d)
}

// extra returns an extra field.
func extra(tag uint16, data string) string {
	b := le.AppendUint16(nil, tag)
	return string(le.AppendUint16(b, uint16(len(data)))) + data
}

func repeat(n int, f func(i int) file) []file {
	list := make([]file, n)
	for i := range list {
		list[i] = f(i)
	}
	return list
}

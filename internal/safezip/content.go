package safezip

import (
	"bufio"
	"bytes"
	"compress/flate"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/tenonhq/tenon"
)

// Stored returns the content of a file that is not compressed.
func (f *File) Stored() (*io.SectionReader, bool) {
	if f.method != methodStore {
		return nil, false
	}
	return io.NewSectionReader(f.archive.r, f.data, f.packed), true
}

// Open returns the decompressed content as a stream. The last read fails if the content differs from the
// declared size or checksum. Errors: invalid, store.
func (f *File) Open() io.ReadCloser {
	c := &content{f: f, left: f.Unpacked, sum: crc32.NewIEEE()}
	c.packed = bufio.NewReader(io.NewSectionReader(f.archive.r, f.data, f.packed))
	c.plain = io.NopCloser(c.packed)
	if f.method == methodDeflate {
		c.plain = flate.NewReader(c.packed)
	}
	return c
}

// CopyTo writes the decompressed content to w. Errors: invalid, store, or the error of w.
func (f *File) CopyTo(w io.Writer) error {
	c := f.Open()
	_, err := io.Copy(w, c)
	return errors.Join(err, c.Close())
}

// Bytes returns the decompressed content. Errors: invalid, store.
func (f *File) Bytes() ([]byte, error) {
	// The declared size may be wrong, so the buffer starts small and grows with the content.
	b := bytes.NewBuffer(make([]byte, 0, min(f.Unpacked, 1<<20)+bytes.MinRead))
	if err := f.CopyTo(b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// content decompresses a file and checks it.
type content struct {
	f      *File
	packed *bufio.Reader // an io.ByteReader, so that flate reads no bytes beyond its end
	plain  io.ReadCloser
	left   int64
	sum    hash.Hash32
	err    error
}

// Read implements [io.Reader].
func (c *content) Read(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if int64(len(b)) > c.left+1 {
		b = b[:c.left+1]
	}
	n, err := c.plain.Read(b)
	_, _ = c.sum.Write(b[:n]) // a hash never fails
	c.left -= int64(n)
	switch {
	case c.left < 0:
		n, err = 0, c.f.archive.bad("'%s' is larger than its declared %d bytes", shown(c.f.Name), c.f.Unpacked)
	case errors.Is(err, io.EOF):
		err = c.end()
	case err != nil:
		err = c.broken(err)
	}
	c.err = err
	return n, err
}

// end checks the complete content.
func (c *content) end() error {
	_, err := c.packed.ReadByte()
	switch {
	case c.left > 0:
		return c.f.archive.bad("'%s' is smaller than its declared %d bytes", shown(c.f.Name), c.f.Unpacked)
	case c.sum.Sum32() != c.f.crc:
		return c.f.archive.bad("'%s' has a wrong checksum", shown(c.f.Name))
	case err == nil:
		return c.f.archive.bad("bytes follow the compressed content of '%s'", shown(c.f.Name))
	case !errors.Is(err, io.EOF):
		return c.broken(err)
	}
	return io.EOF
}

func (c *content) broken(err error) error {
	var damaged flate.CorruptInputError
	if errors.As(err, &damaged) || errors.Is(err, io.ErrUnexpectedEOF) {
		return c.f.archive.bad("'%s' cannot be unpacked: its compressed content is damaged", shown(c.f.Name))
	}
	return tenon.Errorf(tenon.CodeStore, c.f.archive.name+": '%s' cannot be read: %w", shown(c.f.Name), err)
}

// Close implements [io.Closer].
func (c *content) Close() error {
	c.err = fs.ErrClosed
	_ = c.plain.Close() // repeats the error of the last read
	return nil
}

var _ io.ReadCloser = (*content)(nil)

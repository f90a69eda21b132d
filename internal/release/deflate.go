package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync"
)

// largeText is the size from which a text is compressed once for all packages, in bytes. Only binaries are as large.
const largeText = 4 << 20

// deflated keeps compressed texts: a binary is in five packages, and compressing it takes seconds. The zero value and
// nil are usable; nil keeps nothing.
type deflated struct {
	mu    sync.Mutex
	texts map[[sha256.Size]byte]func() ([]byte, error)
}

// of returns a text as blocks of DEFLATE (RFC 1951) that end at a whole byte. None is the last one of a stream, and
// none refers to text before them, so they may be in the middle of any stream.
func (d *deflated) of(text []byte) ([]byte, error) {
	if d == nil {
		return blocksOf(text)
	}
	sum := sha256.Sum256(text)
	d.mu.Lock()
	blocks := d.texts[sum]
	if blocks == nil {
		blocks = sync.OnceValues(func() ([]byte, error) { return blocksOf(text) })
		if d.texts == nil {
			d.texts = map[[sha256.Size]byte]func() ([]byte, error){}
		}
		d.texts[sum] = blocks
	}
	d.mu.Unlock()
	return blocks()
}

func blocksOf(text []byte) ([]byte, error) {
	var blocks bytes.Buffer
	w, err := flate.NewWriter(&blocks, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Flush()
	return blocks.Bytes(), err
}

// deflater writes a stream of DEFLATE. A large text that is written in one call is compressed by texts. The stream is
// a function of these calls.
type deflater struct {
	out   io.Writer
	w     *flate.Writer
	texts *deflated
}

func newDeflater(out io.Writer, texts *deflated) (*deflater, error) {
	w, err := flate.NewWriter(out, flate.BestCompression)
	return &deflater{out, w, texts}, err
}

func (d *deflater) Write(text []byte) (int, error) {
	if len(text) < largeText {
		return d.w.Write(text)
	}
	blocks, err := d.texts.of(text)
	if err != nil {
		return 0, err
	}
	if err := d.w.Flush(); err != nil { // to a whole byte
		return 0, err
	}
	if _, err := d.out.Write(blocks); err != nil {
		return 0, err
	}
	d.w.Reset(d.out)
	return len(text), nil
}

func (d *deflater) Close() error { return d.w.Close() }

// gzipped returns what write writes, as a gzip file (RFC 1952) without a name and a time.
func (d *deflated) gzipped(write func(io.Writer) error) ([]byte, error) {
	packed := bytes.NewBuffer([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255}) // the smallest file, of an unknown system
	w, err := newDeflater(packed, d)
	if err != nil {
		return nil, err
	}
	sum, size := crc32.NewIEEE(), counter(0)
	if err := write(io.MultiWriter(w, sum, &size)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	end := binary.LittleEndian.AppendUint32(packed.Bytes(), sum.Sum32())
	return binary.LittleEndian.AppendUint32(end, uint32(size)), nil
}

// counter counts bytes.
type counter int64

func (c *counter) Write(text []byte) (int, error) {
	*c += counter(len(text))
	return len(text), nil
}

// tarball packs entries, sorted by name, without owner.
func (p packaging) tarball(prefix string, entries []entry) ([]byte, error) {
	return p.texts.gzipped(func(out io.Writer) error {
		w := tar.NewWriter(out)
		for _, e := range sorted(entries) {
			h := &tar.Header{Typeflag: tar.TypeReg, Name: prefix + e.name, Size: int64(len(e.text)), Mode: e.mode,
				ModTime: p.made, Format: tar.FormatUSTAR}
			if err := w.WriteHeader(h); err != nil {
				return err
			}
			if _, err := w.Write(e.text); err != nil {
				return err
			}
		}
		return w.Close()
	})
}

// zipped packs entries in their order, with the modes of Unix.
func (p packaging) zipped(entries []entry) ([]byte, error) {
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return newDeflater(out, p.texts) })
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: p.made}
		h.ExternalAttrs = uint32(0o100000|e.mode) << 16 // a regular file of Unix
		h.CreatorVersion = 3 << 8
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(e.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

var _ io.WriteCloser = (*deflater)(nil)

// Package pieces stores data that is too large for one blob as many blobs, and reads it back at any place.
//
//	file ──► Describe ──► Manifest ──► Put ──► one blob for each piece, then a blob for the manifest
//	                                             └──► Open ──► io.SectionReader
//
// All blobs belong to the run for which they are stored, so they are copied, backed up, checked and deleted like other
// blobs. The manifest lists the digests of the pieces. Put stores it last: data whose process died while it was stored
// has no manifest and cannot be read. The pieces that are there are deleted with the run.
//
// A reader holds two pieces in memory, whatever the size of the data is. The store compares each piece with its digest,
// and the manifest has its own, so a changed byte is found when it is read.
package pieces

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// Size is the size of a piece in bytes. The last piece may be smaller.
const Size = 8 << 20

// maxSize bounds the pieces of a stored manifest, because a reader holds two of them.
const maxSize = 64 << 20

// Manifest describes data that is stored in pieces.
type Manifest struct {
	Digest string   `json:"digest"` // of all data, as [store.Digest] makes it
	Bytes  int64    `json:"bytes"`
	Size   int64    `json:"size"`   // of a piece in bytes
	Pieces []string `json:"pieces"` // digests of the pieces, in their order
}

// Blobs is the part of a store that pieces need.
type Blobs interface {
	PutBlob(ctx context.Context, run string, data []byte) (digest string, err error)
	Blob(ctx context.Context, digest string) ([]byte, error)
}

// Describe reads all data once and returns its manifest. It stores nothing. Errors: store (the data cannot be read),
// cancelled.
func Describe(ctx context.Context, in io.ReaderAt, size int64) (Manifest, error) {
	m := Manifest{Bytes: size, Size: Size, Pieces: []string{}}
	whole := sha256.New()
	for at := int64(0); at < size; at += Size {
		if ctx.Err() != nil {
			return m, tenon.Errorf(tenon.CodeCancelled, "reading %d bytes: %w", size, context.Cause(ctx))
		}
		piece := sha256.New()
		n := min(Size, size-at)
		got, err := io.Copy(io.MultiWriter(whole, piece), io.NewSectionReader(in, at, n))
		if err == nil && got < n {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return m, tenon.Errorf(tenon.CodeStore, "%d bytes cannot be read again: %w", size, err)
		}
		m.Pieces = append(m.Pieces, digest(piece.Sum(nil)))
	}
	m.Digest = digest(whole.Sum(nil))
	return m, nil
}

func digest(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// encode returns the bytes of the manifest's blob.
func (m Manifest) encode() []byte { return tenon.EventData(m) }

// ID returns the digest of the manifest's blob, with which [Open] finds the data.
func (m Manifest) ID() string { return store.Digest(m.encode()) }

// Uses returns the digests of all blobs of the data: of the manifest and of the pieces.
func (m Manifest) Uses() []string { return append([]string{m.ID()}, m.Pieces...) }

// Put stores the data that a manifest describes for a run. It writes the manifest after all pieces. Errors: conflict
// (the data has changed since Describe), not_found (the run), store, cancelled.
func (m Manifest) Put(ctx context.Context, s Blobs, run string, in io.ReaderAt) error {
	buf := make([]byte, min(m.Size, m.Bytes))
	for i, want := range m.Pieces {
		at := int64(i) * m.Size
		b := buf[:min(m.Size, m.Bytes-at)]
		if n, err := in.ReadAt(b, at); n < len(b) {
			return tenon.Errorf(tenon.CodeStore, "%d bytes cannot be read again: %w", m.Bytes, err)
		}
		if store.Digest(b) != want {
			return tenon.Errorf(tenon.CodeConflict, "the file changed while it was stored; try again when nobody "+
				"writes it")
		}
		if _, err := s.PutBlob(ctx, run, b); err != nil {
			return err
		}
	}
	_, err := s.PutBlob(ctx, run, m.encode())
	return err
}

// Load reads a manifest by its digest. Errors: not_found, store (it is not a manifest).
func Load(ctx context.Context, s Blobs, id string) (m Manifest, err error) {
	b, err := s.Blob(ctx, id)
	if err != nil {
		return m, err
	}
	err = json.Unmarshal(b, &m)
	if err == nil && (m.Size <= 0 || m.Size > maxSize || m.Bytes < 0 ||
		int64(len(m.Pieces)) != (m.Bytes+m.Size-1)/m.Size) {
		err = errors.New("its sizes do not fit")
	}
	if err != nil {
		return m, tenon.Errorf(tenon.CodeStore, "blob %s is not the manifest of data in pieces: %w", id, err)
	}
	return m, nil
}

// Open returns a reader of the data with the given manifest. It may be used concurrently; ctx bounds all its reads.
// Errors: not_found, store; reads also have them.
func Open(ctx context.Context, s Blobs, id string) (*io.SectionReader, error) {
	m, err := Load(ctx, s, id)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(&reader{ctx: ctx, s: s, m: m}, 0, m.Bytes), nil
}

// reader reads data by its pieces.
type reader struct {
	ctx context.Context
	s   Blobs
	m   Manifest

	mu   sync.Mutex
	held [2]held // the pieces that were read last, the newest first
}

type held struct {
	data []byte // nil if no piece was read yet
	n    int64  // number of the piece
}

// ReadAt implements [io.ReaderAt].
func (r *reader) ReadAt(p []byte, at int64) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n < len(p) {
		if at >= r.m.Bytes {
			return n, io.EOF
		}
		b, err := r.piece(at / r.m.Size)
		if err != nil {
			return n, err
		}
		k := copy(p[n:], b[at%r.m.Size:])
		n, at = n+k, at+int64(k)
	}
	return n, nil
}

// piece returns the bytes of a piece.
func (r *reader) piece(i int64) ([]byte, error) {
	for k, h := range r.held {
		if h.data != nil && h.n == i {
			r.held[0], r.held[k] = h, r.held[0]
			return h.data, nil
		}
	}
	r.held[1].data = nil // free it before the next one is read
	b, err := r.s.Blob(r.ctx, r.m.Pieces[i])
	if err != nil {
		return nil, err
	}
	if want := min(r.m.Size, r.m.Bytes-i*r.m.Size); int64(len(b)) != want {
		return nil, tenon.Errorf(tenon.CodeStore, "piece %d has %d bytes instead of %d", i, len(b), want)
	}
	r.held[1] = r.held[0]
	r.held[0] = held{b, i}
	return b, nil
}

// Of returns the digests of the blobs of a table: of its bytes, or of its manifest and pieces.
func Of(ctx context.Context, s Blobs, t tenon.Table) ([]string, error) {
	if t.Pieces == "" {
		return []string{t.Digest}, nil
	}
	m, err := Load(ctx, s, t.Pieces)
	if err != nil {
		return nil, Missing(t, err)
	}
	return m.Uses(), nil
}

// Missing explains that the rows of a table are not in the store. Another error stays as it is.
func Missing(t tenon.Table, err error) error {
	if tenon.ErrorCode(err) != tenon.CodeNotFound {
		return err
	}
	return tenon.Errorf(tenon.CodeNotFound, "the rows of table '%s' (%s) are not here: the process ended while it "+
		"stored them, or the conversation was imported from a file, which has no tables of this size; run it again",
		tenon.Visible(t.Name), sizeOf(t.Bytes))
}

func sizeOf(bytes int64) string { return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20) }

// OpenTable returns the bytes of a table that the store has, in one blob or in pieces. For ctx see [Open].
func OpenTable(ctx context.Context, s Blobs, t tenon.Table) (*io.SectionReader, error) {
	if t.Pieces != "" {
		in, err := Open(ctx, s, t.Pieces)
		return in, Missing(t, err)
	}
	b, err := s.Blob(ctx, t.Digest)
	if err != nil {
		return nil, err
	}
	return Bytes(b), nil
}

// Bytes returns a reader of bytes in memory.
func Bytes(b []byte) *io.SectionReader { return io.NewSectionReader(memory(b), 0, int64(len(b))) }

// memory is bytes that are read like a file.
type memory []byte

// ReadAt implements [io.ReaderAt].
func (b memory) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

var (
	_ io.ReaderAt = (*reader)(nil)
	_ io.ReaderAt = memory(nil)
	_ Blobs       = store.Store(nil)
)

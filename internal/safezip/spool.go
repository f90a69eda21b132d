package safezip

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/tenonhq/tenon"
)

// maxHeld is the largest spool that stays in memory.
const maxHeld = 1 << 20

// Spool is a private copy of bytes for random access. Up to 1 MiB is kept in memory, and more in a
// temporary file. Nobody can change it, so checks of its bytes stay valid. It may be used concurrently.
type Spool struct {
	in   io.ReaderAt
	size int64
	file *spoolFile // nil if the bytes are in memory
	stop runtime.Cleanup
}

// spoolFile is the temporary file of a spool.
type spoolFile struct {
	f    *os.File
	once sync.Once
	err  error
}

// remove closes and removes the file. On Unix, the file already has no name. Windows removes only closed files.
func (s *spoolFile) remove() {
	s.once.Do(func() {
		s.err = s.f.Close()
		if err := os.Remove(s.f.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.err = errors.Join(s.err, err)
		}
	})
}

// NewSpool copies the bytes that fill writes, at most limit bytes. [Spool.Close] removes the copy. If a spool is no
// longer referenced, the garbage collector removes it. Errors: too_large, store, or the error of fill.
func NewSpool(name string, limit int64, fill func(io.Writer) error) (*Spool, error) {
	w := &spoolWriter{name: tenon.Visible(name), limit: limit}
	if err := fill(w); err != nil {
		if w.file != nil {
			w.file.remove()
		}
		return nil, err
	}
	if w.file == nil {
		return &Spool{in: bytes.NewReader(w.held), size: w.n}, nil
	}
	s := &Spool{in: w.file.f, size: w.n, file: w.file}
	s.stop = runtime.AddCleanup(s, (*spoolFile).remove, w.file)
	return s, nil
}

// spoolWriter is a spool that is being filled.
type spoolWriter struct {
	name  string
	limit int64
	n     int64
	held  []byte
	file  *spoolFile
}

// Write implements [io.Writer].
func (w *spoolWriter) Write(b []byte) (int, error) {
	if int64(len(b)) > w.limit-w.n {
		return 0, tooLong(w.name, w.limit)
	}
	w.n += int64(len(b))
	if w.file == nil && w.n <= maxHeld {
		w.held = append(w.held, b...)
		return len(b), nil
	}
	if w.file == nil {
		f, err := os.CreateTemp("", "tenon-spool-*")
		if err != nil {
			return 0, w.failed(err)
		}
		_ = os.Remove(f.Name()) // fails on Windows, where remove does it later
		w.file = &spoolFile{f: f}
		if _, err := f.Write(w.held); err != nil {
			return 0, w.failed(err)
		}
		w.held = nil
	}
	n, err := w.file.f.Write(b)
	return n, w.failed(err)
}

func (w *spoolWriter) failed(err error) error {
	if err == nil {
		return nil
	}
	return tenon.Errorf(tenon.CodeStore, "%s: a temporary copy cannot be written: %w; free space in the folder for "+
		"temporary files", w.name, err)
}

func tooLong(name string, limit int64) error {
	if limit%(1<<20) == 0 {
		return tenon.Errorf(tenon.CodeTooLarge, "%s has more than %d MiB", name, limit>>20)
	}
	return tenon.Errorf(tenon.CodeTooLarge, "%s has more than %d bytes", name, limit)
}

// ReadAt implements [io.ReaderAt].
func (s *Spool) ReadAt(b []byte, at int64) (int, error) {
	n, err := s.in.ReadAt(b, at)
	runtime.KeepAlive(s) // the cleanup must not close the file during the read
	return n, err
}

// Size returns the number of bytes.
func (s *Spool) Size() int64 { return s.size }

// Section returns a reader of all bytes. It keeps the spool alive.
func (s *Spool) Section() *io.SectionReader { return io.NewSectionReader(s, 0, s.size) }

// From fills a spool with a stream; see [NewSpool].
func From(in io.Reader) (fill func(io.Writer) error) {
	return func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	}
}

// Close removes the copy. Later reads fail. It may be called repeatedly.
func (s *Spool) Close() error {
	if s == nil || s.file == nil {
		return nil
	}
	s.stop.Stop()
	s.file.remove()
	if s.file.err != nil {
		return fmt.Errorf("the temporary copy was not removed: %w", s.file.err)
	}
	return nil
}

var (
	_ io.ReaderAt = (*Spool)(nil)
	_ io.Writer   = (*spoolWriter)(nil)
)

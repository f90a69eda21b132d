package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tenonhq/tenon"
)

// Uploaded tables are written to a temporary file next to the others while they arrive, and checked there. Only a table
// that was read as a whole gets its name, so a broken upload leaves nothing.

func (h tablesHandle) Put(ctx context.Context, name string, data []byte) (TableFile, error) {
	return h.PutFrom(ctx, name, bytes.NewReader(data))
}

func (h tablesHandle) PutFrom(ctx context.Context, name string, data io.Reader) (TableFile, error) {
	none := TableFile{}
	root, err := h.host.uploads()
	if err != nil {
		return none, err
	}
	if !uploadName().MatchString(name) || len(name) > maxUploadName || !isTableName(name) {
		return none, tenon.Errorf(tenon.CodeInvalid, "'%s' is not a valid name of a table: use at most 100 letters, "+
			"digits, '_', '-', '.' and blanks, and one of these extensions: %s", tenon.Visible(name),
			strings.Join(tableExtensions, ", "))
	}
	if _, err := os.Lstat(filepath.Join(root, name)); err == nil { // before all of it is sent
		return none, nameTaken(name)
	}
	in, err := h.host.arriving.begin(root, name)
	if err != nil {
		return none, err
	}
	defer in.drop()
	size, err := h.receive(ctx, name, in, data)
	if err := errors.Join(err, in.f.Close()); err != nil {
		return none, err
	}
	temporary := in.f.Name()
	if _, err := h.host.filePage(ctx, temporary, PageOptions{Count: true}); err != nil {
		return none, tenon.Errorf(tenon.CodeInvalid, "%s", strings.ReplaceAll(err.Error(), temporary, name))
	}
	if err := in.store(filepath.Join(root, name)); errors.Is(err, fs.ErrExist) {
		return none, nameTaken(name)
	} else if err != nil {
		return none, notStored(err)
	}
	return TableFile{ID: tableUploaded + ":" + name, Name: name, Source: tableUploaded, Bytes: size,
		Changed: h.host.now()}, nil
}

// The names of tables that arrive, and the age at which another upload removes such a file. It was then left by a
// process that was killed: the pieces of a living upload arrive within seconds, and each renews the file's time.
const (
	arrivingTable = ".table-"
	staleTable    = time.Hour
)

// receiving counts the bytes of uploads under way. They share the room for uploads, so that parallel ones do not take
// it twice. A host shares the counter with the one that replaces it.
type receiving struct {
	mu   sync.Mutex
	used int64            // bytes of all uploaded tables, also of unfinished ones
	open map[string]int64 // bytes by the temporary file of an upload under way
}

// reception is an upload under way. Its bytes are counted before they are written.
type reception struct {
	all *receiving
	f   *os.File
}

// begin makes the folder of uploaded tables, and a temporary file in it. Files in the folder are counted again, because
// tables are removed, and other processes store some.
func (a *receiving) begin(root, name string) (*reception, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "there is no place for the table: %w", err)
	}
	have, err := os.ReadDir(root)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "%w", err)
	}
	files := 0
	a.used = 0
	for _, e := range have {
		path := filepath.Join(root, e.Name())
		size, arrives := a.open[path]
		st, err := e.Info()
		switch {
		case arrives:
		case err != nil:
			continue // removed meanwhile
		case isStale(st) && os.Remove(path) == nil:
			continue
		default:
			size = st.Size()
		}
		files, a.used = files+1, a.used+size
	}
	if a.used >= maxUploads || files >= maxTableFiles {
		return nil, noRoom()
	}
	f, err := os.CreateTemp(root, arrivingTable+"*"+filepath.Ext(name))
	if err != nil {
		return nil, notStored(err)
	}
	if a.open == nil {
		a.open = map[string]int64{}
	}
	a.open[f.Name()] = 0
	return &reception{a, f}, nil
}

// isStale reports whether a file is the rest of an upload of a process that was killed.
func isStale(st fs.FileInfo) bool {
	return strings.HasPrefix(st.Name(), arrivingTable) && st.Mode().IsRegular() &&
		time.Since(st.ModTime()) > staleTable
}

// take counts bytes of an upload. Errors: too_large.
func (a *receiving) take(path string, n int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used+int64(n) > maxUploads {
		return noRoom()
	}
	a.used += int64(n)
	a.open[path] += int64(n)
	return nil
}

// Write implements [io.Writer].
func (t *reception) Write(b []byte) (int, error) {
	if err := t.all.take(t.f.Name(), len(b)); err != nil {
		return 0, err
	}
	return t.f.Write(b)
}

// store gives the table its name, and keeps its bytes counted.
func (t *reception) store(path string) error {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	if err := os.Link(t.f.Name(), path); err != nil {
		return err
	}
	_ = os.Remove(t.f.Name()) // one that stays is removed when it is stale
	delete(t.all.open, t.f.Name())
	return nil
}

// drop removes the temporary file of an upload that was not stored.
func (t *reception) drop() {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	if size, ok := t.all.open[t.f.Name()]; ok {
		_ = os.Remove(t.f.Name())
		t.all.used -= size
		delete(t.all.open, t.f.Name())
	}
}

// receive writes a table to a file while it arrives. It has at most tables.max_bytes, and to refuses
// what exceeds the room for uploads.
func (h tablesHandle) receive(ctx context.Context, name string, to io.Writer, data io.Reader) (int64, error) {
	most, _ := h.host.tableLimit()
	in := &readErrors{r: contextReader{ctx, data}}
	size, err := io.Copy(to, io.LimitReader(in, most+1))
	switch {
	case in.err != nil:
		return size, in.err
	case errors.Is(err, syscall.ENOSPC):
		return size, tenon.Errorf(tenon.CodeStore, "the table cannot be stored: the disk is full; free some of it")
	case tenon.ErrorCode(err) == tenon.CodeTooLarge:
		return size, err // there is no room
	case err != nil:
		return size, notStored(err)
	case size > most:
		return size, h.host.tooLarge("'" + name + "'")
	}
	return size, nil
}

// readErrors keeps the error of a reader, to tell it from the error of the writer.
type readErrors struct {
	r   io.Reader
	err error
}

func (r *readErrors) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r contextReader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, tenon.Errorf(tenon.CodeCancelled, "the upload was stopped")
	}
	return r.r.Read(b)
}

func nameTaken(name string) error {
	return tenon.Errorf(tenon.CodeConflict, "there is a table '%s' already; remove it, or choose another name", name)
}

func notStored(err error) error {
	return tenon.Errorf(tenon.CodeStore, "the table cannot be kept: %w", err)
}

func noRoom() error {
	return tenon.Errorf(tenon.CodeTooLarge, "there is no room for more tables: %d files and %d MiB at most; remove "+
		"some", maxTableFiles, maxUploads>>20)
}

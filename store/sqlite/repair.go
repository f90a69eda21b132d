package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon"
)

// Repaired is the result of [Repair].
type Repaired struct {
	Path     string    `json:"path"`     // of the new store
	Rows     int64     `json:"rows"`     // that were recovered
	Runs     int64     `json:"runs"`     // among them
	Problems []Problem `json:"problems"` // of the damaged store
	Lost     []string  `json:"lost"`     // data that is missing or changed in the new store
	More     int       `json:"more,omitempty"`
}

func (r *Repaired) lose(format string, args ...any) {
	if len(r.Lost) >= maxProblems {
		r.More++
		return
	}
	r.Lost = append(r.Lost, fmt.Sprintf(format, args...))
}

// Repair recovers the undamaged rows of a damaged store into a new file, which must not exist. The damaged store and
// its log are not changed. A run whose journal is incomplete is kept up to the gap and marked as imported, so that
// nothing of it is repeated; its row is foreign. The index of texts is built again by the next search. Errors:
// not_found, conflict (the new file exists, or a process works on the store), store, cancelled.
func Repair(ctx context.Context, path, out string, progress Progress) (*Repaired, error) {
	path, err := existing(path)
	if err != nil {
		return nil, err
	}
	if out, err = filepath.Abs(out); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "repair: %w", err)
	}
	if _, err := os.Lstat(out); err == nil {
		return nil, tenon.Errorf(tenon.CodeConflict, "repair: %s exists, and nothing is overwritten; name another file",
			out)
	}
	if busy, err := inUse(path); err != nil || busy {
		return nil, busyError(path, err)
	}
	r := &repairer{path: path, progress: progress,
		result: &Repaired{Path: out, Problems: []Problem{}, Lost: []string{}}}
	progress.report("check", 0, 0)
	report, err := Check(ctx, CheckConfig{Path: path})
	if report != nil {
		r.result.Problems, r.result.More = report.Problems, report.More
	}
	if err != nil {
		r.result.Problems = append(r.result.Problems, Problem{Kind: ProblemFile, Text: err.Error()})
	}
	dir, err := os.MkdirTemp(filepath.Dir(out), ".tenon-repair-*") // mode 0700, and on the disk of the result
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "repair: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r.old, r.new = filepath.Join(dir, "old.db"), filepath.Join(dir, "new.db")
	for _, step := range []func(context.Context) error{r.copyFiles, r.fixSchema, r.copyTables} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, tenon.Errorf(tenon.CodeCancelled, "repair of %s: %w", path, ctx.Err())
			}
			return nil, storeError(path, "repair", err)
		}
	}
	progress.report("check the new store", 0, 0)
	report, err = Check(ctx, CheckConfig{Path: r.new, alone: true})
	switch {
	case err != nil:
		return nil, err
	case !report.OK():
		return nil, tenon.Errorf(tenon.CodeStore, "repair of %s: the new store is damaged: %s; put back a backup with "+
			"'tenon store restore'", path, report.Problems[0])
	}
	r.result.Runs, r.result.Rows = report.Runs, report.Rows+report.Blobs
	return r.result, install(r.new, out)
}

// repairer is one repair.
type repairer struct {
	path     string
	old, new string // a copy of the damaged store, and the new one
	progress Progress
	result   *Repaired
	conn     *sql.Conn // connection to the new store, to which the copy is attached as old
	version  int       // of the copy's schema
}

// copyFiles copies the damaged store and the usable part of its log.
func (r *repairer) copyFiles(context.Context) error {
	r.progress.report("copy", 0, 0)
	if _, err := copyNew(r.path, r.old); err != nil {
		return err
	}
	f, err := os.OpenFile(r.old, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	page := make([]byte, storePageSize)
	if _, err = io.ReadFull(f, page); err == nil {
		size := int64(0)
		if info, serr := f.Stat(); serr == nil {
			size = info.Size()
		}
		fixHeader(page, uint32(size/storePageSize))
		_, err = f.WriteAt(page[:100], 0)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	log, err := readLog(r.path + "-wal")
	if err != nil || log == nil || log.usable == 0 {
		return err
	}
	if log.torn {
		r.result.lose("the last write in the log")
	}
	w, err := os.OpenFile(r.old+"-wal", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 1<<20)
	frame, err := log.rewrite(b)
	if frame > 0 {
		r.result.lose("frame %d of the log: what it changed may be missing, such as the last events of a run", frame)
	}
	return errors.Join(err, b.Flush(), w.Close())
}

// fixHeader sets the fields of a store file's header that always have the same values. If pages is 0, the number of
// pages is not changed, as in a page of the log.
func fixHeader(page []byte, pages uint32) {
	copy(page, "SQLite format 3\x00")
	binary.BigEndian.PutUint16(page[16:], storePageSize)
	copy(page[18:], []byte{2, 2, 0, 64, 32, 32})
	if pages > 0 {
		binary.BigEndian.PutUint32(page[28:], pages)
		copy(page[92:96], page[24:28]) // the number of pages is valid
	}
	clear(page[32:40]) // unused pages do not matter
	if f := binary.BigEndian.Uint32(page[44:]); f < 1 || f > 4 {
		binary.BigEndian.PutUint32(page[44:], 4)
	}
	clear(page[52:56])
	binary.BigEndian.PutUint32(page[56:], 1) // UTF-8
	if v := binary.BigEndian.Uint32(page[60:]); v < 1 || v > uint32(len(migrations)) {
		binary.BigEndian.PutUint32(page[60:], uint32(len(migrations)))
	}
	clear(page[64:68])
	binary.BigEndian.PutUint32(page[68:], applicationID)
	clear(page[72:92])
}

// attach opens the new store, with the copy attached as old.
func (r *repairer) attach(ctx context.Context) (closing func(), err error) {
	if err := writeNew(r.new, emptyStore()); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	db, err := connect(r.new, 1, "synchronous(FULL)", "journal_mode(DELETE)")
	if err != nil {
		return nil, err
	}
	if r.conn, err = db.Conn(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	at := url.URL{Scheme: "file", Path: uriPath(r.old)}
	_, err = r.conn.ExecContext(ctx, "ATTACH '"+sqlQuote(at.String())+"' AS old")
	return func() { _ = r.conn.Close(); _ = db.Close() }, err // the writes have reported their errors
}

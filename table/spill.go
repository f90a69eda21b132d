package table

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// spill is a file system of SQLite's (a VFS) that is the system's own, but counts what
// a connection writes to temporary files: SQLite sorts and joins in them, and has no
// bound for it. It is for one connection, under a name that only that knows.
type spill struct {
	tls   *libc.TLS
	limit int64             // bytes of all files together
	used  int64             //
	files map[uintptr]int64 // of each, by its handle
	full  bool              // the limit was reached

	// In C's memory: the VFS, its name, the methods of its temporary files (0: there was
	// none yet), and the system's VFS.
	vfs, name, methods, below uintptr
	origin                    sqlite3.Tsqlite3_vfs
	file                      sqlite3.Tsqlite3_io_methods // the system's methods of a file

	open  func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	write func(tls *libc.TLS, file, from uintptr, n int32, at int64) int32
	close func(tls *libc.TLS, file uintptr) int32
}

// newSpill registers a file system; [spill.drop] takes it out again.
func newSpill(tls *libc.TLS, limit int64) (*spill, error) {
	s := &spill{tls: tls, limit: limit, files: map[uintptr]int64{}}
	s.below = sqlite3.Xsqlite3_vfs_find(tls, 0)
	s.origin = *(*sqlite3.Tsqlite3_vfs)(unsafe.Pointer(&bytes.Clone(libc.GoBytes(s.below, int(unsafe.Sizeof(s.origin))))[0]))
	s.open, s.write, s.close = s.xOpen, s.xWrite, s.xClose
	var err error
	if s.name, err = libc.CString("tenon-" + strconv.FormatUint(uint64(uintptr(unsafe.Pointer(s))), 36)); err != nil {
		return nil, err
	}
	vfs := s.origin
	vfs.FzName, vfs.FpNext = s.name, 0
	vfs.FxOpen = *(*uintptr)(unsafe.Pointer(&s.open))
	if s.vfs, err = inC(&vfs); err != nil {
		libc.Xfree(tls, s.name)
		return nil, err
	}
	sqlite3.Xsqlite3_vfs_register(tls, s.vfs, 0)
	return s, nil
}

// drop is called when the connection is closed.
func (s *spill) drop() {
	sqlite3.Xsqlite3_vfs_unregister(s.tls, s.vfs)
	for _, p := range []uintptr{s.vfs, s.name, s.methods} {
		libc.Xfree(s.tls, p)
	}
}

// inC copies a struct into C's memory, where C may follow its address.
func inC[T any](v *T) (uintptr, error) {
	return libc.CString(unsafe.String((*byte)(unsafe.Pointer(v)), int(unsafe.Sizeof(*v))))
}

// function makes a Go function of an address of C's.
func function[F any](at uintptr) F {
	return *(*F)(unsafe.Pointer(&struct{ at uintptr }{at}))
}

const temporaryFile = sqlite3.SQLITE_OPEN_TEMP_DB | sqlite3.SQLITE_OPEN_TRANSIENT_DB | sqlite3.SQLITE_OPEN_TEMP_JOURNAL | sqlite3.SQLITE_OPEN_SUBJOURNAL

func (s *spill) xOpen(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	rc := function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](s.origin.FxOpen)(tls, s.below, name, file, flags, out)
	if rc != sqlite3.SQLITE_OK || flags&temporaryFile == 0 {
		return rc
	}
	at := libc.GoBytes(file, int(unsafe.Sizeof(file))) // an open file begins with the address of its methods
	if s.methods == 0 {
		methods := readPointer(at)
		s.file = *(*sqlite3.Tsqlite3_io_methods)(unsafe.Pointer(&bytes.Clone(libc.GoBytes(methods, int(unsafe.Sizeof(s.file))))[0]))
		own := s.file
		own.FxWrite, own.FxClose = *(*uintptr)(unsafe.Pointer(&s.write)), *(*uintptr)(unsafe.Pointer(&s.close))
		var err error
		if s.methods, err = inC(&own); err != nil {
			return sqlite3.SQLITE_NOMEM // SQLite closes the file, since it has methods
		}
	}
	writePointer(at, s.methods)
	s.files[file] = 0
	return rc
}

func (s *spill) xWrite(tls *libc.TLS, file, from uintptr, n int32, at int64) int32 {
	if grown := at + int64(n) - s.files[file]; grown > 0 {
		if s.used+grown > s.limit {
			s.full = true
			return sqlite3.SQLITE_FULL
		}
		s.used += grown
		s.files[file] += grown
	}
	return function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](s.file.FxWrite)(tls, file, from, n, at)
}

func (s *spill) xClose(tls *libc.TLS, file uintptr) int32 {
	s.used -= s.files[file]
	delete(s.files, file)
	return function[func(*libc.TLS, uintptr) int32](s.file.FxClose)(tls, file)
}

// readPointer reads an address of C's memory.
func readPointer(b []byte) uintptr {
	if len(b) == 4 {
		return uintptr(binary.NativeEndian.Uint32(b))
	}
	return uintptr(binary.NativeEndian.Uint64(b))
}

func writePointer(b []byte, v uintptr) {
	if len(b) == 4 {
		binary.NativeEndian.PutUint32(b, uint32(v))
		return
	}
	binary.NativeEndian.PutUint64(b, uint64(v))
}

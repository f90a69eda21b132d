package table

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// spill is an SQLite VFS: the VFS of the system with a limit on the bytes of temporary files. SQLite sorts and joins in
// temporary files and does not limit them. Each connection has its own spill with a unique name.
type spill struct {
	tls   *libc.TLS
	limit int64             // bytes of all temporary files
	used  int64             // bytes in use
	files map[uintptr]int64 // the size of each file by its handle
	full  bool              // the limit was reached

	// Addresses in C memory: the VFS, its name, the methods of its temporary files (0 before the first file), and the
	// system's VFS.
	vfs, name, methods, below uintptr
	origin                    sqlite3.Tsqlite3_vfs
	file                      sqlite3.Tsqlite3_io_methods // the file methods of the system's VFS

	open  func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	write func(tls *libc.TLS, file, from uintptr, n int32, at int64) int32
	close func(tls *libc.TLS, file uintptr) int32
}

// systemVFS is the system's VFS. It is copied once, before the first spill is registered, because SQLite links all VFS
// in a list, and each registration changes this list.
var systemVFS struct {
	once   sync.Once
	at     uintptr
	origin sqlite3.Tsqlite3_vfs
}

// newSpill registers a VFS; [spill.drop] unregisters it.
func newSpill(tls *libc.TLS, limit int64) (*spill, error) {
	system := &systemVFS
	system.once.Do(func() {
		system.at = sqlite3.Xsqlite3_vfs_find(tls, 0)
		raw := bytes.Clone(libc.GoBytes(system.at, int(unsafe.Sizeof(system.origin))))
		system.origin = *(*sqlite3.Tsqlite3_vfs)(unsafe.Pointer(&raw[0]))
	})
	s := &spill{tls: tls, limit: limit, files: map[uintptr]int64{}, below: system.at, origin: system.origin}
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

// drop unregisters the VFS. The connection must be closed.
func (s *spill) drop() {
	sqlite3.Xsqlite3_vfs_unregister(s.tls, s.vfs)
	for _, p := range []uintptr{s.vfs, s.name, s.methods} {
		libc.Xfree(s.tls, p)
	}
}

// inC copies a struct to C memory.
func inC[T any](v *T) (uintptr, error) {
	return libc.CString(unsafe.String((*byte)(unsafe.Pointer(v)), int(unsafe.Sizeof(*v))))
}

// function converts the address of a C function to a Go function.
func function[F any](at uintptr) F {
	return *(*F)(unsafe.Pointer(&struct{ at uintptr }{at}))
}

const temporaryFile = sqlite3.SQLITE_OPEN_TEMP_DB | sqlite3.SQLITE_OPEN_TRANSIENT_DB |
	sqlite3.SQLITE_OPEN_TEMP_JOURNAL | sqlite3.SQLITE_OPEN_SUBJOURNAL

func (s *spill) xOpen(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	systemOpen := function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](s.origin.FxOpen)
	rc := systemOpen(tls, s.below, name, file, flags, out)
	if rc != sqlite3.SQLITE_OK || flags&temporaryFile == 0 {
		return rc
	}
	at := libc.GoBytes(file, int(unsafe.Sizeof(file))) // an open file starts with the address of its methods
	if s.methods == 0 {
		methods := readPointer(at)
		raw := bytes.Clone(libc.GoBytes(methods, int(unsafe.Sizeof(s.file))))
		s.file = *(*sqlite3.Tsqlite3_io_methods)(unsafe.Pointer(&raw[0]))
		own := s.file
		own.FxWrite, own.FxClose = *(*uintptr)(unsafe.Pointer(&s.write)), *(*uintptr)(unsafe.Pointer(&s.close))
		var err error
		if s.methods, err = inC(&own); err != nil {
			return sqlite3.SQLITE_NOMEM // SQLite closes the file, because it has methods
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
	systemWrite := function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](s.file.FxWrite)
	return systemWrite(tls, file, from, n, at)
}

func (s *spill) xClose(tls *libc.TLS, file uintptr) int32 {
	s.used -= s.files[file]
	delete(s.files, file)
	return function[func(*libc.TLS, uintptr) int32](s.file.FxClose)(tls, file)
}

// readPointer reads an address from C memory.
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

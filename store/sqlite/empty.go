package sqlite

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// packedEmpty is an empty store with all migrations, in the form of pack. A new store begins as a copy of it, because
// creating the tables one after another takes a tenth of the time of a short run. A test compares it with the
// migrations. Of its 190 kB, 7 are not zero, so the program does not carry it as it is.
//
//go:embed empty.packed
var packedEmpty []byte

// emptyStore returns the file of an empty store.
func emptyStore() []byte {
	file, err := unpack(packedEmpty)
	if err != nil {
		panic(err) // it is embedded
	}
	return file
}

// minZeros is the shortest run of zeros that pack leaves out.
const minZeros = 4

// pack encodes a file as pieces: the number of zeros before the piece, its length (both as unsigned varints), and its
// bytes.
func pack(file []byte) []byte {
	var packed []byte
	for len(file) > 0 {
		zeros := len(file) - len(bytes.TrimLeft(file, "\x00"))
		piece := file[zeros:]
		if i := bytes.Index(piece, make([]byte, minZeros)); i >= 0 {
			piece = piece[:i]
		}
		packed = binary.AppendUvarint(packed, uint64(zeros))
		packed = append(binary.AppendUvarint(packed, uint64(len(piece))), piece...)
		file = file[zeros+len(piece):]
	}
	return packed
}

// maxUnpacked bounds the result of unpack, in bytes.
const maxUnpacked = 1 << 20

// unpack decodes what pack encoded.
func unpack(packed []byte) ([]byte, error) {
	file := make([]byte, 0, 32*len(packed)) // an empty store has 27 times its packed size
	for len(packed) > 0 {
		zeros, n := binary.Uvarint(packed)
		packed = packed[max(n, 0):]
		length, m := binary.Uvarint(packed)
		packed = packed[max(m, 0):]
		if n <= 0 || m <= 0 || zeros > maxUnpacked || length > uint64(len(packed)) ||
			uint64(len(file))+zeros+length > maxUnpacked {
			return nil, errors.New("the packed file is damaged")
		}
		file = append(append(file, make([]byte, zeros)...), packed[:length]...)
		packed = packed[length:]
	}
	return file, nil
}

// makeFile creates the file of a store, as a whole or not at all, even if several processes do so at once. full says
// that the file may begin as a copy of the empty store. Otherwise, or if the file system does not support that, it is
// an empty file that the migrations fill. The file's mode does not depend on the umask; SQLite uses the same mode for
// -wal and -shm.
func makeFile(path string, full bool) error {
	if err := checkRemains(path); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if full {
		err := linkEmpty(path)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return nil
		}
		// The file system has no links, or the disk is full: the next call reports it.
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return f.Close()
}

// linkEmpty writes an empty store under a temporary name and then links it to its own name. SQLite syncs the folder
// before the first commit ends, so the name need not be synced before.
func linkEmpty(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(emptyStore())
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Link(f.Name(), path)
	}
	_ = os.Remove(f.Name()) // if it stays, it does no harm
	return err
}

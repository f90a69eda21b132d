package signed

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/privatefile"
)

// maxKeyFile bounds the file of a key, in bytes.
const maxKeyFile = 4096

// ReadKeyFile reads the key in a file. Errors: fs.ErrNotExist, store (others can read the file, or it is damaged).
func ReadKeyFile(path string) (*Key, error) {
	text, err := privatefile.Read(path, maxKeyFile)
	var refused *privatefile.Refused
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fs.ErrNotExist
	case errors.As(err, &refused):
		return nil, tenon.Errorf(tenon.CodeStore, "the key of your stores is not used: %w; "+
			"if somebody else may have read it, remove it, and adopt your stores again with 'tenon store adopt'", err)
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeStore, "the key of your stores cannot be read: %w", err)
	}
	return ParseKeyFile(path, text)
}

// ParseKeyFile returns the key in the text of a file. The path is for the error, of code store, about a damaged file.
func ParseKeyFile(path string, text []byte) (*Key, error) {
	raw, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(raw) < MinSecret {
		return nil, tenon.Errorf(tenon.CodeStore, "the key of your stores in %s is damaged; "+
			"put a backup of it back, or remove it, and adopt your stores again with 'tenon store adopt'", path)
	}
	return NewKey(raw)
}

// CreateKeyFile creates a file with a random key, mode 0600. It keeps a file that exists, such as one of a process that
// was faster.
func CreateKeyFile(path string) error {
	raw := make([]byte, MinSecret)
	_, _ = rand.Read(raw)                                 // never fails
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(hex.EncodeToString(raw) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		err = renameNew(f.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// renameNew replaces os.Link on file systems without links. If two processes create a key at the same moment, the rows
// of one of them become foreign.
func renameNew(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

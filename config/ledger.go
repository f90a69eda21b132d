package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/tenonhq/tenon"
)

// ledger contains the digests of the files from which a configuration was read. A person agrees to these digests, so
// every later use of a file must be a use of the same bytes: small files are read once and kept, and larger ones are
// compared when they are read again.
type ledger struct {
	mu   sync.Mutex
	sums map[string]fileSum // by absolute path
	kept int64              // bytes in sums
	// commands contains the files that each command loaded at the first look, by the path of the command.
	commands map[string][]string
	// outputs contains files of commands that are compared only because an argument names them, by command and path.
	// The command may write them.
	outputs map[[2]string]bool
}

// fileSum is the version of a file at the first look.
type fileSum struct {
	digest string // "" if there was no file
	size   int64
	data   []byte // nil if the bytes are not kept
}

// The maximum number of bytes that a ledger keeps: of all files together, and of a single file. Only digests are kept
// of larger files.
const (
	maxLedger = 64 << 20
	maxSmall  = 1 << 20
)

func newLedger() *ledger {
	return &ledger{sums: map[string]fileSum{}, commands: map[string][]string{}, outputs: map[[2]string]bool{}}
}

// read returns the bytes of a file of at most limit bytes: the bytes of the first read, if they were kept. A nil
// ledger always reads the file. The error has code denied if the file has changed since the first read.
func (l *ledger) read(path string, limit int64) ([]byte, error) {
	if l == nil {
		return readFile(path, limit)
	}
	l.mu.Lock()
	s, known := l.sums[path]
	l.mu.Unlock()
	if known && s.data != nil && int64(len(s.data)) <= limit {
		return bytes.Clone(s.data), nil
	}
	b, err := readFile(path, limit)
	if err != nil {
		return nil, err
	}
	return b, l.meet(path, b, true)
}

// meet records the bytes of a file, or compares them with the first read.
func (l *ledger) meet(path string, data []byte, keep bool) error {
	s := sumOf(data)
	if keep {
		s.data = data
	}
	return l.note(path, s)
}

func sumOf(data []byte) fileSum {
	sum := sha256.Sum256(data)
	return fileSum{digest: hex.EncodeToString(sum[:]), size: int64(len(data))}
}

// note records the digest of a file, or compares it with the digest of the first read.
func (l *ledger) note(path string, s fileSum) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	was, known := l.sums[path]
	switch {
	case known && (was.digest != s.digest || was.size != s.size):
		return changed(path, was)
	case known:
		return nil
	}
	if l.kept += int64(len(s.data)); l.kept > maxLedger {
		l.kept -= int64(len(s.data))
		s.data = nil
	} else if s.data != nil {
		s.data = bytes.Clone(s.data)
	}
	l.sums[path] = s
	return nil
}

// changed returns the error for a file that differs from its first version.
func changed(path string, was fileSum) error {
	if was.digest == "" {
		return tenon.Errorf(tenon.CodeDenied, "%s is new: it was not there when the configuration was read; run "+
			"tenon again to see the difference", path)
	}
	return tenon.Errorf(tenon.CodeDenied, "%s was changed since the configuration was read; run tenon again to see "+
		"the difference", path)
}

// look returns the digest of a file at its first look, which may be this one. A file that did not exist at its first
// look has an empty digest, even if it exists now.
func (l *ledger) look(path string, most int64) (fileSum, error) {
	l.mu.Lock()
	s, known := l.sums[path]
	l.mu.Unlock()
	if known {
		return s, nil
	}
	s, err := digestOf(path, most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s = fileSum{}
	case err != nil:
		return s, err
	case s.size <= maxSmall: // kept for later use
		b, err := readFile(path, maxSmall)
		if err != nil {
			return s, err
		}
		s = sumOf(b)
		s.data = b
	}
	return s, l.note(path, s)
}

// check compares the current file with its first version.
func (l *ledger) check(path string, most int64) error {
	s, err := digestOf(path, most)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tenon.Errorf(tenon.CodeDenied, "%s cannot be compared with what was agreed to: %s", path, reason(err))
	}
	return l.note(path, s)
}

// digestOf reads a regular file of at most most bytes, through one file handle.
func digestOf(path string, most int64) (fileSum, error) {
	if st, err := os.Stat(path); err != nil {
		return fileSum{}, err
	} else if !st.Mode().IsRegular() { // opening a pipe would block
		return fileSum{}, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return fileSum{}, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, most+1))
	if err == nil && n > most {
		err = tenon.Errorf(tenon.CodeTooLarge, "%s has more than %d MiB", filepath.Base(path), most>>20)
	}
	return fileSum{digest: hex.EncodeToString(sum.Sum(nil)), size: n}, err
}

// Knows reports whether the configuration has looked for a file, whether or not it existed.
func (c *Config) Knows(path string) bool {
	if c.files == nil {
		return false
	}
	c.files.mu.Lock()
	defer c.files.mu.Unlock()
	_, known := c.files.sums[path]
	return known
}

// ReadFile returns the bytes of a file that the configuration names, of at most limit bytes. They are the bytes with
// which the configuration was checked. The error has code denied if the file has changed since; other errors come
// from the file system.
func (c *Config) ReadFile(path string, limit int64) ([]byte, error) { return c.files.read(path, limit) }

// snapshot returns a copy of the ledger's files, or nil for a nil ledger.
func (l *ledger) snapshot() map[string]fileSum {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.sums)
}

// clone returns a copy of a ledger.
func (l *ledger) clone() *ledger {
	out := newLedger()
	if l == nil {
		return out
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out.sums, out.commands, out.kept = maps.Clone(l.sums), maps.Clone(l.commands), l.kept
	out.outputs = maps.Clone(l.outputs)
	return out
}

// String returns the size and digest of a file, or "" if there was no file.
func (s fileSum) String() string {
	if s.digest == "" {
		return ""
	}
	return fmt.Sprintf("%d bytes, sha256:%s", s.size, s.digest)
}

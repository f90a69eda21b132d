// Package signed computes the MACs by which a store knows its user's own rows.
//
// A store is a file that others may have written; a project folder may contain one. Therefore each row that can cause
// an effect has an HMAC-SHA256 under a key that only the user has: journals, grants, signals, pins and kept results.
// A row without a valid MAC is foreign and has no effect until the user adopts the store.
//
//	store/sqlite ─► Key.Event(run, seq, …) ─► MAC ─► column mac
//
// The input of each MAC begins with the kind of the row, and names what makes the row
// unique, so that a row cannot be moved to another run, session or principal. Every
// field is written with its length. Blobs are stored by digest and need no MAC.
//
// Package host decides where the key is kept. A MAC does not show that an older row
// was put back. The ledger of store/sqlite, outside of the store, does.
package signed

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"

	"github.com/tenonhq/tenon"
)

// Size is the length of a MAC in bytes.
const Size = sha256.Size

// MinSecret is the least length of a secret in bytes.
const MinSecret = 32

// Key signs rows and checks them. It is safe for concurrent use. The nil key signs
// nothing and accepts every row: it is for stores that only their own program reaches.
type Key struct {
	secret []byte
	pool   sync.Pool // of *mac
}

// NewKey derives the key of a store from a secret. Errors: invalid (the secret is
// shorter than [MinSecret]).
func NewKey(secret []byte) (*Key, error) {
	if len(secret) < MinSecret {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the key of a store needs at least %d characters, and has %d",
			MinSecret, len(secret))
	}
	derived, err := hkdf.Key(sha256.New, secret, nil, "tenon store rows 1", sha256.Size)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "the key of the store cannot be derived: %w", err)
	}
	return &Key{secret: derived}, nil
}

// RandomKey returns a key that nobody else has. Rows that it signs are foreign to every
// later process.
func RandomKey() *Key {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails
	return &Key{secret: secret}
}

// Derive returns a key of 32 bytes for a purpose other than rows. It does not reveal the key of the rows, nor the keys
// of other purposes. It is nil if k is nil.
func (k *Key) Derive(purpose string) []byte {
	if k == nil {
		return nil
	}
	derived, err := hkdf.Expand(sha256.New, k.secret, "tenon "+purpose+" 1", sha256.Size)
	if err != nil {
		return nil // never: the length is far below the limit
	}
	return derived
}

// mac is one computation.
type mac struct {
	hash.Hash
	buf []byte
}

// begin starts the MAC of a row of some kind.
func (k *Key) begin(kind string) *mac {
	m, _ := k.pool.Get().(*mac)
	if m == nil {
		m = &mac{Hash: hmac.New(sha256.New, k.secret)}
	}
	m.Reset()
	m.text(kind)
	return m
}

// text adds a field of any length.
func (m *mac) text(s string) {
	m.buf = binary.BigEndian.AppendUint64(m.buf[:0], uint64(len(s)))
	m.buf = append(m.buf, s...)
	_, _ = m.Write(m.buf) // a hash never fails
}

// bytes adds a field of any length.
func (m *mac) bytes(b []byte) {
	m.buf = binary.BigEndian.AppendUint64(m.buf[:0], uint64(len(b)))
	_, _ = m.Write(m.buf)
	_, _ = m.Write(b)
}

// number adds a field of 8 bytes.
func (m *mac) number(n int64) {
	m.buf = binary.BigEndian.AppendUint64(m.buf[:0], uint64(n))
	_, _ = m.Write(m.buf)
}

// sum ends a MAC and appends it to b.
func (k *Key) sum(m *mac, b []byte) []byte {
	b = m.Sum(b)
	if cap(m.buf) > maxKept {
		m.buf = nil
	}
	k.pool.Put(m)
	return b
}

// maxKept bounds the room that a computation keeps for the next one, in bytes.
const maxKept = 64 << 10

// is reports whether a stored MAC is the one that was computed.
func is(stored, computed []byte) bool { return len(stored) == Size && hmac.Equal(stored, computed) }

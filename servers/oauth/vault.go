package oauth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/filelock"
)

// Keyring is the secret store of the operating system.
type Keyring interface {
	// Get returns a value, or "" if there is none. An error means that no keyring is available.
	Get(service, user string) (string, error)
	Set(service, user, value string) error
}

// The entry of the keyring that contains the key of the vault.
const (
	keyService = "tenon"
	keyUser    = "tokens"
)

// Vault keeps tokens in files of a folder, each encrypted with AES-256-GCM and bound to its server. The key is in the
// system's keyring or, if there is none, in a file in the same folder that only the owner can read. Any number of
// processes can use the same vault.
type Vault struct {
	dir  string
	ring Keyring

	mu   sync.Mutex
	keys map[string][]byte // by place: keyInRing or keyInFile
}

// The places of the key.
const (
	keyInRing = "keyring"
	keyInFile = "file"
)

// NewVault returns the vault in a folder, which is created when the first value is stored. ring is nil if there is no
// keyring.
func NewVault(dir string, ring Keyring) *Vault {
	return &Vault{dir: dir, ring: ring, keys: map[string][]byte{}}
}

// envelope is the content of a file of the vault.
type envelope struct {
	Version int    `json:"version"`
	Key     string `json:"key"` // the place of the key
	Nonce   []byte `json:"nonce"`
	Data    []byte `json:"data"`
}

const maxVaultFile = 1 << 20

func (v *Vault) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(v.dir, hex.EncodeToString(sum[:16])+".json")
}

// load reads the value of a key into t. If there is none, t is unchanged.
func (v *Vault) load(_ context.Context, key string, t *saved) error {
	b, err := readBounded(v.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "the kept sign-in cannot be read: %w", err)
	}
	var e envelope
	if json.Unmarshal(b, &e) != nil || e.Version != 1 {
		return tenon.Errorf(tenon.CodeStore,
			"%s is no kept sign-in of this version of tenon; sign in again after deleting it", v.path(key))
	}
	secret, err := v.key(e.Key, false)
	if err != nil {
		return err
	}
	plain, err := open(secret, e.Nonce, e.Data, key)
	if err != nil || json.Unmarshal(plain, t) != nil {
		return tenon.Errorf(tenon.CodeAuth,
			"the kept sign-in cannot be decrypted, as its key has changed; log out and sign in again")
	}
	return nil
}

// save stores t under a key.
func (v *Vault) save(_ context.Context, key string, t *saved) error {
	plain, err := json.Marshal(t)
	if err != nil {
		return tenon.Errorf(tenon.CodeInternal, "a sign-in cannot be written: %w", err)
	}
	b, err := v.Seal(plain, key)
	if err != nil {
		return err
	}
	if err := replace(v.path(key), append(b, '\n')); err != nil {
		return tenon.Errorf(tenon.CodeStore, "the sign-in cannot be kept: %w", err)
	}
	return nil
}

// Seal encrypts plain with the key of the vault, which it creates if there is none. The result is a JSON object that
// only opens with the same bound, the name of the place to which it belongs. Errors: store, auth_required (the key
// cannot be read).
func (v *Vault) Seal(plain []byte, bound string) ([]byte, error) {
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "there is no place for the key: %w", err)
	}
	where := keyInRing
	secret, err := v.key(keyInRing, true)
	if err != nil {
		where = keyInFile
		if secret, err = v.key(keyInFile, true); err != nil {
			return nil, err
		}
	}
	e := envelope{Version: 1, Key: where, Nonce: make([]byte, 12)}
	_, _ = rand.Read(e.Nonce) // never fails
	box, err := seal(secret)
	if err != nil {
		return nil, err
	}
	e.Data = box.Seal(nil, e.Nonce, plain, []byte(bound))
	b, err := json.Marshal(e)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "what was encrypted cannot be written: %w", err)
	}
	return b, nil
}

// Open decrypts the result of Seal. Errors: auth_required (the key is missing, unreadable or a different one, or
// bound differs), store.
func (v *Vault) Open(sealed []byte, bound string) ([]byte, error) {
	var e envelope
	if json.Unmarshal(sealed, &e) != nil || e.Version != 1 {
		return nil, tenon.Errorf(tenon.CodeStore, "what was encrypted is damaged, or of another version of tenon")
	}
	secret, err := v.key(e.Key, false)
	if err != nil {
		return nil, err
	}
	plain, err := open(secret, e.Nonce, e.Data, bound)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeAuth,
			"what was encrypted cannot be decrypted: its key has changed, or it was moved")
	}
	return plain, nil
}

// remove deletes the value of a key.
func (v *Vault) remove(key string) error {
	if err := os.Remove(v.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tenon.Errorf(tenon.CodeStore, "the kept sign-in cannot be deleted: %w", err)
	}
	return nil
}

// key returns the key of the vault. If make is true, it creates a missing key.
func (v *Vault) key(where string, make bool) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if k := v.keys[where]; k != nil {
		return k, nil
	}
	k, err := v.readKey(where, make)
	if err == nil {
		v.keys[where] = k
	}
	return k, err
}

func (v *Vault) readKey(where string, create bool) ([]byte, error) {
	fresh := make([]byte, 32)
	_, _ = rand.Read(fresh)
	file := filepath.Join(v.dir, "key")
	var text string
	var err error
	if where == keyInRing {
		if v.ring == nil {
			return nil, tenon.Errorf(tenon.CodeAuth,
				"the key of the kept sign-in lies in the system's keyring, which cannot be reached here; log out and "+
					"sign in again")
		}
		if text, err = v.ring.Get(keyService, keyUser); err == nil && text == "" && create {
			text, err = v.makeRingKey(hex.EncodeToString(fresh))
		}
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeAuth,
				"the key of the kept sign-in lies in the system's keyring, which cannot be used: %w", err)
		}
	} else {
		var b []byte
		b, err = readBounded(file)
		if errors.Is(err, fs.ErrNotExist) && create {
			// A hard link creates the file, so that only one of two processes makes the key.
			if err = firstOf(file, []byte(hex.EncodeToString(fresh))); err == nil {
				b, err = readBounded(file)
			}
		}
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeStore,
				"the key of the kept sign-in cannot be read: %w; log out and sign in again", err)
		}
		text = string(b)
	}
	k, err := hex.DecodeString(text)
	if err != nil || len(k) != 32 {
		return nil, tenon.Errorf(tenon.CodeAuth,
			"the key of the kept sign-in is gone or damaged; log out and sign in again")
	}
	return k, nil
}

// ringPatience is how long another process may take to create the key. The keyring may ask a person first.
const ringPatience = time.Minute

// makeRingKey stores a key in the keyring, unless another process has done so in the meantime, and returns the key
// that is then stored.
func (v *Vault) makeRingKey(fresh string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ringPatience)
	defer cancel()
	unlock, err := filelock.Folder(ctx, v.dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	text, err := v.ring.Get(keyService, keyUser)
	if err != nil || text != "" {
		return text, err
	}
	return fresh, v.ring.Set(keyService, keyUser, fresh)
}

func seal(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "no cipher: %w", err) // keys have 32 bytes
	}
	return cipher.NewGCM(block)
}

func open(key, nonce, data []byte, bound string) ([]byte, error) {
	box, err := seal(key)
	if err != nil {
		return nil, err
	}
	if len(nonce) != box.NonceSize() {
		return nil, errors.New("no nonce")
	}
	return box.Open(nil, nonce, data, []byte(bound))
}

func readBounded(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Size() > maxVaultFile {
		return nil, errors.New(path + " is too large")
	}
	return os.ReadFile(path)
}

// temporary writes a temporary file, readable only by the owner, into the folder of path.
func temporary(path string, b []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	e := f.Sync()
	if err == nil {
		err = e
	}
	e = f.Close()
	if err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return f.Name(), err
}

// replace writes a file as a whole or not at all.
func replace(path string, b []byte) error {
	tmp, err := temporary(path, b)
	if err != nil {
		return err
	}
	if err = os.Rename(tmp, path); err != nil {
		_ = os.Remove(tmp)
	}
	return err
}

// firstOf writes a file unless it exists.
func firstOf(path string, b []byte) error {
	tmp, err := temporary(path, b)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp) }()
	if err = os.Link(tmp, path); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// lock prevents other processes from changing the value of a key, so that a refresh token that is valid once is used
// by only one process. The operating system releases the lock when the process dies.
func (v *Vault) lock(ctx context.Context, key string) (unlock func(), err error) {
	if _, err := os.Stat(v.dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(v.dir, 0o700); err != nil {
			return nil, tenon.Errorf(tenon.CodeStore, "there is no place to keep the sign-in: %w", err)
		}
	}
	f, err := os.OpenFile(v.path(key)+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "the kept sign-in cannot be locked: %w", err)
	}
	if unlock, err = filelock.File(ctx, f); err != nil && ctx.Err() == nil {
		err = tenon.Errorf(tenon.CodeStore, "the kept sign-in cannot be locked: %w", err)
	}
	return unlock, err
}

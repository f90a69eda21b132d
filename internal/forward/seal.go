package forward

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// Header is the header with the sealed request, and in the answer with the owner's proof.
const Header = "Tenon-Forwarded"

const (
	// maxSealed bounds the sealed header in bytes. The bound of all headers of a request is higher; see [http.Server].
	maxSealed = 62 << 10
	// version is authenticated with each sealed request. Processes whose versions differ do not understand each other.
	version = "tenon forward 1"
)

// keys are derived from the key of the store.
type keys struct {
	sealing  cipher.AEAD
	sessions []byte // for the ids of sessions
	proofs   []byte // for the answers of owners
}

// newKeys returns nil if the store has no key.
func newKeys(derive func(purpose string) []byte) (*keys, error) {
	sealing := derive("forwarded requests")
	if sealing == nil {
		return nil, nil
	}
	block, err := aes.NewCipher(sealing)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &keys{sealing: aead, sessions: derive("sessions of replicas"), proofs: derive("forwarded answers")}, nil
}

// request is what a sealed header contains.
type request struct {
	To     string          // id of the owner
	Who    tenon.Principal // whom the first replica authenticated
	Method string
	URI    string // path and query
	Host   string
	Header http.Header
	Body   []byte    // SHA-256
	At     time.Time // when it was sealed
}

// seal encrypts a request, which has its time. nonce identifies it in the proof.
func (k *keys) seal(r *request) (sealed string, nonce []byte, err error) {
	plain, err := json.Marshal(r)
	if err != nil {
		return "", nil, err
	}
	nonce = make([]byte, k.sealing.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	sealed = base64.RawURLEncoding.EncodeToString(k.sealing.Seal(nonce, nonce, plain, []byte(version)))
	return sealed, nonce, nil
}

// open decrypts a request. ok is false if it was not sealed under this key, or was changed.
func (k *keys) open(sealed string) (r *request, nonce []byte, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(b) < k.sealing.NonceSize() {
		return nil, nil, false
	}
	nonce, b = b[:k.sealing.NonceSize()], b[k.sealing.NonceSize():]
	plain, err := k.sealing.Open(nil, nonce, b, []byte(version))
	if err != nil {
		return nil, nil, false
	}
	r = &request{}
	return r, nonce, json.Unmarshal(plain, r) == nil
}

// proof shows that an owner has opened the request with the nonce.
func (k *keys) proof(owner string, nonce []byte) string {
	return mac(k.proofs, owner, string(nonce))
}

// sessionID returns a new id for a session of a process.
func (k *keys) sessionID(self string, who tenon.Principal, endpoint string) string {
	id := tenon.NewID("mcp", time.Now())
	return id + "." + self + "." + mac(k.sessions, id, self, string(who), endpoint)
}

// owner returns the process that an id of a session names. ok is false if no process made this id for the principal and
// the endpoint.
func (k *keys) owner(session string, who tenon.Principal, endpoint string) (id string, ok bool) {
	parts := strings.Split(session, ".")
	if len(parts) != 3 {
		return "", false
	}
	want := mac(k.sessions, parts[0], parts[1], string(who), endpoint)
	return parts[1], hmac.Equal([]byte(parts[2]), []byte(want))
}

// mac is computed over texts with their lengths.
func mac(key []byte, texts ...string) string {
	h := hmac.New(sha256.New, key)
	for _, t := range texts {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(t)))) // a hash never fails
		_, _ = h.Write([]byte(t))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

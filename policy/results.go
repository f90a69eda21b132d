package policy

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
)

// The limits of the results in memory. The store keeps results that several runs share.
const (
	maxKept      = 1024
	maxKeptBytes = 32 << 20
)

// Results caches the results of tools for equal calls. It keeps the most recently used ones. The zero value is ready.
// It is safe for concurrent use.
type Results struct {
	mu      sync.Mutex
	entries map[string]*list.Element // of *Kept
	used    list.List                // the last used first
	bytes   int
	flights map[string]chan struct{} // calls under way whose results will be kept; closed at their end
}

// Kept is one result.
type Kept struct {
	Key       string // see [SameCall]
	Session   string // of the run that made the call
	Run, Step string // of the call
	Expires   time.Time
	Result    *tenon.Result
	Bytes     int // that it takes
}

// Find returns a result that has not expired, or the end of a call under way that
// may bring one, or neither: then the caller makes the call, and lands it.
func (c *Results) Find(key string, now time.Time) (k *Kept, wait <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil {
		if k := e.Value.(*Kept); now.Before(k.Expires) {
			c.used.MoveToFront(e)
			return k, nil
		}
		c.remove(e)
	}
	if f := c.flights[key]; f != nil {
		return nil, f
	}
	if c.flights == nil {
		c.flights = map[string]chan struct{}{}
	}
	c.flights[key] = make(chan struct{})
	return nil, nil
}

// Land says that the call that Find left to the caller has ended.
func (c *Results) Land(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[key]; f != nil {
		close(f)
		delete(c.flights, key)
	}
}

// Put keeps a result, in place of one of the same key.
func (c *Results) Put(k *Kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[string]*list.Element{}
	}
	if e := c.entries[k.Key]; e != nil {
		c.remove(e)
	}
	c.entries[k.Key] = c.used.PushFront(k)
	for c.bytes += k.Bytes; c.bytes > maxKeptBytes || c.used.Len() > maxKept; {
		c.remove(c.used.Back())
	}
}

func (c *Results) remove(e *list.Element) {
	k := c.used.Remove(e).(*Kept)
	delete(c.entries, k.Key)
	c.bytes -= k.Bytes
}

// Forget drops what came from a session that was deleted.
func (c *Results) Forget(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.used.Front(); e != nil; {
		next := e.Next()
		if e.Value.(*Kept).Session == session {
			c.remove(e)
		}
		e = next
	}
}

// SameCall is what two calls have in common that may have one result.
type SameCall struct {
	Scope, Owner   string // which calls share it: a run's, a session's, the project's
	Principal      string
	Access         string // to the server as it is configured
	Server, Remote string
	Output         string // the digest of the tool's output schema, which kept results fit
	Arguments      json.RawMessage
}

// Key identifies the call. Errors: invalid (the arguments are no JSON).
func (c *SameCall) Key() (string, error) {
	args, err := Canonical(c.Arguments)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, part := range []string{c.Scope, c.Owner, c.Principal, c.Access, c.Server, c.Remote, c.Output} {
		// No name holds a zero byte, so that a part is never a prefix of another's.
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	sum.Write(args)
	// The rune may replace different invalid bytes, so the arguments may differ.
	if bytes.ContainsRune(args, utf8.RuneError) {
		sum.Write([]byte{0})
		sum.Write(c.Arguments)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

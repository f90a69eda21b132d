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

// Results caches the results of tools for equal calls. It keeps the most recently used results. The zero value is
// ready to use. Results is safe for concurrent use.
type Results struct {
	mu      sync.Mutex
	entries map[string]*list.Element // of *Kept
	used    list.List                // the most recently used first
	bytes   int
	flights map[string]chan struct{} // running calls whose results will be kept; closed at their end
}

// Kept is one result.
type Kept struct {
	Key       string // see [SameCall]
	Session   string // session of the run that made the call
	Run, Step string // of the call
	Expires   time.Time
	Result    *tenon.Result
	Bytes     int // size in memory
}

// Find returns a result that has not expired. Otherwise, if an equal call is running, it returns a channel that is
// closed when that call ends. Otherwise it returns neither; the caller must then make the call, and call Land.
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

// Land reports that a call ended for which Find returned neither a result nor a channel.
func (c *Results) Land(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[key]; f != nil {
		close(f)
		delete(c.flights, key)
	}
}

// Put keeps a result. It replaces a result with the same key.
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

// Forget drops the results of a session that was deleted.
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

// SameCall contains the values that must be equal in two calls if one result can serve both.
type SameCall struct {
	Scope, Owner   string // which calls share the result: a run's, a session's, or the project's
	Principal      string
	Access         string // digest of how the server is reached
	Server, Remote string
	Output         string // digest of the tool's output schema, which kept results fit
	Arguments      json.RawMessage
}

// Key returns the key of the call in the cache. Errors: invalid (the arguments are not JSON).
func (c *SameCall) Key() (string, error) {
	args, err := Canonical(c.Arguments)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, part := range []string{c.Scope, c.Owner, c.Principal, c.Access, c.Server, c.Remote, c.Output} {
		// Names contain no zero byte, so that no part can run into the next one.
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	sum.Write(args)
	// This rune may have replaced different invalid bytes. Different arguments would then have the same key.
	if bytes.ContainsRune(args, utf8.RuneError) {
		sum.Write([]byte{0})
		sum.Write(c.Arguments)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

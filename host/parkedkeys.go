package host

import (
	"context"
	"strings"
	"sync"
	"time"
)

const (
	// parkedFresh is how long the keys of parked calls that were read from the store count as all keys. A call that
	// another process parks is joined after this time at the latest. So a busy gateway asks the store 50 times a
	// second, and not for each call.
	parkedFresh = 20 * time.Millisecond
	// maxParkedKeys bounds the keys in memory. If there are more, the store is asked for each call.
	maxParkedKeys = 4096
)

// parkedKeys contains the keys of the parked calls in the store, as they were a moment ago, and the keys that this host
// has parked since. The zero value knows nothing.
type parkedKeys struct {
	mu      sync.Mutex
	keys    map[string]struct{} // nil: not known
	read    time.Time           // when the store was asked
	reading bool
	parked  int // calls that this host has parked
}

// isFree reports whether no call with a key is parked. If it returns false, the store has to be asked for the key.
func (k *parkedKeys) isFree(ctx context.Context, h *Host, key string) bool {
	k.mu.Lock()
	if k.keys != nil && time.Since(k.read) < parkedFresh {
		_, there := k.keys[key]
		k.mu.Unlock()
		return !there
	}
	if k.reading {
		k.mu.Unlock()
		return false
	}
	k.reading = true
	parked := k.parked
	k.mu.Unlock()
	began := time.Now()
	list, err := h.store.ResultKeys(ctx, parkedScope, h.now(), maxParkedKeys+1)
	keys := make(map[string]struct{}, len(list))
	for _, full := range list {
		keys[strings.TrimPrefix(full, parkedScope)] = struct{}{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reading = false
	if err != nil || len(list) > maxParkedKeys || parked != k.parked {
		k.keys = nil // the keys that were read may lack one
		return false
	}
	k.keys, k.read = keys, began
	_, there := keys[key]
	return !there
}

// add records that this host parked a call.
func (k *parkedKeys) add(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.parked++
	if k.keys != nil {
		k.keys[key] = struct{}{}
	}
}

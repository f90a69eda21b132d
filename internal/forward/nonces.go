package forward

import (
	"sync"
	"time"
)

const (
	// window is the maximum difference between the clocks of two replicas, with the time that a request is under way.
	window = 30 * time.Second
	// maxNonces bounds the requests that a process opens within two windows.
	maxNonces = 1 << 18
)

// nonces remembers which sealed requests were opened, so that none is opened twice. A request is valid for at most two
// windows after it arrives: it may be sealed one window ahead, and be one window old. A nonce is remembered for that
// time at least.
type nonces struct {
	mu        sync.Mutex
	began     time.Time // when new was begun
	new, last map[string]struct{}
}

// isTimely reports whether a request that was sealed at a time may be opened now.
func isTimely(sealed, now time.Time) bool {
	age := now.Sub(sealed)
	return -window <= age && age <= window
}

// add remembers a nonce. fresh is false if it was seen before. full is true if no more can be remembered.
func (n *nonces) add(nonce []byte, now time.Time) (fresh, full bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.new == nil || now.Sub(n.began) > 2*window {
		n.last, n.new, n.began = n.new, map[string]struct{}{}, now
	}
	key := string(nonce)
	if _, seen := n.new[key]; seen {
		return false, false
	}
	if _, seen := n.last[key]; seen {
		return false, false
	}
	if len(n.new) >= maxNonces {
		return true, true
	}
	n.new[key] = struct{}{}
	return true, false
}

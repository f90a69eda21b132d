package gateway

import (
	"encoding/json"
	"maps"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

const (
	// maxLists bounds the lists of tools that are kept. A list of 1,000 tools takes 24 KB beside the definitions.
	maxLists = 256
	// maxListed bounds the tools in all of these lists.
	maxListed = 1 << 20
)

// lists caches the lists of tools that principals got at endpoints. A client reads a list page by page, and many
// clients read the same one. A principal never gets the list of another principal. Different lists share only the bytes
// of definitions, which do not depend on the principal. The zero value is empty.
type lists struct {
	mu     sync.Mutex
	kept   map[doorKey]*keptList
	listed int    // tools in all kept lists
	clock  uint64 // counts the uses

	// defs are the definitions of the tools of one state.
	of   listState
	defs map[*tenon.Tool]json.RawMessage
}

// listState contains the state on which the tools of a principal depend, except three things: the principal, the
// endpoint, which is part of the host, and the servers that cannot be reached. Grants do not change a list.
type listState struct {
	host     *host.Host // with its configuration
	snapshot any        // the snapshot of the catalog; equal pointers mean equal catalogs
	rules    string     // digest of the rules
	masks    int        // number of masked forms of secrets
}

// keptList is the list of one principal at one endpoint.
type keptList struct {
	state listState
	down  map[string]string // server → why it cannot be reached
	tools []json.RawMessage // read only
	sum   string            // its digest
	used  uint64
}

// find returns the list of a principal at an endpoint. It returns nil if there is no list of this state.
func (l *lists) find(key doorKey, state listState, down map[string]string) *keptList {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kept[key]
	if k == nil || k.state != state || !maps.Equal(k.down, down) {
		return nil
	}
	l.clock++
	k.used = l.clock
	return k
}

// keep caches a list. It replaces the previous list of the same principal and endpoint, and drops the least recently
// used lists beyond the limits.
func (l *lists) keep(key doorKey, k *keptList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(key)
	if len(k.tools) > maxListed {
		return
	}
	for len(l.kept) >= maxLists || l.listed+len(k.tools) > maxListed {
		var oldest doorKey
		least := l.clock + 1
		for of, other := range l.kept {
			if other.used < least {
				oldest, least = of, other.used
			}
		}
		l.drop(oldest)
	}
	if l.kept == nil {
		l.kept = map[doorKey]*keptList{}
	}
	l.clock++
	k.used = l.clock
	l.kept[key] = k
	l.listed += len(k.tools)
}

// clear drops all lists and definitions, because they belong to one host.
func (l *lists) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept, l.listed, l.of, l.defs = nil, 0, listState{}, nil
}

// drop drops a list. The lock is held.
func (l *lists) drop(key doorKey) {
	if k := l.kept[key]; k != nil {
		l.listed -= len(k.tools)
		delete(l.kept, key)
	}
}

// definition returns the definition of a tool as clients get it, with secrets masked. If the tool's server cannot be
// reached, why is the reason.
func (l *lists) definition(of listState, t *tenon.Tool, why string) json.RawMessage {
	masked := of.host.Service().Callers().Mask
	if why != "" {
		return masked(definition(t, why))
	}
	l.mu.Lock()
	if l.of != of || l.defs == nil {
		l.of, l.defs = of, make(map[*tenon.Tool]json.RawMessage)
	}
	def := l.defs[t]
	l.mu.Unlock()
	if def != nil {
		return def
	}
	def = masked(definition(t, ""))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == of {
		l.defs[t] = def
	}
	return def
}

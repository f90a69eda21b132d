package host

import (
	"context"

	"github.com/tenonhq/tenon/store"
)

// Peers are the processes that serve the store of this host, each at an address that it has announced. [store.Peers]
// documents the methods.
type Peers interface {
	Self() string
	Announce(ctx context.Context, address string) error
	Peer(ctx context.Context, id string) (address string, alive bool, err error)
	PeerKey(purpose string) []byte
}

// Peers implements [StoreState].
func (h stateHandle) Peers() Peers {
	p, _ := h.host.store.Store.(store.Peers)
	return p
}

var _ Peers = store.Peers(nil)

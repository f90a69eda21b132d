package store

import "context"

// Peers is a store that several processes serve, each at an address of its network. A process that ends, or that does
// not renew its leases, is gone. Not every store is one.
type Peers interface {
	// Self returns the random id of this process. It has the characters a-z and 0-9 only.
	Self() string
	// Announce tells the other processes the address of this one, for as long as the store is open. An empty address
	// withdraws it. Errors: store.
	Announce(ctx context.Context, address string) error
	// Peer returns the address that a process has announced, or "" if it has announced none. alive is false if the
	// process is gone, or has not renewed its leases: it may come back. Errors: store, cancelled.
	Peer(ctx context.Context, id string) (address string, alive bool, err error)
	// PeerKey returns a key of 32 bytes that only processes with the key of the store can derive, for one purpose. It
	// is nil if the store has no key.
	PeerKey(purpose string) []byte
}

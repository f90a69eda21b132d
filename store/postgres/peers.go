package postgres

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon/store"
)

// Self implements [store.Peers].
func (s *Store) Self() string { return s.replica }

// announceTime is the time for which Announce waits for the database.
const announceTime = 5 * time.Second

// Announce implements [store.Peers]. Each heartbeat writes the address again: the row may have been deleted or changed,
// or this statement may have failed.
func (s *Store) Announce(ctx context.Context, address string) error {
	address = plainText(address)
	s.mu.Lock()
	s.address = address
	s.mu.Unlock()
	ctx, stop := context.WithTimeout(ctx, announceTime)
	defer stop()
	_, err := s.pool.Exec(ctx, s.sql("UPDATE @replicas SET address = $2, address_mac = $3 WHERE id = $1"), s.replica,
		address, s.addressMAC(s.replica, address))
	if err != nil {
		return s.storeError("announce the address of this replica", err)
	}
	return nil
}

// Peer implements [store.Peers].
func (s *Store) Peer(ctx context.Context, id string) (address string, alive bool, err error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	var mac []byte
	err = s.each(ctx, "SELECT address, address_mac FROM @replicas WHERE id = $1 AND expires > clock_timestamp()",
		[]any{id}, func(rows pgx.Rows) error {
			alive = true
			return rows.Scan(&address, &mac)
		})
	switch {
	case err != nil:
		return "", false, err
	case !alive || address == "":
		return "", alive, nil
	}
	want := s.addressMAC(plainText(id), address)
	if want == nil || !hmac.Equal(mac, want) {
		s.log.Warn("no replica with the key of this store has written the address of a replica; it is not used",
			"store", s.name, "replica", id)
		return "", true, nil
	}
	return address, true, nil
}

// addressMAC returns what proves that a replica itself has announced an address. It is nil if the store has no key.
func (s *Store) addressMAC(id, address string) []byte {
	key := s.key.Derive("addresses of replicas")
	if key == nil {
		return nil
	}
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(id)))) // a hash never fails
	_, _ = h.Write([]byte(id + address))
	return h.Sum(nil)
}

// PeerKey implements [store.Peers].
func (s *Store) PeerKey(purpose string) []byte { return s.key.Derive(purpose) }

var _ store.Peers = (*Store)(nil)

package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon/store"
)

// Self implements [store.Peers].
func (s *Store) Self() string { return s.replica }

// Announce implements [store.Peers]. The heartbeat writes the address again if the row of this replica was deleted.
func (s *Store) Announce(ctx context.Context, address string) error {
	address = plainText(address)
	s.mu.Lock()
	s.address = address
	s.mu.Unlock()
	_, err := s.pool.Exec(ctx, s.sql("UPDATE @replicas SET address = $2 WHERE id = $1 AND address <> $2"), s.replica,
		address)
	if err != nil {
		return s.storeError("announce the address of this replica", err)
	}
	return nil
}

// Peer implements [store.Peers].
func (s *Store) Peer(ctx context.Context, id string) (string, error) {
	var address string
	err := s.pool.QueryRow(ctx, s.sql("SELECT address FROM @replicas WHERE id = $1 AND expires > clock_timestamp()"),
		plainText(id)).Scan(&address)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", s.storeError("address of a replica", err)
	}
	return address, nil
}

// PeerKey implements [store.Peers].
func (s *Store) PeerKey(purpose string) []byte { return s.key.Derive(purpose) }

var _ store.Peers = (*Store)(nil)

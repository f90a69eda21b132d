package sqlite

import "context"

// A brief store's process ends soon, and nearly always writes something else before:
// a command line that begins a run pins its tools first. A write that only has to
// be there when the next one is goes with that one, which saves a commit.

// maxSoon is how many writes wait for the next one.
const maxSoon = 64

// submitSoon has a write done in the transaction of the next one, or else before the
// next read of this process, or on Close. What it runs into then is logged. In
// other than brief stores it is done at once, as by submit.
func (s *Store) submitSoon(ctx context.Context, do func(*writer) error) error {
	if s.turn == nil {
		return s.submit(ctx, do)
	}
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-s.turn }()
	s.soon = append(s.soon, newOp(do))
	if len(s.soon) >= maxSoon {
		s.writeSoon()
	}
	return nil
}

// takeTurn waits for the caller's turn to use the connection of a brief store.
func (s *Store) takeTurn(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return cancelled(s, ctx.Err())
	case <-s.quit:
		return closedError(s)
	}
}

// writeSoon does what waits for the next write, and what comes with it. The caller
// has the turn.
func (s *Store) writeSoon(with ...*op) {
	soon := s.soon
	s.soon = nil
	if len(soon)+len(with) == 0 {
		return
	}
	s.writer.commit(append(soon, with...))
	for _, o := range soon {
		if err := <-o.done; err != nil {
			s.log.Warn("something that was to be stored was not", "path", s.path, "error", err)
		}
	}
}

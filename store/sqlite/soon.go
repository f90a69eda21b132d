package sqlite

import "context"

// A store that was opened with Config.ShortLived is called brief. Its process ends soon, and nearly always writes
// something else before that. For example, a command that starts a run pins its tools first. A write that is only
// needed together with the next one joins the transaction of that write, which saves a commit. Figure T1 needs this:
// without it, T1 was 2.46 instead of 1.74 (goal: at most 2.0; medians of 21 interleaved rounds).

// maxSoon is the maximum number of writes that wait for the next one.
const maxSoon = 64

// submitSoon delays a write until the next write of this process, and does both in one transaction. It does not delay
// the write beyond the next read or Close. It logs an error of the delayed write. If the store is not brief, it
// writes at once, like submit.
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

// takeTurn waits until the caller may use the only connection of a brief store. The caller gives the turn back with
// <-s.turn.
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

// writeSoon does the delayed writes and the given ones. The caller has the turn.
func (s *Store) writeSoon(with ...*op) {
	soon := s.soon
	s.soon = nil
	if len(soon)+len(with) == 0 {
		return
	}
	s.writer.commit(append(soon, with...))
	for _, o := range soon {
		if err := <-o.done; err != nil {
			s.log.Warn("a delayed write failed", "path", s.path, "error", err)
		}
	}
}

package host

import (
	"context"
)

// DeleteSession deletes a session with its runs and all that only they need; see
// [store.Sessions]. Errors: not_found, conflict (one of its runs is worked on,
// another session goes on from it), store.
func (h *Host) DeleteSession(ctx context.Context, session string) error {
	s, err := h.Session(ctx, session)
	if err != nil {
		return err
	}
	return h.store.DeleteSession(ctx, s.ID)
}

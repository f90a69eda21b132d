package host

import (
	"context"

	"github.com/tenonhq/tenon"
)

// AtWork counts the runs that this process works on: those of a principal, and all.
func (h *Host) AtWork(who tenon.Principal) (own, all int) { return h.engine.AtWork(who) }

// WorksFor returns for whom this process works on a run, if it does: in memory, which
// takes less than to read its row.
func (h *Host) WorksFor(run string) (who tenon.Principal, ok bool) { return h.engine.WorksFor(run) }

// Masked returns a JSON text, or any other, in which the values of all secrets that
// are in use are masked. What surfaces show passes through it.
func (h *Host) Masked(b []byte) []byte { return h.redactor.Bytes(b) }

// Page returns up to limit of a run's stored events after the given number.
func (h *Host) Page(ctx context.Context, run string, after uint64, limit int) ([]tenon.Event, error) {
	events, err := h.store.Events(ctx, run, after, limit)
	return h.veil(events), err
}

// Learn has a secret of a surface, such as a token, masked from now on.
func (h *Host) Learn(s tenon.Secret) { h.redactor.Add(s) }

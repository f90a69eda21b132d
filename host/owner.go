package host

import (
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// Foreign is the part of the store that somebody else wrote; see [store.Foreign].
type Foreign = store.Foreign

func (h storageHandle) Foreign(ctx context.Context) (Foreign, error) {
	return h.host.store.Foreign(ctx)
}

func (h storageHandle) Adopt(ctx context.Context, seen string) error {
	return h.host.store.Adopt(ctx, seen)
}

// warnForeign logs how many runs are not resumed because somebody else wrote them.
func (h *Host) warnForeign(ctx context.Context) {
	n := 0
	for _, state := range []tenon.RunState{tenon.RunWorking, tenon.RunInputRequired} {
		runs, err := h.store.Runs(ctx, store.RunFilter{State: state, Limit: maxListed})
		if err != nil {
			return // the first access to the store reports it
		}
		for _, r := range runs {
			if r.Foreign {
				n++
			}
		}
	}
	if n > 0 {
		h.log.Warn("runs that somebody else wrote are left unchanged; review them with 'tenon store show', and adopt "+
			"them with 'tenon store adopt'", "runs", n)
	}
}

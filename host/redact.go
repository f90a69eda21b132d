package host

import (
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sealed"
)

// sealed returns the store with encryption of the fields that redact rules name.
func (h *Host) sealed(s store.Store) *sealed.Store {
	if h.vault == nil {
		return sealed.New(s, nil, h.redacts)
	}
	return sealed.New(s, h.vault, h.redacts)
}

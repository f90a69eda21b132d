package host

import "context"

// Touch opens a model, so that its key is in use.
func (h *Host) Touch(ctx context.Context, model string) error {
	_, err := h.models.get(ctx, model)
	return err
}

package host

import "context"

// Touch opens a model, so that its key is in use.
func (h *Host) Touch(ctx context.Context, model string) error {
	_, err := h.models.get(ctx, model)
	return err
}

// CheckImport reads and checks what is to be imported, and stores nothing of it.
func (h *Host) CheckImport(ctx context.Context, data []byte, im Import) error {
	_, _, err := h.prepareImport(ctx, data, im)
	return err
}

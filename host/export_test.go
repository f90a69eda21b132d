package host

import (
	"bytes"
	"context"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/transcript"
)

// Touch opens a model, so that its key is read.
func Touch(ctx context.Context, h *Host, model string) error {
	_, err := h.models.get(ctx, model)
	return err
}

// CheckImport reads and checks a file without storing anything.
func CheckImport(ctx context.Context, h *Host, data []byte, im transcript.Import) error {
	im.From = bytes.NewReader(data)
	return h.transcripts.Check(ctx, im)
}

// RunTables returns all tables of a run's conversation by their ids, and the tables that calls of this run made.
func RunTables(ctx context.Context, h *Host, run string) (all, made []tenon.Table, err error) {
	s, err := h.state(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	all, given := s.Tables()
	return all, all[given:], nil
}

// TableData returns the bytes of a table, an Arrow file or stream.
func TableData(ctx context.Context, h *Host, t tenon.Table) ([]byte, error) {
	return h.store.Blob(ctx, t.Digest)
}

// AwaitAudits waits until the calls that have no journal yet are stored, with their texts for the index.
func AwaitAudits(ctx context.Context, h *Host) error {
	for {
		h.audits.mu.Lock()
		n := h.audits.count
		h.audits.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

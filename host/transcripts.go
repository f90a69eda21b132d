package host

import (
	"bytes"
	"context"
	"io"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/transcript"
	"github.com/tenonhq/tenon/workflow"
)

// openTranscripts creates the part of the host that reads transcripts from the store.
func (h *Host) openTranscripts() {
	h.transcripts = transcript.New(transcript.Config{Store: h.store, Redactor: h.redactor, Redact: h.redacts,
		Now:    h.now,
		Logger: h.log, Version: h.cfg.Version,
		Unpack: func(name string, data []byte) (*workflow.Workflow, error) {
			w, _, err := config.OpenWorkflow(name, bytes.NewReader(data), int64(len(data)))
			return w, err
		}})
}

func (h transcriptsHandle) Messages(ctx context.Context, session string) ([]transcript.Message, error) {
	return h.host.transcripts.Messages(ctx, session)
}

func (h viewHandle) Conversation(ctx context.Context) ([]*tenon.Message, error) {
	return h.host.transcripts.Conversation(ctx, h.id)
}

func (h transcriptsHandle) Search(ctx context.Context, q transcript.Query) ([]transcript.Hit, error) {
	if q.Session != "" {
		s, err := h.host.Sessions().Get(ctx, q.Session)
		if err != nil {
			return nil, err
		}
		q.Session = s.ID
	}
	leave, err := h.host.heavy.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return h.host.transcripts.Search(ctx, q)
}

func (h transcriptsHandle) Export(ctx context.Context, w io.Writer, session string, f Format) error {
	s, err := h.host.Sessions().Get(ctx, session)
	if err != nil {
		return err
	}
	if err := h.host.registerForExport(ctx); err != nil {
		return err
	}
	switch f {
	case FormatJSON:
		return h.host.transcripts.Export(ctx, w, s)
	case FormatMarkdown:
		return h.host.transcripts.ExportMarkdown(ctx, w, s)
	}
	return tenon.Errorf(tenon.CodeInvalid, "a session is exported as json or markdown, not as '%s'",
		tenon.Visible(string(f)))
}

func (h transcriptsHandle) Import(ctx context.Context, im transcript.Import) (transcript.ImportReport, error) {
	return h.host.transcripts.Import(ctx, im)
}

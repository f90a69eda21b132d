package host

import (
	"cmp"
	"context"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
)

// maxMessage bounds, in bytes, a message into a run.
const maxMessage = 1 << 20

// Steer sends a message into a run that has not ended and returns its event. The
// model is told before its next request; one that is just giving its last answer
// is asked once more. It does not matter which process works on the run; a run
// that nobody works on keeps the message for when it goes on. By is who says
// it. Errors: invalid (no text, or a run that is a single tool call), too_large,
// not_found, conflict (the run has ended), store.
func (h *Host) Steer(ctx context.Context, run, text, by string) (tenon.Event, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return tenon.Event{}, tenon.Errorf(tenon.CodeInvalid, "the message is empty")
	case len(text) > maxMessage:
		return tenon.Event{}, tenon.Errorf(tenon.CodeTooLarge, "the message has %d bytes, at most %d are taken; put it into a file that a tool can read", len(text), maxMessage)
	}
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return tenon.Event{}, err
	}
	if row.Core != agent.Version {
		what := map[string]string{agent.DirectVersion: "single tool call"}[row.Core]
		return tenon.Event{}, tenon.Errorf(tenon.CodeInvalid, "run %s is a %s, which takes no messages", run, cmp.Or(what, "workflow"))
	}
	return h.engine.Signal(ctx, run, engine.Signal{ID: tenon.NewID("sig", h.now()), Kind: agent.EventMessage,
		By: by, Data: encode(agent.Steer{Text: text, By: by})})
}

// Owned reports whether a process, this one or another, works on a run.
func (h *Host) Owned(run string) (bool, error) { return h.store.Held(run) }

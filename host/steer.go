package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

// maxMessage bounds a message into a run, in bytes.
const maxMessage = 1 << 20

func (h runsHandle) Steer(ctx context.Context, run, text, by string) (tenon.Event, error) {
	return h.host.steer(ctx, run, tenon.NewID("sig", h.host.now()), text, by)
}

// SteerOnce is [Runs.Steer] for a message that a request may bring again, also at the same time and to another process.
// Calls with the same run, key and text record the message once and return the same event. Errors: as Steer, and
// conflict (the key was used for another text).
func SteerOnce(ctx context.Context, h *Host, run, key, text, by string) (tenon.Event, error) {
	sum := sha256.Sum256([]byte(run + "\x00" + key))
	id := "sig_" + hex.EncodeToString(sum[:16])
	e, err := h.steer(ctx, run, id, text, by)
	sent, look := h.store.Signal(store.OwnOnly(ctx), id) // the store keeps the first one with this id
	var was agent.Steer
	if look == nil && (json.Unmarshal(sent.Data, &was) != nil || was.Text != strings.TrimSpace(text)) {
		return tenon.Event{}, tenon.Errorf(tenon.CodeConflict, "the key was used for another message into run %s; use "+
			"a new key", run)
	}
	return e, err
}

// Withdraw is [Runs.Cancel], and withdraws the messages into the run that no model call has sent. The next run of the
// session does not send them, so that their sender can change them and send them again.
func Withdraw(ctx context.Context, h *Host, run, reason string) error {
	_, err := h.engine.Signal(store.OwnOnly(ctx), run, engine.Signal{ID: tenon.NewID("sig", h.now()),
		Kind: tenon.EventCancel, Data: encode(tenon.CancelData{Reason: reason, Withdraw: true})})
	if err != nil && tenon.ErrorCode(err) != tenon.CodeConflict { // it has ended
		return err
	}
	return h.Runs().Cancel(ctx, run, reason) // a run at rest has only noted the signal; the runs that it called
}

// steer sends a message with the id of its signal. The store keeps one signal for each id.
func (h *Host) steer(ctx context.Context, run, id, text, by string) (tenon.Event, error) {
	ctx = store.OwnOnly(ctx)
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return tenon.Event{}, tenon.Errorf(tenon.CodeInvalid, "the message is empty")
	case len(text) > maxMessage:
		return tenon.Event{}, tenon.Errorf(tenon.CodeTooLarge, "the message has %d bytes; %d is the limit; put "+
			"it into a file that a tool can read", len(text), maxMessage)
	}
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return tenon.Event{}, err
	}
	if row.Core != agent.Version {
		what := map[string]string{agent.DirectVersion: "single tool call"}[row.Core]
		return tenon.Event{}, tenon.Errorf(tenon.CodeInvalid, "run %s is a %s, which takes no messages", run,
			cmp.Or(what, "workflow"))
	}
	return h.engine.Signal(ctx, run, engine.Signal{ID: id, Kind: agent.EventMessage,
		By: by, Data: encode(agent.Steer{Text: text, By: by})})
}

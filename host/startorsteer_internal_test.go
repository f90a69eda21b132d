package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/store"
)

// TestSteerTooLate sends a message into a run that ends before the message reaches it. The message begins a run, once
// for its key.
func TestSteerTooLate(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "steps.yaml")
	if err := os.WriteFile(file, []byte("steps:\n  - {text: I answer., repeat: forever}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := Open(t.Context(), Config{Config: &config.Config{}, Home: home, Model: "script:" + file})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	first, err := Ask(t.Context(), h, Question{Text: "q"})
	if err != nil {
		t.Fatal(err)
	}
	ended := first.Run
	for name, stored := range map[string]bool{"refused": false, "stored": true} {
		t.Run(name, func(t *testing.T) {
			q := Question{Text: "more", Session: ended.Session, Key: "key " + name}
			d := delivery{h: h, q: q, by: "ann", digest: "digest " + name}
			id := d.id()
			if stored { // by a process that died then
				if _, err := h.store.PutSignal(t.Context(), store.Signal{ID: id, Run: ended.ID, Kind: agent.EventMessage,
					Time: h.now(), Data: encode(agent.Steer{Text: "more", By: "ann"})}); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := d.steer(t.Context(), ended.ID, id); !IsBusy(err) {
				t.Fatalf("not to be tried again: %v", err)
			}
			if again := d.id() != id; again != stored {
				t.Errorf("another id is used: %v, want %v", again, stored)
			}
			s, after, err := d.once(t.Context())
			if err != nil || after != 0 || s.Again || s.ID == ended.ID {
				t.Fatal(s, after, err)
			}
			for _, err := range h.Runs().Events(t.Context(), s.ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
			}
			d.missed = 0 // another request with the key
			again, after, err := Started{}, uint64(0), error(nil)
			for range 2 {
				if again, after, err = d.once(t.Context()); !IsBusy(err) {
					break
				}
			}
			if err != nil || after != 0 || !again.Again || again.ID != s.ID {
				t.Error(again, after, err)
			}
			other := Question{Text: "another", Session: ended.Session, Key: q.Key}
			if _, _, err := StartOrSteer(t.Context(), h, other, "ann"); tenon.ErrorCode(err) != tenon.CodeConflict || IsBusy(err) {
				t.Errorf("the key of another message: %v", err)
			}
		})
	}
}

// TestSlowModel checks that a model that takes long to open does not hold up runs of other models.
func TestSlowModel(t *testing.T) {
	h, err := Open(t.Context(), Config{Config: &config.Config{}, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	slow := openKey{model: "script:slow"}
	if _, wait, found := h.models.look(slow); wait != nil || found {
		t.Fatal("somebody else opens it")
	}
	if _, err := h.models.get(t.Context(), DemoModel); err != nil {
		t.Error(err)
	}
	if _, err := h.models.openNow(t.Context(), slow, nil); err == nil {
		t.Error("it is no file")
	}
	if _, wait, found := h.models.look(slow); wait != nil || found {
		t.Error("the attempt has not ended")
	}
}

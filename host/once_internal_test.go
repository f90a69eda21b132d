package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// TestKeyOfSessionWithoutRuns asks twice with one key in a session that has no run yet, such as the fork of a session
// whose first calls have no results.
func TestKeyOfSessionWithoutRuns(t *testing.T) {
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
	for _, name := range []string{"RP-2_first", "RP-2_second"} { // the key of one session says nothing about another
		t.Run(name, func(t *testing.T) {
			s := tenon.Session{ID: tenon.NewID("ses", h.now()), Principal: tenon.PrincipalLocal, Created: h.now(), Updated: h.now()}
			if err := h.store.PutSession(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			q := Question{Text: "q", Session: s.ID, Key: "k"}
			if asked, err := IsAsked(t.Context(), h, q); asked || err != nil {
				t.Fatalf("asked %v, %v", asked, err)
			}
			first, err := Ask(t.Context(), h, q)
			if err != nil || first.Run.Session != s.ID {
				t.Fatalf("%+v, %v", first.Run, err)
			}
			if asked, err := IsAsked(t.Context(), h, q); !asked || err != nil {
				t.Errorf("asked %v, %v", asked, err)
			}
			again, err := h.Start(t.Context(), q)
			if err != nil || !again.Again || again.ID != first.Run.ID {
				t.Errorf("again: %+v, %v", again, err)
			}
			if _, err := h.Start(t.Context(), Question{Text: "r", Session: s.ID, Key: "k"}); tenon.ErrorCode(err) != tenon.CodeConflict {
				t.Errorf("another question: %v", err)
			}
			next, err := Ask(t.Context(), h, Question{Text: "more", Session: s.ID, Key: "another of " + name})
			if err != nil || next.Run.Parent != first.Run.ID {
				t.Errorf("another key: %+v, %v", next.Run, err)
			}
			if again, err = h.Start(t.Context(), q); err != nil || !again.Again || again.ID != first.Run.ID {
				t.Errorf("again, later: %+v, %v", again, err)
			}
		})
	}
}

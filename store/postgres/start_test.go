package postgres

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// begin creates a run of a session that has no other run at work.
func begin(t *testing.T, s *Store, run, session string, uses ...string) error {
	return s.Append(t.Context(), store.Append{Create: &tenon.Run{ID: run, Session: session}, Run: run,
		Exclusive: true, Uses: uses, Events: []tenon.Event{event(1)}})
}

// TestBegin begins runs whose leases a replica has, in an era that it knows. Each of them could be refused. What
// refuses one of them does not make the position of another run unknown.
func TestBegin(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, c Config, a *Store)
		uses   string
		code   tenon.Code
		says   string
	}{
		{name: "nothing refuses it"},
		{name: "another run of the session", before: func(t *testing.T, c Config, a *Store) {
			if err := begin(t, mustOpen(t, c), "other", "session"); err != nil {
				t.Fatal(err)
			}
		}, code: tenon.CodeConflict, says: "is at work on run other"},
		{name: "the run exists", before: func(t *testing.T, c Config, a *Store) {
			create(t, mustOpen(t, c), "new")
		}, code: tenon.CodeConflict, says: "run new exists"},
		{name: "a missing blob", uses: "sha256:" + strings.Repeat("0", 64), code: tenon.CodeNotFound, says: "no blob"},
		// As after a crash of the server that lost the lease, which was not on disk.
		{name: "the lease is lost and the era is the same", before: func(t *testing.T, c Config, a *Store) {
			admin(t, "ALTER TABLE "+c.Schema+".leases DISABLE TRIGGER new_era")
			admin(t, "UPDATE "+c.Schema+".leases SET owner = $1 WHERE run = 'new'", mustOpen(t, c).replica)
		}, code: tenon.CodeConflict, says: "has ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, a, b := held(t, "known")
			if _, ok, err := a.Acquire("new"); err != nil || !ok {
				t.Fatal(ok, err)
			}
			if tt.before != nil {
				tt.before(t, c, a)
			}
			var uses []string
			if tt.uses != "" {
				uses = []string{tt.uses}
			}
			err := begin(t, a, "new", "session", uses...)
			if tenon.ErrorCode(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("the run begins: %v; want code %q", err, tt.code)
			}
			wantKnown(t, a, "known", true)
			if tt.code != "" {
				return
			}
			wantKnown(t, a, "new", true)
			if err := appendTo(t, a, "new", 2); err != nil {
				t.Fatal(err)
			}
			wantEvents(t, b, "new", 2)
			if err := begin(t, b, "third", "session"); tenon.ErrorCode(err) != tenon.CodeConflict {
				t.Fatalf("a second run of the session begins: %v", err)
			}
		})
	}
}

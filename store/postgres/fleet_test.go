package postgres

import (
	"fmt"
	"testing"
	"time"
)

// TestFleet counts the replicas that search for runs. A process that only asks or reads does not slow their searches
// down, and one of a program that does not say counts as one that searches.
func TestFleet(t *testing.T) {
	c := place(t)
	all := make([]*Store, 4)
	for i := range all {
		all[i] = mustOpen(t, c)
	}
	size := func(what string, want int) {
		t.Helper()
		for range 2 { // each replica tells the others first
			for _, s := range all {
				if err := s.heartbeat(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, s := range all {
			if s.Size() != want {
				t.Errorf("%s: replica %d counts %d, want %d", what, i, s.Size(), want)
			}
		}
	}
	size("nobody searches", 1)
	leave := all[0].Enlist()
	again := all[0].Enlist()
	all[1].Enlist()
	size("two search", 2)
	admin(t, fmt.Sprintf("INSERT INTO %s.replicas (id, name, began, expires) VALUES ('old', '', now(), now() + interval '%d seconds')",
		c.Schema, int(time.Hour.Seconds())))
	size("with an older program", 3)
	leave()
	leave()
	size("one of two searches of a process ended", 3)
	again()
	size("both have ended", 2)
}

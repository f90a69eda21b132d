package gateway

import (
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

// TestGW_14_OldestDoor checks which door is dropped: the one that is unused for the longest time, and one with a client
// only if all have clients.
func TestGW_14_OldestDoor(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(seconds, users int) *door {
		return &door{used: start.Add(time.Duration(seconds) * time.Second), users: users}
	}
	for name, tt := range map[string]struct {
		doors map[string]*door
		want  string
	}{
		"the oldest":                 {map[string]*door{"a": at(2, 0), "b": at(1, 0), "c": at(3, 0)}, "b"},
		"an open stream":             {map[string]*door{"a": at(2, 0), "b": at(1, 1), "c": at(3, 0)}, "a"},
		"a stream that is never out": {map[string]*door{"a": at(9, 0), "b": {users: 1}}, "a"},
		"all have clients":           {map[string]*door{"a": at(2, 1), "b": at(1, 3), "c": at(3, 1)}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			doors := map[doorKey]*door{}
			for who, d := range tt.doors {
				d.key = doorKey{who: tenon.Principal(who)}
				doors[d.key] = d
			}
			if got := oldest(doors); string(got.key.who) != tt.want {
				t.Errorf("%s, want %s", got.key.who, tt.want)
			}
		})
	}
}

// TestGW_14_DoorsInUse checks that a door counts its clients until they are released.
func TestGW_14_DoorsInUse(t *testing.T) {
	d := &door{users: 2}
	g := &Gateway{}
	before := time.Now()
	g.release(d)
	if g.release(d); d.users != 0 || d.used.Before(before) {
		t.Errorf("%d clients, used %s", d.users, d.used)
	}
}

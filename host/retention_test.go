package host_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/transcript"
)

// clock is a clock that the test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) Elapsed() time.Duration { return 0 } // whatever it is set to

func (c *clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// TestRetention checks that old sessions are deleted, except sessions that wait for a person and sessions that a newer
// session was forked from.
func TestRetention(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	m := answering(func(req *tenon.Request) (*tenon.Response, error) {
		if req.Messages[len(req.Messages)-1].Text() == "sell" {
			return calls("sell {}"), nil
		}
		return says("yes"), nil
	})
	h, err := host.Open(t.Context(), host.Config{Config: &config.Config{Store: config.Store{Retention: 30 * 24 * time.Hour}}, Home: t.TempDir(), Clock: c,
		Model: "m", Models: map[string]tenon.Model{"m": m}, Toolsets: map[string]tenon.Toolset{"shop": &shop{}}, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	names := map[string]string{}
	put := func(name string, q host.Question) string {
		c.now = c.now.Add(time.Hour)
		r, _ := ask(t, h, q)
		names[r.Session] = name
		return r.Session
	}
	put("old", host.Question{Text: "old"})
	put("waiting", host.Question{Text: "sell"})
	parent := put("parent", host.Question{Text: "parent"})
	other := put("other", host.Question{Text: "other"})
	put("old fork", host.Question{Text: "old fork", Session: other, Fork: true})
	c.now = c.now.Add(40 * 24 * time.Hour)
	put("young fork", host.Question{Text: "young", Session: parent, Fork: true})
	put("young", host.Question{Text: "young"})
	rest := func() map[string]bool {
		list, err := h.Sessions().List(t.Context(), host.SessionFilter{Limit: 0})
		if err != nil {
			t.Fatal(err)
		}
		left := map[string]bool{}
		for _, s := range list {
			left[names[s.ID]] = true
		}
		return left
	}
	list, err := h.Service().Storage().Stale(t.Context(), 30*24*time.Hour)
	var stale []string
	for _, s := range list {
		stale = append(stale, names[s.ID])
	}
	if diff := cmp.Diff([]string{"old fork", "other", "old"}, stale); err != nil || diff != "" {
		t.Errorf("stale: %v\n%s", err, diff)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop() // one look
	h.Service().Storage().Retain(ctx)
	if len(rest()) != 7 {
		t.Errorf("something was deleted after the end: %v", rest())
	}
	ctx, stop = context.WithCancel(t.Context())
	var retains sync.WaitGroup
	retains.Go(func() { h.Service().Storage().Retain(ctx) })
	eventually(t, "what is old is deleted", func() bool { return len(rest()) <= 4 })
	time.Sleep(200 * time.Millisecond) // it deletes no more
	stop()
	retains.Wait()
	if diff := cmp.Diff(map[string]bool{"waiting": true, "parent": true, "young fork": true, "young": true}, rest()); diff != "" {
		t.Error(diff)
	}
	if _, err := h.Service().Storage().Stale(t.Context(), 0); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("no age: %v", err)
	}
}

// TestPruneDeletesWhatWasShown checks that prune only deletes sessions that were shown in the list. It keeps sessions
// that became old after the list was made, and sessions of the list that were used again.
func TestPruneDeletesWhatWasShown(t *testing.T) {
	h := open(t, t.TempDir(), "steps: [{text: one}, {text: two}, {text: three}, {text: four}]", &shop{})
	shown, _ := ask(t, h, host.Question{Text: "shown"})
	used, _ := ask(t, h, host.Question{Text: "used"})
	list, err := h.Service().Storage().Stale(t.Context(), time.Nanosecond)
	if err != nil || len(list) != 2 {
		t.Fatalf("stale: %v %v", list, err)
	}
	later, _ := ask(t, h, host.Question{Text: "later"})
	ask(t, h, host.Question{Text: "again", Session: used.Session})
	gone, err := h.Service().Storage().Prune(t.Context(), list, nil)
	if err != nil || len(gone) != 1 || gone[0].ID != shown.Session {
		t.Errorf("gone: %v %v", gone, err)
	}
	for _, id := range []string{later.Session, used.Session} {
		if _, err := h.Sessions().Get(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
}

// TestRetainWithoutRetention returns at once.
func TestRetainWithoutRetention(t *testing.T) {
	h := open(t, t.TempDir(), "steps: []", &shop{})
	synctest.Test(t, func(t *testing.T) { h.Service().Storage().Retain(t.Context()) })
}

func TestRenameSession(t *testing.T) {
	h := open(t, t.TempDir(), "steps: [{text: one}]", &shop{})
	r, _ := ask(t, h, host.Question{Text: "first"})
	s, err := h.Sessions().Rename(t.Context(), "-1", "  a\nb  ")
	if err != nil || s.Title != "a b" || s.ID != r.Session {
		t.Errorf("%+v %v", s, err)
	}
	if s, err = h.Sessions().Get(t.Context(), r.Session); err != nil || s.Title != "a b" || s.Runs != 1 || s.Head != r.Run {
		t.Errorf("%+v %v", s, err)
	}
	if _, err := h.Sessions().Rename(t.Context(), "-1", " "); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Error(err)
	}
}

// TestSearch finds words in a question, an answer, a call, a result and a summary, with the number of the message. It
// also finds messages that were stored after the first search.
func TestSearch(t *testing.T) {
	h := open(t, t.TempDir(), `steps: [{calls: [{name: price, arguments: {thing: oolong}}]}, {text: Three euros.}]`, &shop{})
	r, _ := ask(t, h, host.Question{Text: "What does tea cost?"})
	var told int
	for _, x := range []struct {
		words, role string
		n           int
	}{{"TEA", "user", 1}, {"oolong", "call", 2}, {"3 EUR", "tool", 3}, {"9007199254740993", "tool", 3}, {"euros", "assistant", 4}} {
		list, err := h.Sessions().Transcripts().Search(t.Context(), transcript.Query{Words: x.words, Session: r.Session, Progress: func(done, total int) { told += done }})
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %+v %v", x.words, list, err)
		}
		if f := list[0]; f.Role != x.role || f.N != x.n || f.Session != r.Session || f.Run != r.Run || f.Time == "" || f.Title != "What does tea cost?" {
			t.Errorf("%s: %+v", x.words, f)
		}
	}
	if told != 1 {
		t.Errorf("the run was read %d times, want once", told)
	}
	if _, err := h.Sessions().Transcripts().Search(t.Context(), transcript.Query{Words: "!!"}); err != nil && tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Error(err)
	}
	if _, err := h.Sessions().Transcripts().Search(t.Context(), transcript.Query{Words: " "}); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Error(err)
	}
}

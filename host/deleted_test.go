package host_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
	"github.com/tenonhq/tenon/transcript"
)

// deleting is a store that deletes a session when a reader begins to read one of its journals or its row.
type deleting struct {
	store.Store
	t       *testing.T
	session string
	run     string
	at      string // the method
}

func (d *deleting) delete() {
	d.at = ""
	if err := d.DeleteSession(context.Background(), d.session); err != nil {
		d.t.Error(err)
	}
}

func (d *deleting) Events(ctx context.Context, run string, after uint64, limit int) ([]tenon.Event, error) {
	if d.at == "events" && run == d.run {
		d.delete()
	}
	return d.Store.Events(ctx, run, after, limit)
}

func (d *deleting) Session(ctx context.Context, id string) (tenon.Session, error) {
	if d.at == "session" && id == d.session {
		d.delete()
	}
	return d.Store.Session(ctx, id)
}

// TestReadWhileDeleting reads statistics and searches while a session is being deleted. The results leave the session
// out.
func TestReadWhileDeleting(t *testing.T) {
	for _, tt := range []struct{ name, at, does string }{
		{"RP-26_stats", "events", "stats"},
		{"RP-26_search_session", "session", "search"},
		{"RP-26_search_events", "events", "search"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "tenon.db")})
			if err != nil {
				t.Fatal(err)
			}
			d := &deleting{Store: file, t: t}
			m := answering(func(*tenon.Request) (*tenon.Response, error) { return says("the answer"), nil })
			h, err := host.Open(t.Context(), host.Config{Config: &config.Config{}, Store: d, Model: "m",
				Models: map[string]tenon.Model{"m": m}, LookupEnv: func(string) (string, bool) { return "", false }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = h.Close()
				_ = file.Close()
			})
			left, _ := ask(t, h, host.Question{Text: "the first question"})
			gone, _ := ask(t, h, host.Question{Text: "the second question"})
			search := func() []transcript.Hit {
				hits, err := h.Sessions().Transcripts().Search(t.Context(), transcript.Query{Words: "question"})
				if err != nil {
					t.Fatal(err)
				}
				return hits
			}
			if n := len(search()); n != 2 { // now both sessions are in the index
				t.Fatalf("%d hits before the deletion", n)
			}
			d.session, d.run, d.at = gone.Session, gone.Run, tt.at
			if tt.does == "search" {
				if hits := search(); len(hits) != 1 || hits[0].Session != left.Session {
					t.Errorf("hits %+v", hits)
				}
			} else {
				list, err := h.Stats(t.Context(), host.StatsQuery{By: host.StatsDays})
				if err != nil || len(list) != 1 || list[0].Runs != 1 {
					t.Errorf("stats %+v, %v", list, err)
				}
			}
			if d.at != "" {
				t.Error("nothing was deleted")
			}
		})
	}
}

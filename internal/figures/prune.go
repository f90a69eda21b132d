package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
)

// Scale of PRUNE.
const (
	pruneSessions = 20_000
	pruneEvents   = 8 // of each session's run
	pruneWriters  = 256
)

// measurePrune measures the duration of tenon sessions prune for 20,000 sessions next to a tenon serve that answers a
// client all the time. It also measures the longest response of tenon serve meanwhile. It is measured once, because
// the sessions must be made for each round.
func measurePrune(s *session) error {
	tenon := filepath.Join(s.tmp, "tenon")
	if err := s.build(tenon, "./cmd/tenon"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.tmp, "prune-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	home := filepath.Join(dir, ".tenon")
	if err := oldSessions(s.ctx, filepath.Join(home, "tenon.db")); err != nil {
		return err
	}
	model, stopModel, err := s.startModel(0)
	if err != nil {
		return err
	}
	p, err := s.startServe(tenon, dir, served(model, nil))
	if err != nil {
		return errors.Join(err, stopModel())
	}
	took, worst, err := pruneBeside(s.ctx, tenon, dir, p)
	if err := errors.Join(err, p.stop(), stopModel()); err != nil {
		return err
	}
	s.add("PRUNE", fmt.Sprintf("tenon sessions prune of %d sessions next to tenon serve", pruneSessions), "s",
		[]float64{took.Seconds()})
	s.add("PRUNE.chat", "the longest response of that tenon serve to a question meanwhile", "s",
		[]float64{worst.Seconds()})
	return nil
}

// pruneBeside runs tenon sessions prune while a client asks tenon serve.
func pruneBeside(ctx context.Context, tenon, dir string, p *serveProcess) (took, worst time.Duration, err error) {
	ctx, stop := context.WithCancel(ctx)
	var asking sync.WaitGroup
	var failure error
	asking.Go(func() {
		c := asker{client: &http.Client{}, token: p.token, ctx: ctx}
		for ctx.Err() == nil {
			begun := time.Now()
			if err := c.chat(p.url); err != nil {
				if ctx.Err() == nil {
					failure = err
				}
				return
			}
			worst = max(worst, time.Since(begun))
		}
	})
	begun := time.Now()
	cmd := exec.CommandContext(ctx, tenon, "sessions", "prune", "--older-than", "30d", "--yes", "-c",
		filepath.Join(dir, "tenon.yaml"))
	out, err := cmd.CombinedOutput()
	took = time.Since(begun)
	stop()
	asking.Wait()
	if want := fmt.Sprint(pruneSessions, " sessions deleted"); err == nil && !strings.Contains(string(out), want) {
		err = errors.New("another number of sessions was deleted")
	}
	if err != nil {
		err = fmt.Errorf("tenon sessions prune: %w: %.500s", err, out)
	}
	return took, worst, errors.Join(err, failure)
}

// oldSessions makes a store with sessions of a year ago, each with one run.
func oldSessions(ctx context.Context, path string) (err error) {
	old := time.Now().AddDate(-1, 0, 0)
	s, err := sqlite.Open(ctx, sqlite.Config{Path: path, Now: func() time.Time { return old }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	data := json.RawMessage(`"` + strings.Repeat("text of an event ", 20) + `"`)
	errs := make([]error, pruneWriters)
	var writers sync.WaitGroup
	for w := range pruneWriters {
		writers.Go(func() {
			for i := w; i < pruneSessions && errs[w] == nil; i += pruneWriters {
				run := fmt.Sprintf("run_%06d", i)
				a := store.Append{Run: run, State: tenon.RunCompleted, Blobs: [][]byte{[]byte("tools of " + run)},
					Create: &tenon.Run{ID: run, Session: fmt.Sprintf("ses_%06d", i), Title: "question", Created: old,
						Updated: old}}
				for seq := range uint64(pruneEvents) {
					a.Events = append(a.Events, tenon.Event{Seq: seq + 1, Time: old, Kind: "message", Data: data})
				}
				errs[w] = s.Append(ctx, a)
			}
		})
	}
	writers.Wait()
	return errors.Join(errs...)
}

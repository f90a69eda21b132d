package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// server is a tenon serve at work. A configuration that is loaded again is a new
// host on the same store; the old one lets its steps end, and its runs go on
// under the new one.
type server struct {
	a       *app
	flags   *serveFlags
	address string                       // of TCP, "" for none
	local   atomic.Pointer[http.Handler] // of the host in charge, at the socket
	remote  atomic.Pointer[http.Handler] // the same over TCP
	last    http.Handler                 // what remote becomes with the next host in charge
	host    *host.Host
	leave   context.CancelFunc // ends that host's supervision
	work    sync.WaitGroup     // supervisions
	old     sync.WaitGroup     // hosts that were put aside
	cut     context.Context    // ends when those have no more time
	token   tenon.Secret       // of the person who started it; zero: none is asked for
	files   watcher            // of the configuration
	again   chan chan<- error  // asks for a reload and hears how it went
}

// at serves what a pointer holds at the moment.
func (s *server) at(p *atomic.Pointer[http.Handler]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*p.Load()).ServeHTTP(w, r) })
}

// charge puts a host in charge.
func (s *server) charge(ctx context.Context, h *host.Host) {
	handler, remote := httpapi.Handler(h), s.last
	s.local.Store(&handler)
	s.remote.Store(&remote)
	work, leave := context.WithCancel(ctx)
	s.host, s.leave = h, leave
	s.work.Go(func() { h.Supervise(work) })
	s.work.Go(func() { h.Retain(work) })
	s.work.Go(func() { h.ConnectEager(work) })
}

// reload loads the configuration again. If it is not good, the last one stays, and
// the log and the error say why.
func (s *server) reload(ctx context.Context) error {
	log := s.host.Logger()
	cfg, err := s.a.load(ctx, nil)
	if err == nil {
		err = s.a.consent(ctx, cfg)
	}
	var next *host.Host
	if err == nil {
		next, err = s.host.Reopen(cfg)
	}
	if err == nil && s.address != "" {
		var remote http.Handler
		if remote, err = s.tcpHandler(ctx, next); err == nil {
			s.last = remote
		} else {
			err = errors.Join(err, next.Close())
		}
	}
	if err != nil {
		log.Error("the configuration is not reloaded, the last good one stays: " + err.Error())
		return err
	}
	old, leave := s.host, s.leave
	s.charge(ctx, next)
	leave()
	s.old.Go(func() {
		old.Drain(s.cut)
		if err := old.Close(); err != nil {
			log.Warn("the last configuration was not closed well: " + err.Error())
		}
	})
	s.files.meet(cfg.Files())
	log.Info("config reloaded", "file", cfg.File, "servers", len(next.Servers()))
	return nil
}

// edit changes the project's file for its owner, who agrees to what it starts by
// writing it, and has it loaded. Without write it only says what would be.
func (s *server) edit(ctx context.Context, e config.Edits, write bool) (*config.Plan, error) {
	p, err := config.PlanEdit(ctx, s.a.configOptions(), e)
	if err == nil && write {
		err = p.Write(ctx)
	}
	if err != nil || !write {
		return p, err
	}
	changed := map[string]bool{}
	for _, c := range e.Changes {
		changed[c.Section+"."+c.Name] = true
	}
	if err := s.a.writeConsent(slices.DeleteFunc(wishes(p.Config), func(w wish) bool { return !changed[w.path] })); err != nil {
		return p, err
	}
	done := make(chan error, 1)
	select {
	case s.again <- done:
	case <-ctx.Done():
		return p, ctx.Err()
	}
	select {
	case err := <-done:
		if err != nil {
			err = tenon.Errorf(tenon.ErrorCode(err), "%s is written, but not loaded: %w", p.File, err)
		}
		return p, err
	case <-ctx.Done():
		return p, ctx.Err()
	}
}

// stop lets what is under way end, as long as the grace allows.
func (s *server) stop(grace time.Duration, cut context.CancelFunc) {
	s.leave()
	rest, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	s.host.Drain(rest)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.old.Wait()
	}()
	select {
	case <-done:
	case <-rest.Done():
	}
	cut()
	<-done
	s.work.Wait()
}

// hangups returns the SIGHUPs that ask for a reload. The terminal that goes away
// sends one, too: see gone.
func hangups() (got chan os.Signal, stop func()) {
	got = make(chan os.Signal, 1)
	signal.Reset(syscall.SIGHUP) // it ends other verbs
	signal.Notify(got, syscall.SIGHUP)
	return got, func() { signal.Stop(got) }
}

// gone reports whether the terminal that tenon serve was started at has gone.
func (a *app) gone() bool { return a.errTTY && !isTerminal(a.err) }

// watchEvery is how often the files of the configuration are looked at.
const watchEvery = 500 * time.Millisecond

// watcher sees when files of the configuration change.
type watcher struct {
	seen  map[string]string // path → what it was like
	dirty bool              // changed at the last look, and perhaps still being written
}

// like says what files are like.
func like(files []string) map[string]string {
	out := make(map[string]string, len(files))
	for _, f := range files {
		out[f] = "none"
		if st, err := os.Stat(f); err == nil {
			out[f] = fmt.Sprint(st.Size(), st.ModTime().UnixNano(), st.Mode())
		}
	}
	return out
}

// meet takes down what files are like that were not looked at before, so that a change
// before the next look is one.
func (w *watcher) meet(files []string) {
	if w.seen == nil {
		w.seen = map[string]string{}
	}
	for f, is := range like(files) {
		if _, known := w.seen[f]; !known {
			w.seen[f] = is
		}
	}
}

// changed reports whether the files are not what they were, and stay so for a
// moment: an editor writes in several steps.
func (w *watcher) changed(files []string) bool {
	now, same := like(files), true
	for f, is := range now {
		if was, known := w.seen[f]; known && was != is {
			same = false
		}
	}
	w.seen = now
	settled := w.dirty && same
	w.dirty = !same
	return settled
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/internal/forward"
)

// server is a running tenon serve. A reload of the configuration opens a new host on the same store. The old host
// finishes its current steps, and the new one continues its runs.
type server struct {
	a        *app
	flags    *serveFlags
	gateway  *gateway.Gateway   // kept when the host is replaced, so that clients stay connected
	replicas *forward.Forwarder // kept, too; nil if only this process can serve the store
	address  string             // TCP address, or "" if there is none
	surface  *surface           // handler of the current host; turn guards it
	turn     sync.RWMutex       // held while a request finds its surface
	last     http.Handler       // TCP handler of the next surface; charge reads it
	host     *host.Host
	leave    context.CancelFunc          // stops the current host's goroutines
	work     sync.WaitGroup              // goroutines of hosts
	old      sync.WaitGroup              // hosts that were replaced and are draining
	cut      context.Context             // done when replaced hosts must stop
	token    tenon.Secret                // bearer token of the owner; if zero, requests need none
	oauth    httpapi.OAuth               // keys of the issuers of access tokens
	files    watcher                     // of the configuration
	watching []string                    // paths that files checks
	loaded   *config.Config              // the files as they were last read
	loadedAt time.Time                   // when reading them began
	again    chan order                  // requests for a reload
	version  atomic.Uint64               // incremented when a field that mu guards changes
	logger   atomic.Pointer[slog.Logger] // of the current host
	editing  sync.Mutex                  // one change of the files at a time

	spellings config.Spellings // original spellings of changed values, for changes back

	mu        sync.Mutex // guards the fields below
	running   *config.Config
	since     time.Time      // when running was read
	held      *config.Update // changes on disk that are held back; may be nil
	heldSince time.Time
	open      []proposed
}

// charge makes a host the current one and starts its goroutines.
func (s *server) charge(ctx context.Context, h *host.Host) {
	s.gateway.Use(h)
	handler := httpapi.New(h, httpapi.Config{Editor: s, Keys: s, CommandLine: true, Gateway: s.gateway,
		CancelLeft: h.Service().Info().Config.Serve.OnDisconnect == config.DisconnectCancel})
	s.show(&surface{local: handler, remote: s.last})
	work, leave := context.WithCancel(ctx)
	s.host, s.leave = h, leave
	s.logger.Store(h.Service().Info().Logger)
	s.work.Go(func() { h.Service().Supervise(work) })
	s.work.Go(func() { h.Service().Storage().Retain(work) })
	s.work.Go(func() { h.Service().Storage().State().Keep(work) })
	s.work.Go(func() { h.Service().Connect(work) })
}

// reload loads the configuration again. Changes that only tighten rules take effect at once. Changes that loosen rules,
// or that start, send or open something new, are held back until the owner agrees. The owner agrees with accept (the
// digest of the shown changes), by making the change with a tenon command, or with tenon trust. If the files are not
// valid, the current configuration stays, and the log and the error give the reason. If again is set, the current
// configuration is reopened even without changes, because its secrets may have changed.
func (s *server) reload(ctx context.Context, accept string, again bool) error {
	log, began := s.host.Service().Info().Logger, time.Now()
	running := s.current()
	u, err := config.LoadUpdate(ctx, s.a.configOptions(), running)
	if tenon.ErrorCode(err) == tenon.CodeNotFound && s.a.config == "" && running.Path == "" {
		if again {
			return s.apply(ctx, running)
		}
		return nil // there is still no file
	}
	var v verdict
	if err == nil {
		u.Whole.Found = u.Whole.Found || s.a.configFound
		err = s.mayBegin(u, accept)
	}
	if err == nil {
		s.a.warn(u.Whole)
		v, err = s.a.judgeTrust(ctx, u.Whole) // refuses files that other users can write
	}
	if err == nil && accept != "" && accept != u.Digest {
		return tenon.Errorf(tenon.CodeConflict, "the files were changed meanwhile; look at the changes again: %s",
			s.a.again("proposals", "list"))
	}
	if err != nil {
		log.Error("the configuration is not reloaded, the last good one stays: " + err.Error())
		return err
	}
	agreed := len(u.Held) == 0 || accept != "" || s.agreedTo(u, v)
	next, held := u.Now, u
	if agreed {
		next, held = u.Whole, nil
	}
	if begins := running.Path == "" && u.Whole.Path != ""; begins && !agreed {
		next = nil // the new file holds as a whole or not at all
	}
	if next == nil && again {
		next = running
	}
	if next != nil {
		if v, err = s.use(ctx, next, v); err != nil {
			log.Error("the configuration is not reloaded, the last good one stays: " + err.Error())
			return err
		}
	}
	s.loaded, s.loadedAt = u.Whole, began
	s.mu.Lock()
	if next != nil {
		s.running, s.since = next, began
	}
	s.held = held
	s.open = slices.DeleteFunc(s.open, func(p proposed) bool { return p.unused != "" })
	if held != nil {
		s.heldSince = began
	}
	s.version.Add(1)
	s.mu.Unlock()
	s.watch()
	if held != nil {
		log.Warn(heldText(held)+"; look at them with: "+s.a.again("proposals", "list"), "file", u.Whole.File)
	}
	if accept != "" && len(u.Held) > 0 && v.How != trustNamed && v.How != trustNoProject {
		s.a.keepTrust(v) // record the trust, so that the next start does not ask again
	}
	if next != nil {
		log.Info("config reloaded", "file", next.File, "servers", len(s.host.Service().Connections()))
	}
	return nil
}

// mayBegin refuses a project's file that was written where there was none, unless the owner wrote it with tenon or
// accepts it. Anybody else's file is used when tenon starts again, which asks about it.
func (s *server) mayBegin(u *config.Update, accept string) error {
	s.mu.Lock()
	running, since := s.running, s.since
	s.mu.Unlock()
	if running.Path != "" || u.Whole.Path == "" || accept != "" ||
		s.a.isOwnEdit(u.Whole.Path, "", u.Whole.FileDigest(u.Whole.Path), since) {
		return nil
	}
	return tenon.Errorf(tenon.CodeConflict, "%s is new, and tenon did not write it; start tenon serve again to use it",
		u.Whole.Path)
}

// use applies a configuration. If it has the first file of this project, the runs stay in the store where they are, and
// the demo's server stays. It returns the verdict about the project, which names that store.
func (s *server) use(ctx context.Context, next *config.Config, v verdict) (verdict, error) {
	undo, running := func() {}, s.current()
	if next.Path != "" && running.Path == "" {
		var err error
		if undo, err = host.KeepUserStore(s.a.storeOf(next)); err != nil {
			return v, err
		}
		recorded := v.How == trustRecorded
		if v, err = s.a.judgeTrust(ctx, next); err != nil {
			undo()
			return v, err
		}
		if recorded { // the list of what the project does names the store
			s.a.keepTrust(v)
		}
	}
	if _, had := running.Servers[demoName]; had {
		s.a.addDemo(ctx, next)
	}
	if err := s.apply(ctx, next); err != nil {
		undo()
		return v, err
	}
	return v, nil
}

// agreedTo reports whether the owner has agreed to changes outside of this process, by editing the files with tenon
// commands or by trusting the project in its current state.
func (s *server) agreedTo(u *config.Update, v verdict) bool {
	s.mu.Lock()
	running, since := s.running, s.since
	s.mu.Unlock()
	own := map[config.Layer]bool{}
	for _, l := range []config.Layer{config.LayerProject, config.LayerUser} {
		if path := u.Whole.LayerFile(l); path != "" {
			own[l] = s.a.isOwnEdit(path, running.FileDigest(path), u.Whole.FileDigest(path), since)
		}
	}
	// The time of the record has whole seconds.
	trusted := v.Record != nil && v.Diff.Empty() && v.Record.When.Add(time.Second).After(since)
	return !slices.ContainsFunc(u.Held, func(d config.Difference) bool {
		named := own[d.Layer] && (!d.File || d.Before == "") // covers a new file that the edit refers to
		if d.File && !named {
			path := filepath.FromSlash(d.Path)
			if !filepath.IsAbs(path) {
				path = filepath.Join(u.Whole.Dir, path)
			}
			named = s.a.isOwnEdit(path, running.FileDigest(path), u.Whole.FileDigest(path), since)
		}
		return !named && !(trusted && d.Layer == config.LayerProject)
	})
}

// watch updates the list of watched files. If a file has changed since it was read, the next check reloads it.
func (s *server) watch() {
	s.watching = s.watched()
	s.files.meet(s.watching)
	s.files.dirty = s.files.dirty || slices.ContainsFunc(s.watching, s.isStale) ||
		slices.ContainsFunc(s.loaded.Files(), s.appeared)
}

// appeared reports whether a file that did not exist when the configuration was last read was written since.
func (s *server) appeared(path string) bool {
	if s.loaded.FileDigest(path) != "" {
		return false
	}
	st, err := os.Stat(path)
	return err == nil && st.ModTime().After(s.loadedAt)
}

// isStale reports whether a file has changed since the configuration was last read.
func (s *server) isStale(path string) bool {
	was := s.loaded.FileDigest(path)
	if was == "" {
		return false
	}
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxNote {
		return errors.Is(err, fs.ErrNotExist)
	}
	b, err := os.ReadFile(path)
	return err == nil && digestOf(b) != was
}

// watched returns the files whose changes lead to a reload: the files of the current configuration and of a held one,
// the scripts of commands, and the trust record.
func (s *server) watched() []string {
	s.mu.Lock()
	list := []*config.Config{s.running}
	if s.held != nil {
		list = append(list, s.held.Whole)
	}
	s.mu.Unlock()
	var files []string
	for _, c := range list {
		files = append(files, c.Files()...)
		p, err := c.Project()
		if err != nil || p.Path == "" {
			continue
		}
		for name := range p.Files {
			if name = filepath.FromSlash(name); !filepath.IsAbs(name) {
				name = filepath.Join(c.Dir, name)
			}
			files = append(files, name)
		}
		if record := s.a.trustStore().File(p); record != "" {
			files = append(files, record)
		}
	}
	if len(list) == 1 && list[0].Path == "" && s.a.config == "" { // a file that the owner writes here is used
		files = append(files, config.FileToWrite(s.a.configOptions()))
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// apply opens a host with another configuration and makes it the current one. The old host drains and closes.
func (s *server) apply(ctx context.Context, cfg *config.Config) error {
	if err := s.a.agreeTables(ctx, cfg); err != nil {
		return err
	}
	next, err := s.host.Reopen(cfg)
	if err != nil {
		return err
	}
	if s.address != "" {
		remote, err := s.tcpHandler(ctx, next)
		if err != nil {
			return errors.Join(err, next.Close())
		}
		s.last = remote
	}
	old, before, leave := s.host, s.surface, s.leave
	s.charge(ctx, next)
	s.announceReplica(ctx, next)
	leave()
	s.old.Go(func() {
		old.Service().Drain(s.cut)
		before.answered(s.cut)
		if err := old.Close(); err != nil {
			next.Service().Info().Logger.Warn("closing the previous configuration: " + err.Error())
		}
	})
	return nil
}

// stop waits for the steps of replaced hosts to end, at most until ctx ends, and then cancels all that are left.
func (s *server) stop(ctx context.Context, cut context.CancelFunc) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.old.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	cut()
	if s.replicas != nil {
		s.replicas.Close()
	}
	_ = s.gateway.Close() // it always succeeds
	<-done
	s.work.Wait()
}

// hangups returns a channel of the SIGHUPs that request a reload. A terminal that closes also sends SIGHUP: see gone.
func hangups() (got chan os.Signal, stop func()) {
	got = make(chan os.Signal, 1)
	signal.Reset(syscall.SIGHUP) // for other verbs, SIGHUP ends the process
	signal.Notify(got, syscall.SIGHUP)
	return got, func() { signal.Stop(got) }
}

// gone reports whether the terminal that started tenon serve has closed.
func (a *app) gone() bool { return a.errTTY && !isTerminal(a.err) }

// checkEvery is the interval of checks for changes that other processes make: to the files of the configuration, and to
// the owner of a followed run.
const checkEvery = 500 * time.Millisecond

// watcher detects changes of the configuration files.
type watcher struct {
	seen  map[string]string // path → size, time and mode at the last check
	dirty bool              // a file had changed at the last check and may still be written
}

// like returns the size, time and mode of files as one text each.
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

// meet records the state of files that are not watched yet, so that the next check detects a change.
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

// changed reports whether the files had changed at the previous check and are stable since. An editor may write a file
// in several steps.
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

package servers

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon/transport"
)

// Starting reports a server that takes a long time to connect.
type Starting struct {
	Server string
	Target string        // its command line or URL, without credentials
	Limit  time.Duration // the timeout of the connect
	// Runner is the package runner of the command, such as npx, and Package the package that it may have to fetch.
	// Each is "" if it is not known.
	Runner, Package string
	// Line is the latest line that the process wrote to stderr, or "". It is masked, bounded and one line.
	Line string
}

// String describes what the server is doing: the latest line, "npx is starting PACKAGE, or fetching it first", or
// "still starting". A runner does not say whether it has the package already.
func (s Starting) String() string {
	switch {
	case s.Line != "":
		return s.Line
	case s.Package != "":
		return fmt.Sprintf("%s is starting %s, or fetching it first", s.Runner, s.Package)
	case s.Runner != "":
		return s.Runner + " is starting it, or fetching it first"
	}
	return "still starting"
}

// The times after which a slow start is reported. A package runner is reported earlier, because people wait more
// patiently when they know that something may be fetched.
const (
	slowAfter    = 3 * time.Second
	fetchesAfter = time.Second
	// lineEvery is the minimum time between two reports of lines.
	lineEvery = 2 * time.Second
	// maxLine bounds a reported line in bytes.
	maxLine = 200
)

// slowStart reports one attempt to connect. It runs in the goroutine of the attempt's timers.
type slowStart struct {
	s   *Server
	now Starting

	mu    sync.Mutex
	begun bool
	ended bool
	timer *time.Timer
	last  time.Time // of the last report
	line  string    // not reported yet
	told  string    // the last reported line
	wg    sync.WaitGroup
}

// watchStart begins to watch an attempt. The caller must call stop.
func (s *Server) watchStart() *slowStart {
	w := &slowStart{s: s, now: Starting{Server: s.name, Target: short(s.target()), Limit: s.cfg.Timeout}}
	pause := slowAfter
	if s.cfg.Transport == TransportStdio {
		w.now.Runner, w.now.Package = s.cfg.fetches()
		w.now.Package = short(transport.MaskURLs(s.masked(w.now.Package)))
	}
	if w.now.Runner != "" {
		pause = fetchesAfter
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(pause, w.report)
	return w
}

// stop ends the reports and waits for one that is under way.
func (w *slowStart) stop() {
	w.mu.Lock()
	w.ended = true
	w.timer.Stop()
	w.mu.Unlock()
	w.wg.Wait()
}

// said reports a line of stderr soon. It never blocks.
func (w *slowStart) said(line string) {
	line = strings.TrimSpace(line)
	if line == "" {
		return
	}
	if len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "") + "…"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if line == w.told {
		return // a repeated line says nothing new
	}
	pending := w.line != ""
	w.line = line
	if w.begun && !pending && !w.ended {
		w.timer.Reset(max(0, lineEvery-time.Since(w.last)))
	}
}

// report calls Options.Slow.
func (w *slowStart) report() {
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return
	}
	w.wg.Add(1)
	defer w.wg.Done()
	now := w.now
	now.Line, w.line = w.line, ""
	first := !w.begun
	w.begun, w.last = true, time.Now()
	if first && now.Line != "" && now.Runner != "" { // first report which package is fetched, then the line
		w.line, now.Line = now.Line, ""
		w.timer.Reset(lineEvery)
	}
	w.told = now.Line
	w.mu.Unlock()
	w.s.mu.Lock()
	if w.s.status.State == StateStarting {
		w.s.status.Progress = now.String()
	}
	w.s.mu.Unlock()
	if first && now.Runner != "" {
		w.s.note("state", now.String())
	}
	if w.s.opts.Slow != nil {
		w.s.opts.Slow(now)
	}
}

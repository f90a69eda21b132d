package servers

import (
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon/jsonrpc"
)

// SkippedLog begins the log messages about messages of a server that were skipped; see [jsonrpc.SkippedLog].
const SkippedLog = jsonrpc.SkippedLog

// A server may say as much as it likes, and each word of it costs: it is decoded, masked, logged
// and shown. So what is not an answer passes a bucket of tokens, one for each kind and server, and
// what finds it empty is dropped and counted. Calls are never held up.

// The kinds of what a server says beside answers.
const (
	kindLog      = "log message"
	kindStderr   = "line of stderr"
	kindProgress = "notice of progress"
	kindTask     = "notice of a task"
)

// allowance is how much of a kind is let through: at once, and each second.
type allowance struct{ burst, perSecond float64 }

// allowances are far above what a server says that means to be read.
var allowances = map[string]allowance{
	kindLog:      {500, 50},
	kindStderr:   {500, 50},
	kindProgress: {200, 20},
	kindTask:     {50, 5},
}

// floodWindow is how long drops are counted before they are reported.
const floodWindow = 10 * time.Second

// flood holds the buckets of one server. The zero value, with a report, is ready.
type flood struct {
	// report is called with what was dropped, as words. It must not call admit.
	report func(text string)

	mu      sync.Mutex
	buckets map[string]*bucket
	timer   *time.Timer
	closed  bool
}

type bucket struct {
	tokens  float64
	filled  time.Time
	dropped int
}

// admit reports whether something is let through. It never blocks.
func (f *flood) admit(kind string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, allowed := time.Now(), allowances[kind]
	b := f.buckets[kind]
	if b == nil {
		if f.buckets == nil {
			f.buckets = map[string]*bucket{}
		}
		b = &bucket{tokens: allowed.burst, filled: now}
		f.buckets[kind] = b
	}
	b.tokens = min(allowed.burst, b.tokens+max(now.Sub(b.filled).Seconds(), 0)*allowed.perSecond)
	b.filled = now
	if b.tokens >= 1 {
		b.tokens--
		return true
	}
	b.dropped++
	if f.timer == nil && !f.closed {
		f.timer = time.AfterFunc(floodWindow, f.tell)
	}
	return false
}

// tell reports what was dropped since the last time.
func (f *flood) tell() {
	f.mu.Lock()
	f.timer = nil
	var parts []string
	for _, kind := range []string{kindLog, kindStderr, kindProgress, kindTask} {
		if b := f.buckets[kind]; b != nil && b.dropped > 0 {
			parts = append(parts, several(b.dropped, kind))
			b.dropped = 0
		}
	}
	f.mu.Unlock()
	if len(parts) > 0 {
		f.report(strings.Join(parts, " and ") + " came too fast and were dropped")
	}
}

// close reports what is left to report.
func (f *flood) close() {
	f.mu.Lock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
	f.mu.Unlock()
	f.tell()
}

// several counts things: 1 line of stderr, 9,412 lines of stderr.
func several(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	first, rest, _ := strings.Cut(noun, " of ")
	if rest != "" {
		rest = " of " + rest
	}
	return grouped(n) + " " + first + "s" + rest
}

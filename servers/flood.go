package servers

import (
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon/jsonrpc"
)

// SkippedLog is the beginning of log messages about skipped messages of a server; see [jsonrpc.SkippedLog].
const SkippedLog = jsonrpc.SkippedLog

// A server may send any number of messages, and each one costs time: it is decoded, masked, logged and shown. So a
// token bucket for each server and kind of message limits all messages that are not responses. A message that finds
// its bucket empty is dropped and counted. Calls are never delayed.

// The kinds of messages that are limited.
const (
	kindLog      = "log message"
	kindStderr   = "line of stderr"
	kindProgress = "notice of progress"
	kindTask     = "notice of a task"
	kindUnused   = "notice of another kind"
)

// allowance is the size of a token bucket, and the number of messages that it admits each second.
type allowance struct{ burst, perSecond float64 }

// allowances is far above the rates at which a person can still read the messages.
var allowances = map[string]allowance{
	kindLog:      {500, 50},
	kindStderr:   {500, 50},
	kindProgress: {200, 20},
	kindTask:     {50, 5},
	kindUnused:   {50, 5},
}

// floodWindow is how long drops are counted before they are reported.
const floodWindow = 10 * time.Second

// flood contains the buckets of one server. The zero value with report set is ready to use.
type flood struct {
	// report is called with a text about the dropped messages. It must not call admit.
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

// admit reports whether a message may pass. It never blocks.
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

// tell reports the messages that were dropped since the last report.
func (f *flood) tell() {
	f.mu.Lock()
	f.timer = nil
	var parts []string
	for _, kind := range []string{kindLog, kindStderr, kindProgress, kindTask, kindUnused} {
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

// close reports the drops that were not reported yet.
func (f *flood) close() {
	f.mu.Lock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
	f.mu.Unlock()
	f.tell()
}

// several returns a count with its noun: 1 line of stderr, 9,412 lines of stderr.
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

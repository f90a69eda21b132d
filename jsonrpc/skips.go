package jsonrpc

import (
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
)

// SkippedLog begins the log messages about received messages that were skipped, because they cannot be read or are too
// large. A [Peer] logs them.
const SkippedLog = "skipped "

// skips logs consecutive skipped messages without flooding the log. It logs the first three and then each
// power of ten. When the sequence ends, it logs how many more were skipped.
type skips struct {
	running atomic.Bool // false in the usual case, which then needs no lock
	mu      sync.Mutex
	kinds   map[string]*skipped
}

type skipped struct {
	n     int64 // consecutive skips
	quiet int64 // skips since the last logged one
}

func (s *skips) add(log *slog.Logger, what string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[what]
	if k == nil {
		if s.kinds == nil {
			s.kinds = make(map[string]*skipped)
		}
		k = &skipped{}
		s.kinds[what] = k
	}
	s.running.Store(true)
	k.n++
	if k.n > 3 && !powerOfTen(k.n) {
		k.quiet++
		return
	}
	k.quiet = 0
	if k.n > 3 {
		args = append(args, "in_a_row", k.n)
	}
	log.Warn(SkippedLog+"a message "+what, args...)
}

// end ends the sequence. It is called for each readable message and at the end of the connection.
func (s *skips) end(log *slog.Logger) {
	if !s.running.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for what, k := range s.kinds {
		if k.quiet > 0 {
			log.Warn(fmt.Sprintf(SkippedLog+"%s more %s", grouped(k.quiet), what))
		}
	}
	clear(s.kinds)
	s.running.Store(false)
}

func powerOfTen(n int64) bool {
	for n >= 10 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}

// grouped formats 9412 as 9,412.
func grouped(n int64) string {
	b := strconv.FormatInt(n, 10)
	for i := len(b) - 3; i > 0; i -= 3 {
		b = b[:i] + "," + b[i:]
	}
	return b
}

package servers

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// LogLine is a line that a server wrote, a log message of it, or an event of its connection.
type LogLine struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"` // stderr, notice (a log message of the protocol), state, error
	Text string    `json:"text"`
}

const (
	maxJournal = 256 << 10              // maximum size of one file; there are two
	maxPending = 64 << 10               // maximum size of the lines that wait to be written
	writeEvery = 200 * time.Millisecond // interval between writes, so that many lines cost few writes
)

// journal keeps the output and events of a server in a file of bounded size, so that other processes can read them,
// also after this process has ended. It never delays the server: lines that arrive faster than they can be written
// are dropped, the oldest first. A nil journal keeps nothing.
type journal struct {
	path string

	mu      sync.Mutex // not held while writing
	pending []byte
	dropped int
	timer   *time.Timer
	closed  bool

	file sync.Mutex // held while writing
}

func newJournal(dir, name string) *journal {
	if dir == "" {
		return nil
	}
	return &journal{path: filepath.Join(dir, name+".jsonl")}
}

func (j *journal) add(kind, text string) {
	if j == nil {
		return
	}
	line, err := json.Marshal(LogLine{time.Now().UTC(), kind, text})
	if err != nil {
		return
	}
	if j.keep(line) {
		j.flush()
	}
}

// keep adds a line to the pending ones. It reports whether they should be written at once.
func (j *journal) keep(line []byte) (now bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending = append(append(j.pending, line...), '\n')
	for len(j.pending) > maxPending {
		n := bytes.IndexByte(j.pending, '\n')
		j.pending = j.pending[n+1:]
		j.dropped++
	}
	if j.timer == nil && !j.closed {
		j.timer = time.AfterFunc(writeEvery, j.flush)
	}
	return j.closed
}

// take returns the pending lines, and the number of lines that were dropped before them.
func (j *journal) take() (lines []byte, dropped int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.timer = nil
	lines, dropped = j.pending, j.dropped
	j.pending, j.dropped = nil, 0
	return lines, dropped
}

// flush appends the pending lines to the file. It ignores errors: a missing log does no harm, and there is nowhere to
// report it.
func (j *journal) flush() {
	j.file.Lock() // first, so that lines stay in order
	defer j.file.Unlock()
	lines, dropped := j.take()
	if len(lines) == 0 || os.MkdirAll(filepath.Dir(j.path), 0o700) != nil {
		return
	}
	if st, err := os.Stat(j.path); err == nil && st.Size() > maxJournal {
		_ = os.Rename(j.path, j.path+".old")
	}
	f, err := os.OpenFile(j.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	if dropped > 0 {
		if note, err := json.Marshal(LogLine{time.Now().UTC(), "state",
			grouped(dropped) + " lines came too fast and were dropped"}); err == nil {
			_, _ = f.Write(append(note, '\n'))
		}
	}
	_, _ = f.Write(lines)
	_ = f.Close()
}

func (j *journal) close() {
	if j == nil {
		return
	}
	j.mu.Lock()
	if j.timer != nil {
		j.timer.Stop()
	}
	j.closed = true
	j.mu.Unlock()
	j.flush()
}

// Logs returns the last n lines of the server's log, oldest first, or all lines if n is 0. They include lines of
// earlier processes.
func (s *Server) Logs(n int) []LogLine {
	if s.journal == nil {
		return nil
	}
	s.journal.flush()
	var all []LogLine
	for _, path := range []string{s.journal.path + ".old", s.journal.path} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // there is none yet
		}
		for line := range bytes.Lines(b) {
			var l LogLine
			if json.Unmarshal(line, &l) == nil {
				all = append(all, l)
			}
		}
	}
	if n > 0 && len(all) > n {
		all = all[len(all)-n:]
	}
	return all
}

// grouped writes 9412 as 9,412.
func grouped(n int) string {
	b, _ := json.Marshal(n)
	for i := len(b) - 3; i > 0; i -= 3 {
		b = append(b[:i:i], append([]byte{','}, b[i:]...)...)
	}
	return string(b)
}

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/figures/floor"
)

// journalRuns is the number of runs in one round. Together they stay below the size at which SQLite restarts
// its write-ahead log, so that all commits can be counted in it.
const journalRuns = 4

// measureJournal compares runs on a real host, whose journal is in a file, with bare commits of SQLite. It counts the
// commits of the runs in SQLite's write-ahead log, and makes as many bare commits of the same size.
func measureJournal(s *session) error {
	var values, commits, turns []float64
	for round := range s.rounds {
		r, err := s.journalRound(filepath.Join(s.tmp, fmt.Sprintf("journal-%d", round)))
		if err != nil {
			return err
		}
		perTurn := float64(r.commits) / float64(journalRuns*(instantTurns+1))
		commits = append(commits, perTurn)
		turns = append(turns, float64(r.took.Microseconds())/float64(journalRuns*(instantTurns+1)))
		values = append(values, r.took.Seconds()/(float64(r.commits)*r.bare.Seconds()))
	}
	s.add("P5.journal", "turns with the journal against as many bare commits of the same bytes", "ratio", values)
	s.add("P5.journal.commits", "durable commits of one turn, counted in the write-ahead log", "", commits)
	s.add("P5.journal.turn", "one turn with the journal, wall time", "µs", turns)
	return nil
}

// journaled holds the results of one round.
type journaled struct {
	took    time.Duration // duration of all runs
	commits int           // commits of all runs
	bare    time.Duration // duration of one bare commit
}

func (s *session) journalRound(dir string) (r journaled, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return r, err
	}
	h, err := host.Open(s.ctx, host.Config{
		Home:     dir,
		Models:   map[string]tenon.Model{"instant": instantModel{}},
		Toolsets: map[string]tenon.Toolset{instantServer: instantTools{}},
	})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	bare, err := floor.OpenCommits(s.ctx, filepath.Join(dir, "bare.db"))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()

	// The first run includes one-time initialization. It determines the number of bytes of a commit.
	wal := filepath.Join(dir, "tenon.db-wal")
	before, err := readWAL(wal)
	if err != nil {
		return r, err
	}
	_, bytes, err := s.journaledRun(h)
	if err != nil {
		return r, err
	}
	after, err := readWAL(wal)
	if err != nil {
		return r, err
	}
	each := after.commits - before.commits
	if each <= 0 {
		return r, fmt.Errorf("a run left no commit in %s", wal)
	}
	row := make([]byte, bytes/each)

	var bareTook time.Duration
	for range journalRuns {
		begun := time.Now()
		for range each {
			if err := bare.One(s.ctx, row); err != nil {
				return r, err
			}
		}
		bareTook += time.Since(begun)
		took, _, err := s.journaledRun(h)
		if err != nil {
			return r, err
		}
		r.took += took
	}
	end, err := readWAL(wal)
	if err != nil {
		return r, err
	}
	// A new store has no log before its first commit.
	if end.salt != after.salt || before.commits > 0 && before.salt != after.salt {
		return r, errors.New("the write-ahead log was restarted during a round, so its commits cannot be counted; " +
			"lower journalRuns")
	}
	r.commits = end.commits - after.commits
	r.bare = bareTook / time.Duration(journalRuns*each)
	return r, nil
}

// journaledRun asks once and follows the run to its end. It returns the duration and the size of the stored
// events in bytes.
func (s *session) journaledRun(h *host.Host) (took time.Duration, bytes int, err error) {
	var events []tenon.Event
	begun := time.Now()
	for e, err := range h.Stream(s.ctx, host.Question{Text: "What is the weather in London?", Model: "instant",
		MaxTurns: instantTurns + 1}) {
		if err != nil {
			return 0, 0, err
		}
		if e.Seq > 0 {
			events = append(events, e.Event)
			bytes += len(e.Data)
		}
	}
	took = time.Since(begun)
	return took, bytes, finished(events)
}

// walState describes a write-ahead log.
type walState struct {
	salt    uint64
	commits int
}

// readWAL counts the commits in a write-ahead log: frames with the current salt that contain the size of the
// database after the commit (SQLite file format, section 4.1). A missing file has no commits.
func readWAL(path string) (walState, error) {
	const header, frameHeader = 32, 24
	var w walState
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return w, nil
	} else if err != nil {
		return w, err
	}
	defer f.Close()
	var b [header]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return w, nil // still empty
	}
	page := int64(binary.BigEndian.Uint32(b[8:]))
	w.salt = binary.BigEndian.Uint64(b[16:])
	for offset := int64(header); ; offset += frameHeader + page {
		if _, err := f.ReadAt(b[:frameHeader], offset); err != nil {
			return w, nil // end of the file
		}
		if binary.BigEndian.Uint64(b[8:]) != w.salt {
			return w, nil // frame of an earlier log
		}
		if binary.BigEndian.Uint32(b[4:]) != 0 {
			w.commits++
		}
	}
}

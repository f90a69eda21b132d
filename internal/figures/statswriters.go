package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon/store/signed"
	"github.com/tenonhq/tenon/store/sqlite"
)

// Scale of STATS.writers: the runs of the store of issue 18, and the runs that are stored in each measurement.
const (
	statsIssueRuns = 75_486
	statsWriters   = 4
	statsAppends   = 2000
)

// measureStatsWriters measures statistics over the summaries of 75,486 runs on an idle store, and again while four
// writers store runs. It also measures the appends of these writers, next to statistics and without them.
func measureStatsWriters(s *session) error {
	bin := filepath.Join(s.tmp, "tenon")
	if err := s.build(bin, "./cmd/tenon"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.tmp, "stats-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	home := filepath.Join(dir, ".tenon")
	pattern, err := manyRuns(s.ctx, home, statsIssueRuns, true)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "tenon.yaml"), []byte("servers: {}\n"), 0o600); err != nil {
		return err
	}
	key, err := signed.NewKey([]byte(statsKey))
	if err != nil {
		return err
	}
	st, err := sqlite.Open(s.ctx, sqlite.Config{Path: filepath.Join(home, "tenon.db"), Key: key})
	if err != nil {
		return err
	}
	w := &statsWriter{store: st, pattern: pattern, next: statsIssueRuns}
	return errors.Join(w.measure(s, bin, dir), w.store.Close())
}

// statsWriter stores copies of a run.
type statsWriter struct {
	store   *sqlite.Store
	pattern runPattern
	next    int // number of the next copy
}

// measure records the figures.
func (w *statsWriter) measure(s *session, bin, dir string) error {
	var idle, busy, appends, beside []float64
	for range s.rounds {
		took, out, err := statsCommand(s.ctx, bin, dir, "stats", "tools", "-o", "json")
		if err == nil && strings.Contains(out, "left out") {
			err = fmt.Errorf("the statistics leave out runs: %.300s", out)
		}
		if err != nil {
			return err
		}
		idle = append(idle, took.Seconds())
		alone, err := w.write(s.ctx)
		if err != nil {
			return err
		}
		appends = append(appends, percentile(alone, 99))
		ctx, stop := context.WithCancel(s.ctx)
		var reader sync.WaitGroup
		reader.Go(func() {
			for ctx.Err() == nil {
				// A command that is stopped at the end is not counted.
				if took, _, err := statsCommand(ctx, bin, dir, "stats", "tools", "-o", "json"); err == nil {
					busy = append(busy, took.Seconds())
				}
			}
		})
		with, err := w.write(s.ctx)
		stop()
		reader.Wait()
		if err != nil {
			return err
		}
		beside = append(beside, percentile(with, 99))
	}
	runs := fmt.Sprintf(" over %d runs", statsIssueRuns)
	s.add("STATS.writers", "tenon stats tools"+runs+" that have summaries", "s", idle)
	s.add("STATS.writers.busy", "the same while four writers store runs", "s", busy)
	s.add("STATS.writers.append", "p99 of an append of these writers without statistics", "ms", appends)
	s.add("STATS.writers.append.busy", "p99 of an append of these writers next to statistics", "ms", beside)
	return nil
}

// write stores runs with all writers. It returns the times of the appends in milliseconds.
func (w *statsWriter) write(ctx context.Context) (took []float64, err error) {
	errs, times := make([]error, statsWriters), make([][]float64, statsWriters)
	var writers sync.WaitGroup
	for i := range statsWriters {
		writers.Go(func() {
			for n := i; n < statsAppends && errs[i] == nil; n += statsWriters {
				began := time.Now()
				errs[i] = w.store.Append(ctx, w.pattern.copy(w.next+n, true))
				times[i] = append(times[i], float64(time.Since(began).Microseconds())/1000)
			}
		})
	}
	writers.Wait()
	w.next += statsAppends
	for _, list := range times {
		took = append(took, list...)
	}
	return took, errors.Join(errs...)
}

package main

import (
	"fmt"
	"time"

	"github.com/tenonhq/tenon/internal/figures/bench"
)

// Layout of the calls of one round. The candidates take turns block by block. A round of four candidates
// takes about five seconds.
const (
	warmCalls    = 1000
	blocks       = 8   // blocks of sequential calls
	blockCalls   = 250 // calls in each block
	loadBlocks   = 4   // blocks of concurrent calls
	loadCallers  = 64
	loadDuration = 150 * time.Millisecond
)

// candidate is a program measured in the same rounds as others.
type candidate struct {
	name    string
	command []string // starts its runner
	rival   bool     // omitted if it fails
	single  bool     // supports only sequential calls
}

// self returns a candidate whose runner is this program.
func (s *session) self(name string) candidate {
	return candidate{name: name, command: []string{s.exe, "child", "runner", name}}
}

// outcome holds the results of one candidate, one value for each round.
type outcome struct {
	p50   []float64 // µs for a sequential call
	rps64 []float64 // calls per second with 64 callers
	bytes []float64 // bytes allocated by both processes for one call
	cpu   []float64 // µs of CPU of both processes for one call
}

// contest measures all candidates in the session's rounds. A rival that fails is omitted from then on, and
// its outcome is missing.
func (s *session) contest(candidates []candidate) (map[string]*outcome, error) {
	outcomes := map[string]*outcome{}
	for _, c := range candidates {
		outcomes[c.name] = &outcome{}
	}
	for round := range s.rounds {
		// Rotate the order, so that each candidate is first at times.
		shifted := append(candidates[round%len(candidates):len(candidates):len(candidates)],
			candidates[:round%len(candidates)]...)
		if err := s.round(shifted, outcomes); err != nil {
			return nil, err
		}
		candidates = remaining(candidates, outcomes)
	}
	return outcomes, nil
}

func remaining(candidates []candidate, outcomes map[string]*outcome) []candidate {
	var left []candidate
	for _, c := range candidates {
		if outcomes[c.name] != nil {
			left = append(left, c)
		}
	}
	return left
}

// entrant is the state of a candidate within a round.
type entrant struct {
	candidate
	runner    *bench.Runner
	latencies []int64
	calls     int // number of latencies
	used      bench.Stat
	loaded    int
	loadTime  time.Duration
}

func (s *session) round(candidates []candidate, outcomes map[string]*outcome) error {
	var in []*entrant
	defer func() {
		for _, e := range in {
			e.runner.Close()
		}
	}()
	for _, c := range candidates {
		r, err := bench.Start(s.ctx, c.name, c.command...)
		if err == nil {
			e := &entrant{candidate: c, runner: r}
			in = append(in, e)
			err = e.warm()
		}
		if err != nil {
			if !c.rival {
				return err
			}
			s.say("%s is omitted: %v", c.name, err)
			delete(outcomes, c.name)
		}
	}
	for b := range blocks + loadBlocks {
		for _, e := range in {
			if outcomes[e.name] == nil || b >= blocks && e.single {
				continue
			}
			if err := e.block(b >= blocks); err != nil {
				if !e.rival {
					return err
				}
				s.say("%s is omitted: %v", e.name, err)
				delete(outcomes, e.name)
			}
		}
	}
	for _, e := range in {
		if o := outcomes[e.name]; o != nil {
			e.score(o)
		}
	}
	return nil
}

func (e *entrant) warm() error {
	if _, err := e.runner.Do(bench.Order{Calls: warmCalls}); err != nil || e.single {
		return err
	}
	_, err := e.runner.Do(bench.Order{Callers: loadCallers, For: loadDuration})
	return err
}

func (e *entrant) block(load bool) error {
	order := bench.Order{Calls: blockCalls}
	if load {
		order = bench.Order{Callers: loadCallers, For: loadDuration}
	}
	r, err := e.runner.Do(order)
	if err != nil {
		return err
	}
	if r.Calls == 0 {
		return fmt.Errorf("%s made no calls", e.name)
	}
	if load {
		e.loaded += r.Calls
		e.loadTime += r.Elapsed
		return nil
	}
	e.latencies = append(e.latencies, r.Latencies...)
	e.calls += r.Calls
	e.used.Alloc += r.Used.Alloc
	e.used.CPU += r.Used.CPU
	return nil
}

// score appends the round's values to the candidate's outcome.
func (e *entrant) score(o *outcome) {
	o.p50 = append(o.p50, percentile(e.latencies, 50)/1e3)
	o.bytes = append(o.bytes, float64(e.used.Alloc)/float64(e.calls))
	o.cpu = append(o.cpu, float64(e.used.CPU)/float64(e.calls)/1e3)
	if !e.single {
		o.rps64 = append(o.rps64, float64(e.loaded)/e.loadTime.Seconds())
	}
}

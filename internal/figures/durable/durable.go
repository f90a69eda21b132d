// Package durable measures the cost of journals: P7 of the project's goals. The program internal/figures and
// this package's own benchmarks call it.
//
//	Steps    P7.steps   steps/s of the engine ÷ bare group-committed inserts
//	Resume   P7.resume  seconds from opening the store to the last run at work
//
// Both use the embedded engine, the SQLite store with all its indexes, and a core that only counts, so that
// the figures measure the journal. Compared values are measured in one run and in turns, because absolute
// values drift with the machine. Package durable depends on the engine and the store, and neither depends on
// it.
package durable

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/local"
	"github.com/tenonhq/tenon/store/sqlite"
)

// ResultSize is the size of a step's result in bytes.
const ResultSize = 1024

// script is the spec of the counting core: the number of steps.
type script struct {
	Steps int `json:"steps"`
}

func (s script) spec(run string) engine.Spec {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // unreachable: an int always encodes
	}
	return engine.Spec{Run: tenon.Run{ID: run, Session: "session_" + run, Core: "count@1"}, Data: data}
}

// counter is the core.
type counter struct {
	script
	over    int
	running bool
	ended   bool
}

func newCounter(_ context.Context, spec engine.Spec) (tenon.Core, error) {
	c := &counter{}
	if err := json.Unmarshal(spec.Data, &c.script); err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "script: %w", err)
	}
	return c, nil
}

func (c *counter) Apply(e tenon.Event) error {
	switch e.Kind {
	case tenon.EventStarted:
		c.running = true
	case tenon.EventInterrupted:
		c.running = false
	case "result", "go", tenon.EventUnknown:
		c.running = false
		c.over++
	case tenon.EventDone:
		c.ended = true
	}
	return nil
}

func (c *counter) Next() []tenon.Command {
	switch {
	case c.ended || c.running:
		return nil
	case c.over < c.Steps:
		return []tenon.Command{{Step: fmt.Sprint(c.over), Kind: "call", Idempotent: true}}
	}
	return []tenon.Command{{Kind: tenon.CommandDone,
		Data: json.RawMessage(`{"state":"completed","stop_reason":"stop"}`)}}
}

var result = json.RawMessage(`"` + string(bytes.Repeat([]byte("x"), ResultSize-2)) + `"`)

func do(context.Context, string, engine.Attempt, func(tenon.Event)) ([]tenon.Event, error) {
	return []tenon.Event{{Kind: "result", Data: result}}, nil
}

// place is an engine on a store.
type place struct {
	*local.Engine
	store *sqlite.Store
}

func open(ctx context.Context, dir string, do engine.Do) (*place, error) {
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(dir, "tenon.db")})
	if err != nil {
		return nil, err
	}
	e, err := local.New(local.Config{Store: st, NewCore: newCounter, Do: do})
	if err != nil {
		_ = st.Close() // err is more useful
		return nil, err
	}
	return &place{e, st}, nil
}

func (p *place) close() error {
	err := p.Engine.Close()
	serr := p.store.Close()
	if err == nil {
		err = serr
	}
	return err
}

// StepsConfig is the scale of [Steps]. Zero fields take the values of the goal.
type StepsConfig struct {
	Writers int // concurrent runs, and writers of bare inserts; 0 means 100
	Steps   int // steps of each; 0 means 300
	Rounds  int // 0 means 5
}

// StepsFigure is the result of [Steps]: medians over all rounds.
type StepsFigure struct {
	Engine float64 // steps/s
	Bare   float64 // inserts/s
	Ratio  float64 // median of the rounds' Engine ÷ Bare
}

// Steps measures durable steps per second with many concurrent runs. Each step is recorded as started,
// executed, and its result of 1 KiB stored. For comparison, the same number of writers inserts the same
// results into a plain table, in transactions shared by all waiting writers. Dir must be empty.
func Steps(ctx context.Context, dir string, c StepsConfig) (StepsFigure, error) {
	c.Writers = cmp.Or(c.Writers, 100)
	c.Steps = cmp.Or(c.Steps, 300)
	c.Rounds = cmp.Or(c.Rounds, 5)
	last := make(chan string, c.Writers) // runs whose last step has run
	p, err := open(ctx, filepath.Join(dir, "engine"), func(ctx context.Context, run string, a engine.Attempt,
		emit func(tenon.Event)) ([]tenon.Event, error) {
		if a.Step == fmt.Sprint(c.Steps-1) {
			last <- run
		}
		return do(ctx, run, a, emit)
	})
	if err != nil {
		return StepsFigure{}, err
	}
	b, err := openBare(filepath.Join(dir, "bare.db"))
	if err != nil {
		_ = p.close() // err is more useful
		return StepsFigure{}, err
	}
	var engines, bares, ratios []float64
	for round := range c.Rounds {
		bare, err := b.round(round, c.Writers, c.Steps)
		if err != nil {
			return StepsFigure{}, err
		}
		eng, err := p.round(ctx, round, c.Writers, c.Steps, last)
		if err != nil {
			return StepsFigure{}, err
		}
		engines, bares, ratios = append(engines, eng), append(bares, bare), append(ratios, eng/bare)
	}
	if err := b.close(); err != nil {
		return StepsFigure{}, err
	}
	return StepsFigure{median(engines), median(bares), median(ratios)}, p.close()
}

// round drives runs to their end. It does not follow them, just as the bare inserts are not read.
func (p *place) round(ctx context.Context, round, runs, steps int, last <-chan string) (perSecond float64, err error) {
	began := time.Now()
	if err := each(runs, runs, func(i int) error {
		return p.Start(ctx, script{Steps: steps}.spec(fmt.Sprintf("run_%03d_%05d", round, i)))
	}); err != nil {
		return 0, err
	}
	for range runs {
		var run string
		select {
		case run = <-last:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		for _, err := range p.Events(ctx, run, uint64(2*steps)) {
			if err != nil {
				return 0, err
			}
		}
	}
	return float64(runs*steps) / time.Since(began).Seconds(), nil
}

// each calls f for 0 to n-1 with at concurrent calls. It returns the first error.
func each(n, at int, f func(int) error) error {
	next := make(chan int)
	errs := make(chan error, at)
	var wg sync.WaitGroup
	for range at {
		wg.Go(func() {
			for i := range next {
				if err := f(i); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	close(errs)
	return <-errs
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

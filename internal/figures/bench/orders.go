package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Order is a task of a runner: Calls sequential calls, or concurrent calls by Callers callers for the
// duration For.
type Order struct {
	Calls   int           `json:"calls,omitempty"`
	Callers int           `json:"callers,omitempty"`
	For     time.Duration `json:"for_ns,omitempty"`
}

// Report is the result of an [Order].
type Report struct {
	Calls     int           `json:"calls"`
	Elapsed   time.Duration `json:"elapsed_ns"`
	Latencies []int64       `json:"latencies_ns,omitempty"` // of sequential calls
	Used      Stat          `json:"used"`                   // by both processes during the order
	Error     string        `json:"error,omitempty"`
}

// Serve executes the orders from in, one JSON value each, and writes a [Report] for each to out. It writes
// the first report before any order, when the peer is ready. It returns at the end of in.
func Serve(ctx context.Context, in io.Reader, out io.Writer, p Peer) error {
	enc, dec := json.NewEncoder(out), json.NewDecoder(in)
	if err := enc.Encode(Report{}); err != nil {
		return err
	}
	for {
		var o Order
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("bench: reading an order: %w", err)
		}
		r, err := carryOut(ctx, p, o)
		if err != nil {
			r = Report{Error: err.Error()}
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
}

func carryOut(ctx context.Context, p Peer, o Order) (Report, error) {
	before, err := both(ctx, p)
	if err != nil {
		return Report{}, err
	}
	var r Report
	if o.Callers > 0 {
		r, err = load(ctx, p, o.Callers, o.For)
	} else {
		r, err = sequence(ctx, p, o.Calls)
	}
	if err != nil {
		return Report{}, err
	}
	after, err := both(ctx, p)
	if err != nil {
		return Report{}, err
	}
	r.Used = Stat{Alloc: after.Alloc - before.Alloc, CPU: after.CPU - before.CPU}
	return r, nil
}

// sequence makes n sequential calls and times each.
func sequence(ctx context.Context, p Peer, n int) (Report, error) {
	r := Report{Calls: n, Latencies: make([]int64, 0, n)}
	start := time.Now()
	last := start
	for range n {
		if err := echo(ctx, p); err != nil {
			return Report{}, err
		}
		now := time.Now()
		r.Latencies = append(r.Latencies, int64(now.Sub(last)))
		last = now
	}
	r.Elapsed = time.Since(start)
	return r, nil
}

// load lets n callers call concurrently for the given time. It waits for calls in progress at the end, and
// counts them and their time.
func load(ctx context.Context, p Peer, n int, d time.Duration) (Report, error) {
	var (
		wg    sync.WaitGroup
		calls atomic.Int64
		stop  atomic.Bool
		once  sync.Once
		first error
	)
	start := time.Now()
	for range n {
		wg.Go(func() {
			for !stop.Load() {
				if err := echo(ctx, p); err != nil {
					once.Do(func() { first = err })
					stop.Store(true)
					return
				}
				calls.Add(1)
			}
		})
	}
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	defer timer.Stop()
	wg.Wait()
	return Report{Calls: int(calls.Load()), Elapsed: time.Since(start)}, first
}

package main

import (
	"context"
	"errors"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/figures/bench"
)

// memoryRuns is the number of runs in one round.
const memoryRuns = 100

// measureMemory measures the CPU time of one turn, excluding model and tool, of a host whose journal is in
// memory. It includes the core, the engine, the executor with its checks of arguments and policy, and all
// encoding.
func measureMemory(s *session) error {
	var values []float64
	for range s.rounds {
		v, err := memoryRound(s.ctx, instantTools{})
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	s.add("P5.memory", "CPU of one turn in memory, outside model and tool", "µs", values)
	return nil
}

// memoryRound returns the CPU time of one turn in microseconds.
func memoryRound(ctx context.Context, tools tenon.Toolset) (_ float64, err error) {
	st := newMemoryStore()
	h, err := host.Open(ctx, host.Config{
		Store:    st,
		Models:   map[string]tenon.Model{"instant": instantModel{}},
		Toolsets: map[string]tenon.Toolset{instantServer: tools},
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	var begun int64
	var events []tenon.Event
	for i := -memoryRuns / 5; i < memoryRuns; i++ { // the first runs warm up
		if i == 0 {
			if begun = bench.Self().CPU; begun == 0 {
				return 0, errors.New("the CPU time of a process cannot be read on this system")
			}
		}
		events = events[:0] // reuses the slice, because collecting events is not part of a turn
		for e, err := range h.Stream(ctx, host.Question{Text: "What is the weather in London?", Model: "instant",
			MaxTurns: instantTurns + 1}) {
			if err != nil {
				return 0, err
			}
			events = append(events, e.Event)
		}
		if err := finished(events); err != nil {
			return 0, err
		}
		st.forget(events[0].Run)
	}
	return float64(bench.Self().CPU-begun) / 1e3 / float64(memoryRuns*(instantTurns+1)), nil
}

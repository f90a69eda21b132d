package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/internal/figures/bench"
	"github.com/tenonhq/tenon/internal/figures/livebench"
)

// Scale of P10.
const (
	fewTools     = 10
	manyTools    = 10_000
	shapeServers = 50
)

// measureP10 measures the cost of many tools: a turn with a call, and shaping all of them compared with
// shaping again after the list of one server has changed.
func measureP10(s *session) error {
	var ratio, few, many, reshape, shape []float64
	for range s.rounds {
		a, err := memoryRound(s.ctx, newCrowd(fewTools))
		if err != nil {
			return err
		}
		b, err := memoryRound(s.ctx, newCrowd(manyTools))
		if err != nil {
			return err
		}
		ratio, few, many = append(ratio, b/a), append(few, a), append(many, b)
		all, one, err := shapeRound()
		if err != nil {
			return err
		}
		reshape, shape = append(reshape, one/all), append(shape, all/1e3)
	}
	s.add("P10.call", "a turn with a call among 10,000 tools against one among 10", "ratio", ratio)
	s.add("P10.call.few", "CPU of a turn with a call among 10 tools", "µs", few)
	s.add("P10.call.many", "CPU of a turn with a call among 10,000 tools", "µs", many)
	s.add("P10.reshape", "a new list of one of 50 servers against shaping all 10,000 tools", "ratio", reshape)
	s.add("P10.shape", "CPU of shaping 10,000 tools", "ms", shape)
	return nil
}

// crowd is a toolset of many tools, of which one is called.
type crowd struct {
	instantTools
	tools []tenon.Tool
}

func newCrowd(n int) *crowd {
	c := &crowd{}
	c.tools, _ = c.instantTools.Tools(context.Background()) // never fails
	c.tools = append(c.tools, someTools(0, n-1)...)
	return c
}

// Tools implements [tenon.Toolset].
func (c *crowd) Tools(context.Context) ([]tenon.Tool, error) { return c.tools, nil }

func someTools(from, n int) []tenon.Tool {
	tools := make([]tenon.Tool, n)
	for i := range tools {
		tools[i] = tenon.Tool{Remote: "tool_" + strconv.Itoa(from+i),
			Description: "Does one of many things that a tool may do, with what it is given.",
			Input: []byte(
				`{"type":"object","properties":{"path":{"type":"string","description":"where it is"},` +
					`"limit":{"type":"integer","default":10,"minimum":1}},"required":["path"]}`)}
	}
	return tools
}

// shapeRound returns the CPU time, in microseconds, of shaping all tools, and of shaping again after the list
// of one server has changed.
func shapeRound() (all, one float64, err error) {
	const each = manyTools / shapeServers
	sources := make([]catalog.Source, shapeServers)
	for i := range sources {
		sources[i] = catalog.Source{Server: "server" + strconv.Itoa(i), Trusted: true, Tools: someTools(i*each, each)}
	}
	listings := make([]*catalog.Listing, shapeServers)
	runtime.GC()
	begun := bench.Self().CPU
	for i := range sources {
		listings[i] = catalog.Shape(sources[i])
	}
	before, _ := catalog.Merge(listings)
	between := bench.Self().CPU
	runtime.GC() // finishes a collection started by shaping all tools
	middle := bench.Self().CPU
	for i := range shapeServers { // each server once, so that the garbage of the changes is included
		sources[i].Tools = append(sources[i].Tools[:each:each], someTools(manyTools+i, 1)...)
		listings = append([]*catalog.Listing(nil), listings...)
		listings[i] = catalog.Shape(sources[i])
		after, _ := before.Merge(listings) // as in a host
		if len(after.Tools()) != len(before.Tools())+1 {
			return 0, 0, errors.New("a change has no effect")
		}
		before = after
	}
	end := bench.Self().CPU
	if end == 0 {
		return 0, 0, errors.New("the CPU time of a process cannot be read on this system")
	}
	return float64(between-begun) / 1e3, float64(end-middle) / 1e3 / shapeServers, nil
}

// measureP11 scores the search on LiveMCPBench.
func measureP11(s *session) error {
	dir := filepath.Join(s.root, "..", "shared", "data", "tool-search", "livemcpbench")
	sources, err := livebench.Load(dir)
	if err != nil {
		return fmt.Errorf("the tools of LiveMCPBench: %w", err)
	}
	snapshot, _ := catalog.Build(sources)
	scores, err := livebench.Score(snapshot, dir)
	if err != nil {
		return err
	}
	var cpu []float64
	x := snapshot.Index()
	for range s.rounds {
		const times = 10
		begun := bench.Self().CPU
		for range times {
			for _, q := range scores.Queries {
				x.Search(q, 10)
			}
		}
		cpu = append(cpu, float64(bench.Self().CPU-begun)/1e3/float64(times*len(scores.Queries)))
	}
	s.add("P11.step5", "search by a step: a right tool among the first 5 (LiveMCPBench a928e57, 95 pairs)", "share",
		[]float64{float64(scores.Step5) / float64(scores.Steps)})
	s.add("P11.step1", "search by a step: the first tool is right", "share",
		[]float64{float64(scores.Step1) / float64(scores.Steps)})
	s.add("P11.step10", "search by a step: a right tool among the first 10", "share",
		[]float64{float64(scores.Step10) / float64(scores.Steps)})
	s.add("P11.task10", "search by a whole question: its tools among the first 10 (94 tasks)", "share",
		[]float64{scores.Task10})
	s.add("P11.cpu", "CPU of a search among 527 tools", "µs", cpu)
	return nil
}

var _ tenon.Toolset = (*crowd)(nil)

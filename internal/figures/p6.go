package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Scale of P6. Each client asks, waits for the answer and asks again. Their starts are spread over the time
// of one answer, as with independent clients.
const (
	loadClients  = 1000
	loadRuns     = 5 // runs of each client; the first warms up and is not counted
	modelTime    = time.Second
	twoCores     = 2
	p6Question   = "What is the weather in London?"
	p6Answer     = "It rains in London."
	p6FirstToken = "It"
)

// measureP6 measures the overhead of a host over HTTP while a thousand runs wait for their model. It compares
// the time of a run with the bare request to the model, and records the CPU time of the host. The host is a
// built tenon serve with its journal on disk. The model and the clients are separate processes on the same
// machine.
func measureP6(s *session) error {
	tenon := filepath.Join(s.tmp, "tenon")
	if err := s.build(tenon, "./cmd/tenon"); err != nil {
		return err
	}
	var p50, cpu, chat, chatCPU, burst, model, perRun []float64
	for range s.rounds {
		r, err := s.loadRound(tenon, loadClients, loadRuns, modelTime)
		if err != nil {
			return err
		}
		p50 = append(p50, r.native.p50/r.model.p50)
		cpu = append(cpu, r.native.cpu)
		perRun = append(perRun, r.native.perRun)
		chat, chatCPU = append(chat, r.chat.p50/r.model.p50), append(chatCPU, r.chat.cpu)
		burst = append(burst, r.burst.p50/r.burstModel.p50)
		model = append(model, r.model.p50*1e3)
	}
	s.add("P6.p50",
		"1,000 concurrent runs over HTTP (POST /api/v1/runs, then its stream of events): p50 against the bare "+
			"request to the model of 1 s", "ratio", p50)
	s.add("P6.cpu", "the same: CPU of tenon serve against two cores", "part", cpu)
	s.add("P6.run", "the same: CPU of tenon serve for one run", "µs", perRun)
	s.add("P6.chat", "1,000 concurrent POST /chat: p50 against the bare request to the model", "ratio", chat)
	s.add("P6.chat.cpu", "the same: CPU of tenon serve against two cores", "part", chatCPU)
	s.add("P6.burst", "1,000 POST /chat that all begin in the same moment: p50 against 1,000 bare requests that do",
		"ratio", burst)
	s.add("P6.model", "the bare request to the model: p50", "ms", model)
	return nil
}

// loadFigures holds the results of one round of P6.
type loadFigures struct{ model, native, chat, burst, burstModel load }

// load is the result of one kind of request under load.
type load struct {
	p50    float64 // seconds
	cpu    float64 // CPU time of the host as a share of two cores
	perRun float64 // CPU time of the host for each run, in µs
}

// loadRound measures one round: only the model, and a new tenon serve in front of it.
func (s *session) loadRound(tenon string, clients, runs int, answer time.Duration) (f loadFigures, err error) {
	model, stopModel, err := s.startModel(answer)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, stopModel()) }()
	dir, err := os.MkdirTemp(s.tmp, "p6-")
	if err != nil {
		return f, err
	}
	h, err := s.startServe(tenon, dir, served(model, nil))
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	tr := &http.Transport{MaxIdleConnsPerHost: 2 * clients, MaxConnsPerHost: 0, DisableCompression: true}
	defer tr.CloseIdleConnections()
	c := &asker{client: &http.Client{Transport: tr}, token: h.token, ctx: s.ctx}
	for _, m := range []struct {
		into   *load
		ask    func() error
		spread time.Duration
		host   *serveProcess
	}{
		{&f.model, func() error { return c.model(model) }, answer, nil},
		{&f.native, func() error { return c.native(h.url) }, answer, h},
		{&f.chat, func() error { return c.chat(h.url) }, answer, h},
		{&f.burstModel, func() error { return c.model(model) }, 0, nil},
		{&f.burst, func() error { return c.chat(h.url) }, 0, h},
	} {
		n := runs
		if m.spread == 0 {
			n = 1
		}
		if *m.into, err = underLoad(clients, n, m.spread, m.host, m.ask); err != nil {
			return f, err
		}
	}
	return f, nil
}

// underLoad lets clients ask the given number of times each. It measures all but their first request, if
// there is more than one.
func underLoad(clients, times int, spread time.Duration, host *serveProcess, ask func() error) (l load, err error) {
	var (
		mu      sync.Mutex
		all     []float64
		failure error
		wg      sync.WaitGroup
		clock   = func() (time.Duration, error) { return 0, nil }
	)
	if host != nil {
		clock = host.cpu
	}
	begun := time.Now()
	before, err := clock()
	if err != nil {
		return l, err
	}
	for i := range clients {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * spread / time.Duration(clients))
			for k := range times {
				start := time.Now()
				err := ask()
				took := time.Since(start).Seconds()
				mu.Lock()
				if err != nil {
					failure = err
				} else if k > 0 || times == 1 {
					all = append(all, took)
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	wall := time.Since(begun)
	after, err := clock()
	if err = errors.Join(err, failure); err != nil {
		return l, err
	}
	if want := clients * max(times-1, 1); len(all) != want {
		return l, fmt.Errorf("%d answers of %d", len(all), want)
	}
	return load{percentile(all, 50), (after - before).Seconds() / wall.Seconds() / twoCores,
		(after - before).Seconds() * 1e6 / float64(clients*times)}, nil
}

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// manyServers is the number of configured servers in P9.
const manyServers = 50

// measureP9 measures the list of the tools of many configured servers. From the cache, no server may be
// started. Without a cache, all are started. The latter is compared with the lower bound of the machine: the
// slowest server, or the CPU time of all servers divided by the number of cores.
func measureP9(s *session) error {
	warm := filepath.Join(s.tmp, "p9")
	if _, err := s.listed(warm, manyServers, true); err != nil {
		return err
	}
	var cached, open, cold, wall, alone, cpu, processes []float64
	for range s.rounds {
		c, err := s.listed(warm, manyServers, false)
		if err != nil {
			return err
		}
		cached = append(cached, c.tools.Seconds()*1e3)
		open = append(open, (c.open+c.tools).Seconds()*1e3)
		processes = append(processes, float64(c.started))
		var one listing
		for n := range 3 { // sequentially
			l, err := s.fresh(1)
			if err != nil {
				return err
			}
			if n == 0 || l.tools > one.tools {
				one.tools = l.tools
			}
			one.cpu += l.cpu / 3
		}
		all, err := s.fresh(manyServers)
		if err != nil {
			return err
		}
		best := max(one.tools.Seconds(), manyServers*one.cpu.Seconds()/float64(runtime.NumCPU()))
		cold = append(cold, all.tools.Seconds()/best)
		wall, alone, cpu = append(wall, all.tools.Seconds()*1e3), append(alone, one.tools.Seconds()*1e3),
			append(cpu, one.cpu.Seconds()*1e3)
	}
	s.add("P9.cached", "tools of 50 configured servers from the cache", "ms", cached)
	s.add("P9.cached.open", "the same, with the opening of the host and its store", "ms", open)
	s.add("P9.cached.processes", "processes of servers that this starts", "", processes)
	s.add("P9.cold", "tools of 50 servers without a cache, against max(slowest alone, 50 × CPU of one ÷ cores)",
		"ratio", cold)
	s.add("P9.cold.wall", "tools of 50 servers without a cache", "ms", wall)
	s.add("P9.cold.alone", "tools of the slowest of three servers, alone", "ms", alone)
	s.add("P9.cold.cpu", "CPU of one server and of our side, from its start to its end", "ms", cpu)
	return nil
}

// listing is the cost of listing the tools of some servers.
type listing struct {
	open, tools time.Duration // wall time
	cpu         time.Duration // CPU time of this process and of the servers
	started     int           // number of started servers
}

// fresh lists the tools of some servers with an empty cache.
func (s *session) fresh(n int) (listing, error) {
	dir, err := os.MkdirTemp(s.tmp, "p9-")
	if err != nil {
		return listing{}, err
	}
	return s.listed(dir, n, true)
}

// listed opens a host with n servers, lists their tools and closes it.
func (s *session) listed(dir string, n int, starts bool) (l listing, err error) {
	cfg := &config.Config{Servers: map[string]servers.Config{}}
	for i := range n {
		cfg.Servers["s"+strconv.Itoa(i)] = servers.Config{Command: s.exe, Args: []string{"child", "server", ours},
			Timeout: time.Minute}
	}
	runtime.GC() // garbage of the last round
	begun := time.Now()
	h, err := host.Open(s.ctx, host.Config{Config: cfg, Home: dir, LookupEnv: os.LookupEnv})
	if err != nil {
		return l, err
	}
	closed := false
	defer func() {
		if !closed {
			_ = h.Close() // the first error is more useful
		}
	}()
	l.open = time.Since(begun)
	before := cpuUsed()
	begun = time.Now()
	tools, problems, err := h.Tools().Snapshot(context.WithoutCancel(s.ctx))
	l.tools = time.Since(begun)
	if err != nil {
		return l, err
	}
	for _, st := range h.Service().Connections() {
		l.started += st.Status().Starts
	}
	switch {
	case len(problems) > 0:
		return l, problems[0].Err
	case len(tools.Tools()) != 2*n:
		return l, fmt.Errorf("%d tools of %d servers", len(tools.Tools()), n)
	case starts && l.started != n, !starts && l.started != 0:
		return l, tenon.Errorf(tenon.CodeInternal, "%d servers of %d were started", l.started, n)
	}
	closed = true
	err = h.Close()
	l.cpu = cpuUsed() - before
	return l, err
}

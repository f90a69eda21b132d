package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Scale of the followers. The warm ones fill pools that exist in any case.
const (
	idleFollowers = 2000
	followedRuns  = 20
	warmFollowers = 100
	longAnswer    = time.Hour
)

// measureFollowers measures the cost of followers of runs without new events.
func measureFollowers(s *session) error {
	tenon := filepath.Join(s.tmp, "tenon")
	if err := s.build(tenon, "./cmd/tenon"); err != nil {
		return err
	}
	var all, cpu []float64
	for range s.rounds {
		mb, part, err := s.followersRound(tenon, warmFollowers, idleFollowers)
		if err != nil {
			return err
		}
		all, cpu = append(all, mb), append(cpu, part)
	}
	s.add("SSE.followers", "2,000 idle followers of runs over server-sent events add to tenon serve", "MB", all)
	s.add("SSE.followers.cpu", "the same: CPU of tenon serve against one core while nothing happens", "part", cpu)
	return nil
}

// followersRound connects followers. It returns the memory they add to the process, in MB, and the share of a
// core that the process uses then.
func (s *session) followersRound(tenon string, warm, n int) (mb, part float64, err error) {
	answer, stopModel, err := s.startModel(longAnswer)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, stopModel()) }()
	dir, err := os.MkdirTemp(s.tmp, "followers-")
	if err != nil {
		return 0, 0, err
	}
	h, err := s.startServe(tenon, dir, served(answer, nil))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, h.kill()) }() // a graceful stop would wait for the runs
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	tr := &http.Transport{DisableCompression: true}
	c := &asker{client: &http.Client{Transport: tr}, token: h.token, ctx: ctx}
	var runs []string
	for range followedRuns {
		run, err := c.start(h.url)
		if err != nil {
			return 0, 0, err
		}
		runs = append(runs, run)
	}
	var open []io.Closer
	defer func() {
		cancel()
		for _, o := range open {
			_ = o.Close() // cancelled by ctx
		}
	}()
	join := func(n int) error {
		for i := range n {
			res, err := c.send(http.MethodGet, h.url+"/api/v1/runs/"+runs[i%len(runs)]+"/events", nil)
			if err != nil {
				return fmt.Errorf("follower %d: %w", len(open), err)
			}
			open = append(open, res.Body)
			if _, err := io.ReadFull(res.Body, make([]byte, 64)); err != nil {
				return fmt.Errorf("follower %d: %w", len(open), err)
			}
		}
		return nil
	}
	if err := join(warm); err != nil {
		return 0, 0, err
	}
	before, err := h.resident()
	if err == nil {
		err = join(n)
	}
	if err != nil {
		return 0, 0, err
	}
	began, err := h.cpu()
	if err != nil {
		return 0, 0, err
	}
	const still = 3 * time.Second
	time.Sleep(still)
	ended, err := h.cpu()
	if err != nil {
		return 0, 0, err
	}
	after, err := h.resident()
	return float64(after-before) / 1e6, (ended - began).Seconds() / still.Seconds(), err
}

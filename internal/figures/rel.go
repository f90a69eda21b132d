package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// coldRounds is the number of cold builds, because each takes a minute or more of all processors. None begins after
// coldStart, and coldLimit ends one, so that the measurement ends on a machine that does other work, too.
const (
	coldRounds = 3
	coldStart  = 3 * time.Minute
	coldLimit  = 15 * time.Minute
)

// measureRelease measures the way from a clone to the first answer with an empty build cache: git clone, go run, and
// the built-in demo. The modules are downloaded before. Beside the time that passes it records the time of the
// processors, which says more on a machine that does other work.
func measureRelease(s *session) error {
	var wall, cpu []float64
	first := time.Now()
	for i := range min(s.rounds, coldRounds) {
		if i > 0 && time.Since(first) > coldStart {
			break
		}
		dir := filepath.Join(s.tmp, fmt.Sprintf("cold%d", i))
		begin := time.Now()
		if out, err := exec.CommandContext(s.ctx, "git", "clone", "-q", s.root, dir).CombinedOutput(); err != nil {
			return fmt.Errorf("git clone: %w: %s", err, out)
		}
		ctx, stop := context.WithTimeout(s.ctx, coldLimit)
		defer stop()
		cmd := exec.CommandContext(ctx, "go", "run", "./cmd/tenon", "demo")
		cmd.Dir, cmd.WaitDelay = dir, time.Minute // compilers that go run has started
		cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(dir, "cache"), "GOFLAGS=", "HOME="+dir,
			"GOMODCACHE="+moduleCache(s))
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		err := cmd.Run()
		if ctx.Err() != nil {
			return fmt.Errorf("a cold build did not end within %v; measure on a machine without other load: %w",
				coldLimit, ctx.Err())
		}
		if err != nil {
			return fmt.Errorf("go run ./cmd/tenon demo: %w: %s", err, &said)
		}
		if out.Len() == 0 {
			return errors.New("the demo answered nothing")
		}
		wall = append(wall, time.Since(begin).Seconds())
		cpu = append(cpu, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	s.add("REL.build", "from a clone to the first answer, with an empty build cache", "s", wall)
	s.add("REL.cpu", "the same, in time of the processors", "s", cpu)
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		s.say("%d rounds; load of the machine: %s", len(wall), strings.Fields(string(load))[:3])
	}
	return nil
}

// moduleCache returns the folder of downloaded modules.
func moduleCache(s *session) string {
	out, err := exec.CommandContext(s.ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

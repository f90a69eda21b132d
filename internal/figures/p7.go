package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tenonhq/tenon/internal/figures/durable"
)

// resumedRuns is the number of runs to resume in P7.
const resumedRuns = 1_000

// measureP7 measures the durable engine: steps per second compared with bare inserts of the same bytes, and
// the time to resume after a kill.
func measureP7(s *session) error {
	var ratio, steps, bare, resume []float64
	for range s.rounds {
		var f durable.StepsFigure
		if err := s.durable("steps", &f); err != nil {
			return err
		}
		var seconds float64
		if err := s.durable("resume", &seconds); err != nil {
			return err
		}
		ratio, steps, bare = append(ratio, f.Ratio), append(steps, f.Engine), append(bare, f.Bare)
		resume = append(resume, seconds)
	}
	s.add("P7.steps", "durable steps with 100 writers against bare group-committed inserts of the same bytes",
		"ratio", ratio)
	s.add("P7.resume", "1,000 runs at work again after kill -9", "s", resume)
	s.add("P7.steps.ours", "durable steps with 100 writers", "1/s", steps)
	s.add("P7.steps.floor", "bare group-committed inserts with 100 writers", "1/s", bare)
	return nil
}

// durable makes one measurement of package durable in a new process and a new directory.
func (s *session) durable(what string, result any) (err error) {
	dir, err := os.MkdirTemp(s.tmp, what+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(s.ctx, s.exe, "child", what, dir)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return json.Unmarshal(out.Bytes(), result)
}

// durableChild is the child process of [session.durable].
func durableChild(ctx context.Context, what, dir string, out io.Writer) error {
	var result any
	var err error
	switch what {
	case "steps":
		// The directory of the engine's store.
		if err := os.MkdirAll(filepath.Join(dir, "engine"), 0o700); err != nil {
			return err
		}
		result, err = durable.Steps(ctx, dir, durable.StepsConfig{Rounds: 1})
	case "resume":
		d, e := durable.Resume(ctx, dir, resumedRuns)
		result, err = d.Seconds(), e
	case waitingChild, idleStdioChild, idleFramesChild, idleHTTPChild:
		result, err = idleMeasure(ctx, what, dir)
	default:
		return fmt.Errorf("unknown child %q", what)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}

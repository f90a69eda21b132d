package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The run that P12 measures. Its model is a script with two turns: a call of the tool echo of a stdio server, and the
// answer.
const (
	measuredScript = `steps:
  - calls:
      - name: echo
        arguments: {text: hello}
  - text: It said hello.
`
	measuredAnswer = "It said hello."
	// runTurns is the number of turns of the run.
	runTurns = 2
	// runsPerRound is the number of runs in one round. Each follows a run of the empty program.
	runsPerRound = 10
)

// measureP12 measures the binary and one tenon run. It compares the CPU time of the process with an empty
// program with the same imports plus the run in memory (see measureMemory), and records the peak memory.
func measureP12(s *session) error {
	tenon := filepath.Join(s.tmp, "tenon")
	if err := s.build(tenon, "./cmd/tenon"); err != nil {
		return err
	}
	empty, err := s.buildEmpty()
	if err != nil {
		return err
	}
	if err := rewrite(tenon); err != nil {
		return err
	}
	run, err := s.prepareRun(tenon)
	if err != nil {
		return err
	}
	var size, cpu, again, ours, floor, peak, wall []float64
	for range s.rounds {
		info, err := os.Stat(tenon)
		if err != nil {
			return err
		}
		size = append(size, float64(info.Size())/1e6)
		turn, err := memoryRound(s.ctx, instantTools{})
		if err != nil {
			return err
		}
		var used [3][]float64 // CPU in ms of the empty program, of the first run in a store, and of the second
		var most float64
		var took []float64
		for range runsPerRound {
			e, err := s.spent(empty)
			if err != nil {
				return fmt.Errorf("the empty program: %w", err)
			}
			r, second, err := run()
			if err != nil {
				return err
			}
			used[0] = append(used[0], e.CPU.Seconds()*1e3)
			used[1] = append(used[1], r.CPU.Seconds()*1e3)
			used[2] = append(used[2], second.CPU.Seconds()*1e3)
			most = max(most, float64(r.Peak)/1e6, float64(second.Peak)/1e6)
			took = append(took, r.Wall.Seconds()*1e3)
		}
		peak, wall = append(peak, most), append(wall, median(took))
		f := median(used[0]) + runTurns*turn/1e3
		floor = append(floor, f)
		ours = append(ours, median(used[1]))
		cpu, again = append(cpu, median(used[1])/f), append(again, median(used[2])/f)
	}
	s.add("P12.bin", "stripped binary", "MB", size)
	s.add("P12.cpu", "tenon run: CPU of its process against an empty program with its imports plus the run in memory",
		"ratio", cpu)
	s.add("P12.mem", "tenon run: peak memory of its process", "MB", peak)
	s.add("P12.cpu.again", "the same in an existing store", "ratio", again)
	s.add("P12.cpu.ours", "tenon run: CPU of its process", "ms", ours)
	s.add("P12.cpu.floor", "the empty program plus the run in memory: CPU", "ms", floor)
	s.add("P12.wall", "tenon run: wall time", "ms", wall)
	return nil
}

// build builds a program like a release.
func (s *session) build(out, pkg string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", out}, flags...)
	cmd := exec.CommandContext(s.ctx, "go", append(args, pkg)...)
	cmd.Dir, cmd.Env = s.root, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, bytes.TrimSpace(text))
	}
	return nil
}

// rewrite writes a program again in pieces of 4 KiB. Linux 6.18 and later map whole folios of the page cache, which are
// as large as the pieces in which a file was written: after pieces of 2 MiB, the resident memory of a process includes
// nearly all of its program, used or not.
func rewrite(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := os.Remove(name); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	for piece := range slices.Chunk(b, 4096) {
		if _, err := f.Write(piece); err != nil {
			_ = f.Close() // the first error says more
			return err
		}
	}
	return f.Close()
}

// buildEmpty builds a program that has the imports of the command line and does nothing. Its source is passed to the
// compiler as an overlay, so that it may import internal packages without writing to the working tree.
func (s *session) buildEmpty() (string, error) {
	cmd := exec.CommandContext(s.ctx, "go", "list", "-f", `{{join .Imports "\n"}}`, "./internal/cli")
	cmd.Dir = s.root
	list, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list ./internal/cli: %w", err)
	}
	var src strings.Builder
	src.WriteString("package main\n\nimport (\n")
	for _, p := range strings.Fields(string(list)) {
		fmt.Fprintf(&src, "\t_ %q\n", p)
	}
	src.WriteString(")\n\nfunc main() {}\n")
	file, overlay := filepath.Join(s.tmp, "empty.go"), filepath.Join(s.tmp, "overlay.json")
	b, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(s.root, "cmd", "figures-empty", "main.go"): file},
	})
	if err != nil {
		return "", err
	}
	err = errors.Join(os.WriteFile(file, []byte(src.String()), 0o600), os.WriteFile(overlay, b, 0o600))
	if err != nil {
		return "", err
	}
	out := filepath.Join(s.tmp, "empty")
	return out, s.build(out, "./cmd/figures-empty", "-overlay="+overlay)
}

// prepareRun returns a function that makes the measured run twice, the first time with a new store.
func (s *session) prepareRun(tenon string) (func() (first, second spent, err error), error) {
	dir := filepath.Join(s.tmp, "p12")
	project, err := json.Marshal(map[string]any{"servers": map[string]any{
		"measured": map[string]any{"command": s.exe, "args": []string{"child", "server", ours}},
	}})
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	config, script := filepath.Join(dir, "tenon.yaml"), filepath.Join(dir, "steps.yaml")
	err = errors.Join(os.WriteFile(config, project, 0o600), os.WriteFile(script, []byte(measuredScript), 0o600))
	if err != nil {
		return nil, err
	}
	once := func(home string) (spent, error) {
		r, err := s.spent(tenon, "run", "-c", config, "--home", home, "--model", "script:"+script, "--yes",
			"Say hello.")
		if err == nil && !strings.Contains(r.Out, measuredAnswer) {
			err = fmt.Errorf("the answer is %.200q", r.Out)
		}
		if err != nil {
			return r, fmt.Errorf("tenon run: %w", err)
		}
		return r, nil
	}
	homes := 0
	return func() (first, second spent, err error) {
		// The homes are kept until the end, because ext4 creates files more slowly after recent removals.
		home := filepath.Join(dir, fmt.Sprintf("home-%d", homes))
		homes++
		if first, err = once(home); err == nil {
			second, err = once(home)
		}
		return first, second, err
	}, nil
}

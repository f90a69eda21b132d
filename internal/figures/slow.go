package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// measureSlow measures everyday commands beside a server that hangs when it starts. tenon has its listing from an
// earlier start. The figure is the slowest of the commands.
func measureSlow(s *session) error {
	exe := filepath.Join(s.tmp, "tenon")
	if err := s.build(exe, "./cmd/tenon"); err != nil {
		return err
	}
	dir := filepath.Join(s.tmp, "slow")
	// The listing belongs to the command line and to the files that it names, so it must not name the new file.
	start := fmt.Sprintf("ls | grep -q '^hang$' && exec sleep 60; exec '%s' child server %s", s.exe, ours)
	err := errors.Join(os.MkdirAll(filepath.Join(dir, ".tenon"), 0o700), // the store of the project
		os.WriteFile(filepath.Join(dir, "answers.yaml"), []byte("steps: [{text: done}]\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "tenon.yaml"), fmt.Appendf(nil, "servers:\n"+
			"  slow: {command: /bin/sh, args: [-c, %q]}\n  quick: {command: %q, args: [child, server, %s]}\n",
			start, s.exe, ours), 0o600))
	if err != nil {
		return err
	}
	commands := [][]string{{"servers", "list"}, {"tools", "list"}, {"run", "--model", "script:answers.yaml", "go"}}
	command := func(args []string) (time.Duration, error) {
		cmd := exec.CommandContext(s.ctx, exe, slices.Concat(args, []string{"-c", filepath.Join(dir, "tenon.yaml")})...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("tenon %v: %w: %.500s", args, err, out)
		}
		return time.Since(began), nil
	}
	if _, err := command([]string{"tools", "list"}); err != nil { // both servers answer
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "hang"), nil, 0o600); err != nil {
		return err
	}
	slowest := make([]float64, s.rounds)
	for round := range slowest {
		for _, args := range commands {
			took, err := command(args)
			if err != nil {
				return err
			}
			slowest[round] = max(slowest[round], took.Seconds())
		}
	}
	s.add("LIST.slow", "servers list, tools list and run beside a server that hangs at its start: the slowest", "s",
		slowest)
	return nil
}

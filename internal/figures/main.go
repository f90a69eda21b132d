package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon/internal/figures/durable"
)

// measure is one entry of the registry: a function that measures the figures of a goal.
type measure struct {
	goal string // such as P1, for all figures whose names begin with P1
	run  func(*session) error
}

// measures returns the registry, in the order of the measurements.
func measures() []measure {
	return []measure{
		{"P1", measureP1},
		{"P2", measureP2},
		{"P3", measureP3},
		{"P3.durable", measureDurable},
		{"P4", measureP4},
		{"GW", measureGW},
		{"P5", measureP5},
		{"P6", measureP6},
		{"SSE", measureFollowers},
		{"CHAT", measureChat},
		{"P7", measureP7},
		{"PG", measurePG},
		{"PG.takeover", measureTakeover},
		{"SCALE", measureScale},
		{"TEMPORAL", measureTemporal},
		{"P8", measureP8},
		{"P9", measureP9},
		{"PRUNE", measurePrune},
		{"STATS", measureStats},
		{"STATS.large", measureStatsLarge},
		{"STATS.writers", measureStatsWriters},
		{"P10", measureP10},
		{"P10.rules", measureP10Rules},
		{"P10.list", measureP10List},
		{"P11", measureP11},
		{"P12", measureP12},
		{"TG-7", measureTG7},
		{"HD-SC-002", measureSC002},
		{"P13", measureP13},
		{"WF", measureFlow},
		{"WB", measureWB},
		{"TUI", measureTUI},
		{"LIST.slow", measureSlow},
		{"T1", measureT1},
		{"T2", measureT2},
		{"T3", measureT3},
		{"T4", measureT4},
		{"REL", measureRelease},
	}
}

func main() {
	durable.Main() // does not return in the process that P7 kills
	if len(os.Args) > 2 && os.Args[1] == "child" {
		if err := child(context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "figures child:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// run measures the figures selected by the arguments. After an error it keeps the figures measured before.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("figures", flag.ContinueOnError)
	id := flags.String("id", "", "measure only this goal, such as P1 or P1.p50; empty for all")
	rounds := flags.Int("rounds", 7, "number of rounds, at least 5")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if *rounds < 5 {
		return fmt.Errorf("%d rounds are too few for a median: use -rounds 5 or more", *rounds)
	}
	root, err := repository()
	if err != nil {
		return err
	}
	s, err := newSession(ctx, root, *rounds)
	if err != nil {
		return err
	}
	defer s.close()

	goal, _, _ := strings.Cut(*id, ".")
	if slices.ContainsFunc(measures(), func(m measure) bool { return m.goal == *id }) {
		goal = *id // part of a goal
	}
	var failures []error
	known := false
	for _, m := range measures() {
		if goal != "" && m.goal != goal {
			continue
		}
		known = true
		s.goal = m.goal
		fmt.Fprintf(os.Stderr, "%s …\n", m.goal)
		if err := m.run(s); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", m.goal, err))
		}
		if err := s.save(); err != nil {
			return errors.Join(append(failures, err)...)
		}
		if ctx.Err() != nil {
			return errors.Join(append(failures, ctx.Err())...)
		}
	}
	if !known {
		return fmt.Errorf("unknown id %q: docs/figures.md lists the ids", *id)
	}
	return errors.Join(failures...)
}

// repository returns the directory of the go.mod at or above the working directory.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod here or above: run it within the repository")
		}
		dir = up
	}
}

// session is one run of this program.
type session struct {
	ctx      context.Context
	root     string // root of the repository
	exe      string // path of this program
	tmp      string // directory that is removed at the end
	rounds   int
	goal     string // current goal
	measured []figure
	rivals   *rivals
}

func newSession(ctx context.Context, root string, rounds int) (*session, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "tenon-figures-")
	if err != nil {
		return nil, err
	}
	return &session{ctx: ctx, root: root, exe: exe, tmp: tmp, rounds: rounds}, nil
}

func (s *session) close() { _ = os.RemoveAll(s.tmp) }

// add records a figure: the median over one value for each round.
func (s *session) add(id, name, unit string, values []float64) {
	f := figure{
		ID: id, Name: name, Value: rounded(median(values)), Unit: unit, Holds: true, Rounds: len(values),
		Command: "make figures ID=" + s.goal, Date: time.Now().UTC().Format(time.DateOnly),
	}
	note := ""
	if g, ok := goalOf(id); ok {
		f.Goal, f.Holds = g.String(), g.holds(f.Value)
		note = ", goal " + f.Goal
		if !f.Holds {
			note += ": missed"
		}
	}
	s.measured = append(s.measured, f)
	fmt.Fprintf(os.Stderr, "  %-28s %10s %-5s (%s … %s%s)\n", id, number(f.Value), unit,
		number(rounded(percentile(values, 0))), number(rounded(percentile(values, 100))), note)
}

// say prints a message about the measurement.
func (s *session) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "  "+format+"\n", args...)
}

// save merges the measured figures into the documents.
func (s *session) save() error {
	return saveDocuments(filepath.Join(s.root, "docs"), s.measured)
}

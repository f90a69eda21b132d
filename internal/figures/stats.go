package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// Scale of STATS.
const (
	statsRuns   = 20_000
	statsAskers = 32
	statsKey    = "figures-figures-figures-figures-figures"
)

// measureStats measures statistics and searches over 20,000 runs, each with a tool call. As with a store
// from an earlier release, no process has read these runs yet. The first search and the first statistics are
// measured once each. Then tenon serve catches up, and the statistics of the store are measured again.
func measureStats(s *session) error {
	bin := filepath.Join(s.tmp, "tenon")
	if err := s.build(bin, "./cmd/tenon"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.tmp, "stats-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := manyRuns(s.ctx, filepath.Join(dir, ".tenon")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "tenon.yaml"), []byte("servers: {}\n"), 0o600); err != nil {
		return err
	}
	search, _, err := statsCommand(s.ctx, bin, dir, "sessions", "search", "weather", "19999")
	if err != nil {
		return err
	}
	first, _, err := statsCommand(s.ctx, bin, dir, "stats", "tools", "-o", "json")
	if err != nil {
		return err
	}
	caught, err := catchUp(s, bin, dir)
	if err != nil {
		return err
	}
	var stats, searches []float64
	for range s.rounds {
		took, out, err := statsCommand(s.ctx, bin, dir, "stats", "tools", "-o", "json")
		if err == nil && !strings.Contains(out, fmt.Sprintf(`"calls": %d`, statsRuns)) &&
			!strings.Contains(out, fmt.Sprintf(`"calls":%d`, statsRuns)) {
			err = fmt.Errorf("other counts than expected: %.500s", out)
		}
		if err != nil {
			return err
		}
		stats = append(stats, took.Seconds())
		if took, _, err = statsCommand(s.ctx, bin, dir, "sessions", "search", "weather", "19999"); err != nil {
			return err
		}
		searches = append(searches, took.Seconds())
	}
	runs := fmt.Sprintf(" over %d runs", statsRuns)
	s.add("STATS", "tenon stats tools"+runs, "s", stats)
	s.add("STATS.first", "the first tenon stats tools"+runs+" of a store from an earlier release", "s",
		[]float64{first.Seconds()})
	s.add("STATS.search", "tenon sessions search"+runs, "s", searches)
	s.add("STATS.search.first", "the first tenon sessions search"+runs+" of a store from an earlier release", "s",
		[]float64{search.Seconds()})
	s.add("STATS.catchup", "until tenon serve has read these runs in the background", "s", []float64{caught.Seconds()})
	return nil
}

// statsCommand runs a command on the store.
func statsCommand(ctx context.Context, bin, dir string, args ...string) (took time.Duration, out string, err error) {
	cmd := exec.CommandContext(ctx, bin, append(args, "-c", filepath.Join(dir, "tenon.yaml"))...)
	cmd.Env = append(os.Environ(), "TENON_STORE_KEY="+statsKey)
	began := time.Now()
	b, err := cmd.CombinedOutput()
	took = time.Since(began)
	if err != nil {
		err = fmt.Errorf("tenon %s: %w: %.500s", strings.Join(args, " "), err, b)
	}
	return took, string(b), err
}

// catchUp measures how long tenon serve takes to read all runs.
func catchUp(s *session, bin, dir string) (took time.Duration, err error) {
	if err := os.Setenv("TENON_STORE_KEY", statsKey); err != nil {
		return 0, err
	}
	defer os.Unsetenv("TENON_STORE_KEY")
	model, stopModel, err := s.startModel(0)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	p, err := s.startServe(bin, dir, served(model, nil))
	if err != nil {
		return 0, errors.Join(err, stopModel())
	}
	for err == nil {
		var out string
		if _, out, err = statsCommand(s.ctx, bin, dir, "sessions", "search", "weather"); !strings.Contains(out,
			"not searched") {
			break
		}
		time.Sleep(time.Second)
	}
	took = time.Since(began)
	return took, errors.Join(err, p.stop(), stopModel())
}

// manyRuns makes a store with finished runs of many sessions.
func manyRuns(ctx context.Context, home string) (err error) {
	env := func(name string) (string, bool) { return statsKey, name == "TENON_STORE_KEY" }
	h, err := host.Open(ctx, host.Config{Home: home, LookupEnv: env,
		Models:   map[string]tenon.Model{"mock": statsModel{}},
		Toolsets: map[string]tenon.Toolset{instantServer: instantTools{}}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	errs := make([]error, statsAskers)
	var askers sync.WaitGroup
	for a := range statsAskers {
		askers.Go(func() {
			for i := a; i < statsRuns && errs[a] == nil; i += statsAskers {
				_, errs[a] = h.Ask(ctx, fmt.Sprint("Report the weather in city ", i))
			}
		})
	}
	askers.Wait()
	return errors.Join(errs...)
}

// statsModel calls get_weather once and then answers.
type statsModel struct{}

// Name implements [tenon.Model].
func (statsModel) Name() string { return "mock/model" }

// Generate implements [tenon.Model].
func (statsModel) Generate(_ context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		r := &tenon.Response{Stop: tenon.StopToolUse, Usage: &tenon.Usage{Input: 100, Output: 20}, Model: "mock",
			Message: &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartCall,
				Call: &tenon.ToolCall{ID: "call_1", Name: "get_weather",
					Arguments: json.RawMessage(`{"city":"London"}`)}}}}}
		if len(req.Messages) > 1 {
			r.Stop = tenon.StopEnd
			r.Message.Parts = []tenon.Part{{Type: tenon.PartText, Text: "It rains, and will until the evening."}}
		}
		yield(tenon.Delta{Kind: tenon.DeltaResponse, Response: r}, nil)
	}
}

var _ tenon.Model = statsModel{}

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
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/signed"
	"github.com/tenonhq/tenon/store/sqlite"
	"github.com/tenonhq/tenon/view"
)

// Scale of STATS and STATS.large.
const (
	statsRuns      = 20_000
	statsLargeRuns = 75_000 // of STATS.large, which compares them with a tenth of them
	statsAskers    = 32
	statsPatience  = 45 * time.Minute // for tenon serve to read all runs
	statsKey       = "figures-figures-figures-figures-figures"
)

// statsTimes has the times of one store, in seconds.
type statsTimes struct {
	runs                       int
	stats, searches            []float64 // once tenon serve has read all runs
	first, firstSearch, caught float64
}

// measureStats measures statistics and searches over 20,000 runs.
func measureStats(s *session) error {
	bin := filepath.Join(s.tmp, "tenon")
	if err := s.build(bin, "./cmd/tenon"); err != nil {
		return err
	}
	t, err := statsOver(s, bin, statsRuns)
	if err != nil {
		return err
	}
	s.addStats("STATS", t)
	return nil
}

// measureStatsLarge measures statistics and searches over 75,000 runs, and compares them with those over 7,500 runs.
func measureStatsLarge(s *session) error {
	bin := filepath.Join(s.tmp, "tenon")
	if err := s.build(bin, "./cmd/tenon"); err != nil {
		return err
	}
	small, err := statsOver(s, bin, statsLargeRuns/10)
	if err != nil {
		return err
	}
	large, err := statsOver(s, bin, statsLargeRuns)
	if err != nil {
		return err
	}
	s.addStats("STATS.large", large)
	for _, r := range []struct {
		id, name     string
		large, small float64
	}{
		{"", "tenon stats tools", median(large.stats), median(small.stats)},
		{".first", "the first tenon stats tools", large.first, small.first},
		{".search", "tenon sessions search", median(large.searches), median(small.searches)},
		{".search.first", "the first tenon sessions search", large.firstSearch, small.firstSearch},
		{".catchup", "until tenon serve has read all runs", large.caught, small.caught},
	} {
		s.add("STATS.large"+r.id+".ratio", fmt.Sprintf("%s over %d runs against %d", r.name, large.runs, small.runs),
			"ratio", []float64{r.large / r.small})
	}
	return nil
}

// addStats records the times of one store.
func (s *session) addStats(id string, t *statsTimes) {
	runs := fmt.Sprintf(" over %d runs", t.runs)
	s.add(id, "tenon stats tools"+runs, "s", t.stats)
	s.add(id+".first", "the first tenon stats tools"+runs+" of a store from an earlier release", "s",
		[]float64{t.first})
	s.add(id+".search", "tenon sessions search"+runs, "s", t.searches)
	s.add(id+".search.first", "the first tenon sessions search"+runs+" of a store from an earlier release", "s",
		[]float64{t.firstSearch})
	s.add(id+".catchup", "until tenon serve has read these runs in the background", "s", []float64{t.caught})
}

// statsOver measures statistics and searches over a number of runs, each with a tool call. As with a store from an
// earlier release, no process has read these runs yet. The first search and the first statistics are measured once
// each. Then tenon serve catches up, and the statistics of the store are measured again.
func statsOver(s *session, bin string, runs int) (*statsTimes, error) {
	dir, err := os.MkdirTemp(s.tmp, "stats-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := manyRuns(s.ctx, filepath.Join(dir, ".tenon"), runs, false); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "tenon.yaml"), []byte("servers: {}\n"), 0o600); err != nil {
		return nil, err
	}
	t, last := &statsTimes{runs: runs}, fmt.Sprint(runs-1)
	search, _, err := statsCommand(s.ctx, bin, dir, "sessions", "search", "weather", last)
	if err != nil {
		return nil, err
	}
	first, out, err := statsCommand(s.ctx, bin, dir, "stats", "tools", "-o", "json")
	if err != nil {
		return nil, err
	}
	s.say("%d runs, the first statistics: %.300s", runs, strings.Join(strings.Fields(out), " "))
	caught, err := catchUp(s, bin, dir)
	if err != nil {
		return nil, err
	}
	t.first, t.firstSearch, t.caught = first.Seconds(), search.Seconds(), caught.Seconds()
	for range s.rounds {
		took, out, err := statsCommand(s.ctx, bin, dir, "stats", "tools", "-o", "json")
		if err == nil && !strings.Contains(out, fmt.Sprintf(`"calls": %d`, runs)) &&
			!strings.Contains(out, fmt.Sprintf(`"calls":%d`, runs)) {
			err = fmt.Errorf("other counts than expected: %.500s", out)
		}
		if err != nil {
			return nil, err
		}
		t.stats = append(t.stats, took.Seconds())
		if took, _, err = statsCommand(s.ctx, bin, dir, "sessions", "search", "weather", last); err != nil {
			return nil, err
		}
		t.searches = append(t.searches, took.Seconds())
	}
	return t, nil
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
		if time.Since(began) > statsPatience {
			err = fmt.Errorf("tenon serve has not read all runs within %s: stop other work on this machine",
				statsPatience)
			break
		}
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

// manyRuns makes a store with finished runs of many sessions. One run is made by a question. The others are copies of
// its journal with other ids, sessions and cities: asking 75,000 questions would take longer than everything that is
// measured. If summed, the copies have their summaries. It returns
// the run that was copied.
func manyRuns(ctx context.Context, home string, runs int, summed bool) (pattern runPattern, err error) {
	env := func(name string) (string, bool) { return statsKey, name == "TENON_STORE_KEY" }
	h, err := host.Open(ctx, host.Config{Home: home, LookupEnv: env,
		Models:   map[string]tenon.Model{"mock": statsModel{}},
		Toolsets: map[string]tenon.Toolset{instantServer: instantTools{}}})
	if err != nil {
		return pattern, err
	}
	_, err = h.Ask(ctx, statsQuestion(0))
	path := filepath.Join(home, "tenon.db") // as host.Config.Home names it
	if err := errors.Join(err, h.Close()); err != nil {
		return pattern, err
	}
	key, err := signed.NewKey([]byte(statsKey))
	if err != nil {
		return pattern, err
	}
	s, err := sqlite.Open(ctx, sqlite.Config{Path: path, Key: key})
	if err != nil {
		return pattern, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if pattern, err = readPattern(ctx, s); err != nil {
		return pattern, err
	}
	errs := make([]error, statsAskers)
	var askers sync.WaitGroup
	for a := range statsAskers {
		askers.Go(func() {
			for i := a + 1; i < runs && errs[a] == nil; i += statsAskers {
				errs[a] = s.Append(ctx, pattern.copy(i, summed))
			}
		})
	}
	askers.Wait()
	return pattern, errors.Join(errs...)
}

// statsQuestion is the question about a city with a number.
func statsQuestion(city int) string { return fmt.Sprintf("Report the weather in city %d", city) }

// runPattern is a run that is copied.
type runPattern struct {
	row    tenon.Run
	events []tenon.Event
	uses   []string // its blobs
}

// readPattern reads the only run of a store.
func readPattern(ctx context.Context, s *sqlite.Store) (p runPattern, err error) {
	list, err := s.Runs(ctx, store.RunFilter{})
	if err != nil {
		return p, err
	}
	if len(list) != 1 || list[0].State != tenon.RunCompleted {
		return p, fmt.Errorf("the store should have one completed run: %+v", list)
	}
	p.row = list[0]
	if p.events, err = s.Events(ctx, p.row.ID, 0, 0); err != nil {
		return p, err
	}
	var first struct{ Tools string }
	if json.Unmarshal(p.events[0].Data, &first) == nil && first.Tools != "" {
		p.uses = []string{first.Tools}
	}
	return p, nil
}

// copy returns the append of a whole run about another city. If summed, it has the run's summary.
func (p *runPattern) copy(city int, summed bool) store.Append {
	run, session := fmt.Sprintf("%s%06d", p.row.ID, city), fmt.Sprintf("%s%06d", p.row.Session, city)
	change := strings.NewReplacer(statsQuestion(0), statsQuestion(city), p.row.ID, run, p.row.Session, session)
	row := p.row
	row.ID, row.Session, row.Title = run, session, change.Replace(row.Title)
	events := make([]tenon.Event, len(p.events))
	for i, e := range p.events {
		e.Run, e.Data = run, json.RawMessage(change.Replace(string(e.Data)))
		events[i] = e
	}
	a := store.Append{Run: run, Create: &row, Uses: p.uses, Events: events, State: row.State, Stop: row.Stop}
	if summed {
		t := view.TallyOf(row, events)
		a.Tally = view.AppendTally(nil, &t)
	}
	return a
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

package kill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/script"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
	"github.com/tenonhq/tenon/transcript"
)

const (
	envPoint  = "TENON_POINT"  // makes the test binary the process that dies at this point; with "-" it survives
	envPoints = "TENON_POINTS" // "all" to test every point
	envHome   = "TENON_POINT_HOME"
	envFlow   = "TENON_POINT_FLOW" // selects the workflow scenario
	fewPoints = 10                 // number of tested points without TENON_POINTS
)

func TestMain(m *testing.M) {
	if at := os.Getenv(envPoint); at != "" {
		if err := pointsMain(at, os.Getenv(envHome), os.Getenv(envFlow) != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The responses of the scenario's models. They contain concurrent calls, of which some may be repeated and some must
// not, a call that a person allows permanently, a call of an agent by another agent, and a conversation that is
// compacted.
const (
	leadScript = `steps:
  - calls: [{name: safe, arguments: {}}, {name: unsafe, arguments: {}}, {name: unsafe, arguments: {}}]
  - calls: [{name: asked, arguments: {}}]
  - calls: [{name: help, arguments: {message: please}}, {name: unsafe, arguments: {}}]
  - text: all done
`
	helperScript = `steps:
  - calls: [{name: unsafe, arguments: {}}, {name: safe, arguments: {}}]
  - text: helped
`
	leadCalls = 6
)

// sums is a model that answers requests for a summary and forwards all others.
type sums struct {
	tenon.Model
	m *mines
}

func (s sums) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		_ = s.m.pass("model", func() error {
			if last := req.Messages[len(req.Messages)-1].Text(); strings.HasPrefix(last, "<conversation>") {
				yield(tenon.Delta{Kind: tenon.DeltaResponse,
					Response: &tenon.Response{Stop: tenon.StopEnd, Usage: &tenon.Usage{Input: 5, Output: 5},
						Message: &tenon.Message{Role: tenon.RoleAssistant,
							Parts: []tenon.Part{{Type: tenon.PartText, Text: "the gist"}}}}}, nil)
				return nil
			}
			for d, err := range s.Model.Generate(ctx, req) {
				if !yield(d, err) {
					break
				}
			}
			return nil
		})
	}
}

// works is a toolset whose calls write a line with their idempotency key.
type works struct {
	m       *mines
	mu      sync.Mutex
	effects *os.File
}

func (w *works) Tools(context.Context) ([]tenon.Tool, error) {
	yes, no, object := true, false, json.RawMessage(`{"type":"object"}`)
	return []tenon.Tool{
		{Remote: "safe", Input: object, Annotations: tenon.Annotations{Idempotent: &yes, ReadOnly: &no}},
		{Remote: "unsafe", Input: object, Annotations: tenon.Annotations{Idempotent: &no, ReadOnly: &no}},
		{Remote: "asked", Input: object, Annotations: tenon.Annotations{Idempotent: &no, ReadOnly: &no}},
	}, nil
}

func (w *works) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	err := w.m.pass("effect:"+c.Tool, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		_, err := fmt.Fprintln(w.effects, c.Key)
		return err
	})
	return &tenon.Result{Content: []tenon.Content{tenon.Text("done " + strings.Repeat("x", 600))}}, err
}

// pointsMain is the process that dies. It drives the scenario from its current state to its end.
func pointsMain(at, home string, flow bool) error {
	ctx := context.Background()
	log, err := os.OpenFile(filepath.Join(home, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	effects, err := os.OpenFile(filepath.Join(home, "effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	m := &mines{at: at, log: log, seen: map[string]int{}}
	h, err := openMined(ctx, home, m, &works{m: m, effects: effects})
	if err != nil {
		return err
	}
	if flow {
		return errors.Join(flowMain(ctx, h, home), h.Close())
	}
	session := ""
	for i, question := range []string{"go", "once more"} {
		key := fmt.Sprint("key", i)
		run, err := h.Start(ctx, host.Question{Key: key, Text: question, Agent: "lead", Session: session})
		if err != nil {
			return err
		}
		session = run.Session
		if run.Again && !run.State.Ended() {
			if err := h.Runs().Resume(ctx, run.ID); err != nil {
				return err
			}
		}
		if err := toItsEnd(ctx, h, run.ID); err != nil {
			return err
		}
	}
	if err := afterwards(ctx, h, session); err != nil {
		return err
	}
	return h.Close()
}

// afterwards does what people do with a session after a run has ended.
func afterwards(ctx context.Context, h *host.Host, session string) error {
	if _, err := h.Sessions().Rename(ctx, session, "a name"); err != nil {
		return err
	}
	if _, err := h.Sessions().Transcripts().Search(ctx, transcript.Query{Words: "please"}); err != nil {
		return err
	}
	grants, err := h.Approvals().Grants(ctx, tenon.PrincipalLocal)
	if err != nil {
		return err
	}
	for _, g := range grants {
		if err := h.Approvals().Revoke(ctx, g.Principal, g.ID); err != nil {
			return err
		}
	}
	return nil
}

func openMined(ctx context.Context, home string, m *mines, w *works) (*host.Host, error) {
	st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(home, "tenon.db")})
	if err != nil {
		return nil, err
	}
	models := map[string]tenon.Model{}
	for name, steps := range map[string]string{"lead": leadScript, "helper": helperScript} {
		file := filepath.Join(home, name+".yaml")
		if err := os.WriteFile(file, []byte(steps), 0o600); err != nil {
			return nil, err
		}
		s, err := script.New(model.Config{Name: name, Provider: "script", Path: file})
		if err != nil {
			return nil, err
		}
		models[name] = sums{s, m}
	}
	for name, text := range map[string]string{"outer": outerFlow, "inner": innerFlow} {
		if err := os.WriteFile(flowPath(home, name), []byte(flowOf(text, "safe", "unsafe", "asked")),
			0o600); err != nil {
			return nil, err
		}
	}
	return host.Open(ctx, host.Config{
		Config: &config.Config{
			Agents: map[string]agent.Config{
				"lead": agent.Config{Model: "lead", Compaction: agent.Compaction{At: 20, Keep: 1, ClearAt: 10,
					KeepResults: 1}}.WithDefaults(),
				"helper": agent.Config{Model: "helper", Description: "helps"}.WithDefaults(),
			},
			Tools: map[string]catalog.Tool{
				"help": {Kind: tenon.KindAgent, Agent: "helper"},
				"inner": {Kind: tenon.KindWorkflow, Path: flowPath(home, "inner"),
					Policy: policy.Block{Approval: policy.Approval{Mode: "never"}}},
				"safe": {Server: "works", RemoteName: "safe",
					Policy: policy.Block{Approval: policy.Approval{Mode: "never"}}},
				"unsafe": {Server: "works", RemoteName: "unsafe",
					Policy: policy.Block{Approval: policy.Approval{Mode: "never"}}},
				"asked": {Server: "works", RemoteName: "asked",
					Policy: policy.Block{Approval: policy.Approval{Mode: "always"}, ResultBytes: 500}},
			},
			Budgets: agent.Budgets{Day: agent.Budget{ToolCalls: 1000, Tokens: 1_000_000},
				Session: agent.Budget{Turns: 1000}},
		},
		Store: &mined{st, m}, Models: models, Toolsets: map[string]tenon.Toolset{"works": w},
		LookupEnv: func(string) (string, bool) { return "", false }})
}

// toItsEnd follows a run to its end, allows the calls that it waits for, and prints each event.
func toItsEnd(ctx context.Context, h *host.Host, run string) error {
	for {
		waits := false
		for e, err := range h.Runs().Events(ctx, run, 0) {
			if err != nil {
				return err
			}
			waits = e.Kind == engine.EventWaiting
			if e.Seq > 0 {
				_ = json.NewEncoder(os.Stdout).Encode(event{Run: e.Run, Seq: e.Seq, Step: e.Step, Kind: e.Kind,
					Data: e.Data})
			}
		}
		if !waits {
			return nil
		}
		asked, err := h.Approvals().List(ctx, run)
		if err != nil {
			return err
		}
		for _, a := range asked {
			if _, _, err := h.Approvals().Decide(ctx, a.Run, a.Step, agent.Ruling{Verdict: tenon.Allow, By: "ann",
				Remember: agent.RememberAlways, Uses: 50}); err != nil && tenon.ErrorCode(err) != tenon.CodeConflict {
				return err
			}
		}
		if err := h.Runs().Resume(ctx, run); err != nil {
			return err
		}
	}
}

// TestPoints kills the process before and after every durable write and every effect of a scenario, and then once more
// during each recovery. The points are the ones that the scenario passes without a kill. Every method of the store that
// writes must be among them.
func TestPoints(t *testing.T) {
	longtest.Skip(t)
	points := newScene(t).walk(t)
	for _, name := range writes() {
		if _, elsewhere := unmined[name]; !elsewhere && !slices.ContainsFunc(points,
			func(p string) bool { return strings.HasPrefix(p, name+"#") || strings.HasPrefix(p, name+":") }) {
			t.Errorf("the scenario has no point in method %s of a store, so a kill there is not tested", name)
		}
	}
	killAt(t, points, newScene)
}

// killAt kills the process at points of a scenario, each time with a new scene.
func killAt(t *testing.T, points []string, newScene func(*testing.T) *scene) {
	t.Helper()
	begun := time.Now()
	all := len(points)
	if os.Getenv(envPoints) != "all" {
		begin := int(time.Now().UnixNano()) % len(points)
		var few []string
		for i := range fewPoints {
			few = append(few, points[(begin+i*len(points)/fewPoints)%len(points)])
		}
		points = few
	}
	var died, twice, unknown int
	for i, point := range points {
		s := newScene(t)
		if !s.live(t, point) {
			continue // the order of concurrent calls may differ
		}
		died++
		if s.live(t, points[(i*7+3)%len(points)]) || s.live(t, "Append:interrupted,unknown#1+") {
			twice++
		}
		s.live(t, "-")
		unknown += s.check(t, point)
		if t.Failed() {
			t.Fatalf("after a kill at %s:\n%s", point, s.log(t))
		}
	}
	if died < len(points)*3/4 {
		t.Errorf("only %[2]d of %[1]d points were reached", len(points), died)
	}
	t.Logf(
		"%s: %d of %d points, a kill at %d of them and again in the recovery of %d: 0 acknowledged events lost, 0 "+
			"finished calls repeated, %d unknown",
		time.Since(begun).Round(time.Millisecond), len(points), all, died, twice, unknown)
}

// scene is a home directory with the output of all its processes.
type scene struct {
	home string
	flow bool
	want int // number of runs
	made int // number of tool calls
	said []event
}

func newScene(t *testing.T) *scene {
	return &scene{home: t.TempDir(), want: 4, made: 2*(leadCalls-1) + 2*2}
}

// walk runs the scenario without a kill and returns the points that it passes.
func (s *scene) walk(t *testing.T) (points []string) {
	t.Helper()
	s.live(t, "-")
	s.check(t, "-")
	for line := range strings.Lines(s.log(t)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "point "); ok {
			points = append(points, name)
		}
	}
	return points
}

func (s *scene) log(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.home, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// live runs one process and reports whether it died at its point.
func (s *scene) live(t *testing.T, point string) (died bool) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), envPoint+"="+point, envHome+"="+s.home)
	if s.flow {
		cmd.Env = append(cmd.Env, envFlow+"=1")
	}
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err = cmd.Run()
	for line := range strings.Lines(out.String()) {
		var e event
		if strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &e) == nil {
			s.said = append(s.said, e)
		}
	}
	var exit *exec.ExitError
	died = strings.HasSuffix(strings.TrimSpace(s.log(t)), "dies "+point)
	if err != nil && (!errors.As(err, &exit) || !died) {
		t.Fatalf("the process that should die at %s: %v\n%s\n%s", point, err, stderr.String(), s.log(t))
	}
	return died
}

// check compares the journals with the observed events and effects.
func (s *scene) check(t *testing.T, point string) (unknown int) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(s.home, "tenon.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }() // opened for reading only
	rows, err := st.Runs(t.Context(), store.RunFilter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	done, err := os.ReadFile(filepath.Join(s.home, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]int{}
	for _, key := range strings.Fields(string(done)) {
		effects[key]++
	}
	calls, results := 0, 0
	journals := map[string][]event{}
	for _, row := range rows {
		if row.State != tenon.RunCompleted {
			t.Errorf("%s: run %s is %s", point, row.ID, row.State)
		}
		journals[row.ID] = journalOf(t, st, row.ID)
		for step, c := range callsOf(t, row.ID, journals[row.ID]) {
			did := effects[row.ID+"/"+step]
			delete(effects, row.ID+"/"+step)
			if len(c.ends) != 1 || c.startAfterEnd || did > c.starts {
				t.Errorf("%s: run %s: step %s (%s, %d starts, ends %v) took effect %d times", point, row.ID, step,
					c.tool, c.starts, c.ends, did)
				continue
			}
			isRun := c.tool == "help" || c.tool == flowTool
			if !isRun {
				calls++
			}
			switch end := c.ends[0]; {
			case isRun && end != "result", c.tool == "safe" && end != "result":
				t.Errorf("%s: run %s: step %s (%s) ended as %s", point, row.ID, step, c.tool, end)
			case isRun:
			case c.tool != "safe" && did > 1, end == "result" && did == 0, end == "failed":
				t.Errorf("%s: run %s: step %s (%s) ended as %s and took effect %d times", point, row.ID, step,
					c.tool, end, did)
			case end == "unknown":
				unknown++
			default:
				results++
			}
		}
	}
	if len(rows) != s.want || calls != s.made {
		t.Errorf("%s: %d runs with %d tool calls, want %d with %d", point, len(rows), calls, s.want, s.made)
	}
	if s.flow {
		checkFlow(t, journals)
	}
	for key, n := range effects {
		t.Errorf("%s: %s took effect %d times but is in no journal", point, key, n)
	}
	for _, e := range s.said {
		if j := journals[e.Run]; e.Seq > uint64(len(j)) || !same(e, j[e.Seq-1]) {
			t.Errorf("%s: event %d of run %s (%s %s) was observed but is lost", point, e.Seq, e.Run, e.Kind, e.Step)
		}
	}
	if point == "-" && unknown > 0 {
		t.Errorf("%d calls are unknown without a kill", unknown)
	}
	s.checkBudgets(t, point, st, results, calls)
	return unknown
}

// journalOf returns the stored events of a run, in the form of the output.
func journalOf(t *testing.T, st store.Store, run string) (list []event) {
	t.Helper()
	events, err := st.Events(t.Context(), run, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if len(e.Data) == 0 {
			e.Data = json.RawMessage("null") // as in the output
		}
		list = append(list, event{Run: e.Run, Seq: e.Seq, Step: e.Step, Kind: e.Kind,
			Data: e.Data})
	}
	return list
}

// checkBudgets checks that nothing stays reserved, and that the calls with a result are charged.
func (s *scene) checkBudgets(t *testing.T, point string, st store.Store, results, calls int) {
	t.Helper()
	balances, err := st.Balances(t.Context(), "day/")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range balances {
		if b.Reserved != 0 || !s.flow && strings.HasSuffix(b.Key, "/tool_calls") &&
			(b.Used < int64(results) || b.Used > int64(calls)+2) {
			t.Errorf("%s: after %d results of %d calls the budget is %+v", point, results, calls, b)
		}
	}
}

package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

// Options say how a suite is run. Host is what each attempt's host is opened with: its
// configuration, models and so on; where it lies, its cassettes, its toolsets around
// servers and its approvals are set for each attempt.
type Options struct {
	Host host.Config
	// Model, Repeat and Concurrency stand above what the file says; "" and 0: nothing.
	Model               string
	Repeat, Concurrency int
	// Cases holds globs on names; only the cases that one fits are run. Empty: all.
	Cases []string
	// Record and Replay are folders of cassettes, one for each attempt: FOLDER/CASE, and
	// FOLDER/CASE-2 for the second one. A replay takes the first one for further attempts
	// that have none.
	Record, Replay string
	// Yes allows calls that would ask; else only those that a mock answers are made.
	Yes bool
	// Keep is a folder in which the stores of the attempts are left, in CASE-1 and so on.
	// "": they are removed.
	Keep string
	// Each is called with each attempt when it has ended, one at a time. Nil: nobody is.
	Each func(Attempt)
}

// Result is what came of a suite.
type Result struct {
	Suite  string       `json:"suite"`
	Passed int          `json:"passed"` // cases
	Failed int          `json:"failed"`
	Cases  []CaseResult `json:"cases"`
	Usage  tenon.Usage  `json:"usage"`
	Cost   *tenon.USD   `json:"cost"` // nil: no price is known
	Millis int64        `json:"duration_ms"`
}

// CaseResult is what came of one case.
type CaseResult struct {
	Name     string    `json:"name"`
	Question string    `json:"question"`
	Passed   bool      `json:"passed"`
	Share    float64   `json:"share"` // of the attempts that passed
	Need     float64   `json:"need"`  // the share that must pass
	Attempts []Attempt `json:"attempts"`
}

// Attempt is one run of a case.
type Attempt struct {
	Case     string           `json:"case"`
	Number   int              `json:"attempt"` // from 1
	Passed   bool             `json:"passed"`
	Failures []string         `json:"failures,omitempty"` // what is not as expected
	Error    string           `json:"error,omitempty"`    // why there is nothing to judge
	Run      string           `json:"run,omitempty"`
	Model    string           `json:"model,omitempty"`
	Stop     tenon.StopReason `json:"stop_reason,omitempty"`
	Answer   string           `json:"answer"`
	Context  []string         `json:"context,omitempty"` // what was retrieved: see [servers.Config]
	Calls    []CallSummary    `json:"tool_calls"`
	Turns    int              `json:"turns"`
	Usage    tenon.Usage      `json:"usage"`
	Cost     *tenon.USD       `json:"cost"`
	Millis   int64            `json:"duration_ms"`
}

// CallSummary is one tool call of an attempt.
type CallSummary struct {
	Name    string `json:"name"`
	Server  string `json:"server,omitempty"`
	Args    any    `json:"args"`
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
}

// Run makes every attempt of every case, some at a time, and returns what came of
// them in the order of the file. The error is about the whole (code invalid, store,
// cancelled with what had ended by then); failures of cases are in the result.
func Run(ctx context.Context, s *Suite, o Options) (*Result, error) {
	start := time.Now()
	cases, err := o.pick(s)
	if err != nil {
		return nil, err
	}
	home := o.Keep
	if home == "" {
		if home, err = os.MkdirTemp("", "tenon-eval-"); err != nil {
			return nil, tenon.Errorf(tenon.CodeStore, "eval: %w", err)
		}
		defer func() { _ = os.RemoveAll(home) }() // what is left is in the folder for such things
	}
	r := &Result{Suite: s.Name, Cases: make([]CaseResult, len(cases))}
	limit := make(chan struct{}, max(1, cmp.Or(o.Concurrency, s.Concurrency)))
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i, c := range cases {
		n := cmp.Or(o.Repeat, c.Repeat)
		r.Cases[i] = CaseResult{Name: c.Name, Question: c.Question, Need: 1, Attempts: make([]Attempt, n)}
		if c.Pass != nil {
			r.Cases[i].Need = *c.Pass
		}
		for k := range n {
			select {
			case limit <- struct{}{}:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				r.Cases[i].Attempts[k] = Attempt{Case: c.Name, Number: k + 1, Error: "not begun: interrupted", Calls: []CallSummary{}}
				continue
			}
			wg.Go(func() {
				defer func() { <-limit }()
				a := o.attempt(ctx, s, c, k+1, home)
				mu.Lock()
				defer mu.Unlock()
				r.Cases[i].Attempts[k] = a
				if o.Each != nil {
					o.Each(a)
				}
			})
		}
	}
	wg.Wait()
	r.count()
	r.Millis = time.Since(start).Milliseconds()
	if ctx.Err() != nil {
		return r, tenon.Errorf(tenon.CodeCancelled, "eval: %w", context.Cause(ctx))
	}
	return r, nil
}

// pick returns the cases that are to be run.
func (o *Options) pick(s *Suite) ([]*Case, error) {
	var cases []*Case
	for i := range s.Cases {
		c := &s.Cases[i]
		if len(o.Cases) == 0 || slices.ContainsFunc(o.Cases, func(g string) bool { ok, _ := path.Match(g, c.Name); return ok }) {
			cases = append(cases, c)
		}
	}
	for _, g := range o.Cases {
		if _, err := path.Match(g, ""); err != nil {
			return nil, tenon.Errorf(tenon.CodeInvalid, "eval: '%s' is no glob", g)
		}
	}
	for _, c := range cases {
		if o.Host.Config == nil {
			break
		}
		if _, err := o.Host.Config.Agent(c.Agent); err != nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "eval: case '%s': %w", c.Name, err)
		}
	}
	if len(cases) == 0 {
		return nil, tenon.Errorf(tenon.CodeInvalid, "eval: no case fits %s", strings.Join(o.Cases, ", "))
	}
	return cases, nil
}

// count sums up what the attempts came to.
func (r *Result) count() {
	for i := range r.Cases {
		c := &r.Cases[i]
		passed := 0
		for _, a := range c.Attempts {
			if a.Passed {
				passed++
			}
			r.Usage.Add(&a.Usage)
			if a.Cost != nil {
				if r.Cost == nil {
					r.Cost = new(tenon.USD)
				}
				*r.Cost += *a.Cost
			}
		}
		c.Share = float64(passed) / float64(len(c.Attempts))
		if c.Passed = c.Share >= c.Need; c.Passed {
			r.Passed++
		} else {
			r.Failed++
		}
	}
}

// folder is the name of what belongs to an attempt.
func folder(c *Case, n int) string { return slug(c.Name) + "-" + strconv.Itoa(n) }

// cassette is where an attempt is recorded or replayed.
func cassette(dir string, c *Case, n int) string {
	if n == 1 {
		return filepath.Join(dir, slug(c.Name))
	}
	return filepath.Join(dir, folder(c, n))
}

// slug makes the name of a case one of a folder.
func slug(name string) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r > 127:
			return r
		}
		return '-'
	}, name)
	if s = strings.Trim(s, "-."); s == "" {
		return "case"
	}
	return s
}

// errUnallowed ends an attempt that waits for a decision.
type errUnallowed struct{ what string }

func (e errUnallowed) Error() string { return e.what }

// attempt makes one run and judges it.
func (o *Options) attempt(ctx context.Context, s *Suite, c *Case, n int, home string) Attempt {
	a := Attempt{Case: c.Name, Number: n, Calls: []CallSummary{}}
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, fmt.Errorf("it took longer than %s", s.Timeout))
	defer cancel()
	m := newMocks(c, s)
	report, err := o.run(ctx, c, n, filepath.Join(home, folder(c, n)), m)
	took := time.Since(start)
	a.Millis = took.Milliseconds()
	if report != nil {
		a.fill(report)
		a.Context = o.retrieved(report)
		a.Failures = c.Expect.judge(report, a.Context, took)
	}
	for _, u := range m.unmocked {
		a.Failures = append(a.Failures, "no mock fits the call "+u)
	}
	var waits errUnallowed
	switch {
	case errors.As(err, &waits):
		a.Failures = append([]string{waits.what}, a.Failures...)
	case err != nil && ctx.Err() != nil:
		a.Error = context.Cause(ctx).Error()
	case err != nil:
		a.Error = err.Error()
	}
	a.Passed = a.Error == "" && len(a.Failures) == 0
	return a
}

func (a *Attempt) fill(r *agent.Report) {
	a.Run, a.Model, a.Stop, a.Answer = r.Run, r.Model, r.Stop, r.Answer
	a.Turns, a.Usage, a.Cost = r.Turns, r.Usage, r.Cost
	for _, c := range r.ToolCalls {
		a.Calls = append(a.Calls, CallSummary{Name: c.Name, Server: c.Server, Args: c.Args, Outcome: c.Outcome, Error: c.Error})
	}
}

// retrieved are the texts that tools of servers with is_retrieval gave, in the order of
// their calls, mocked ones too.
func (o *Options) retrieved(r *agent.Report) (texts []string) {
	if o.Host.Config == nil {
		return nil
	}
	for _, c := range r.ToolCalls {
		if c.Success && c.Result != nil && o.Host.Config.Servers[c.Server].IsRetrieval {
			texts = append(texts, c.Result.Text())
		}
	}
	return texts
}

// run asks the question on a host of its own, and reports what came of it. There may
// be both a report and an error.
func (o *Options) run(ctx context.Context, c *Case, n int, home string, m *mocks) (report *agent.Report, err error) {
	cfg := o.Host
	cfg.Home, cfg.Brief, cfg.Wrap = home, false, m.wrap
	if o.Record != "" {
		cfg.Record = cassette(o.Record, c, n)
	}
	if o.Replay != "" {
		cfg.Replay = cassette(o.Replay, c, n)
		if _, err := os.Stat(cfg.Replay); err != nil {
			cfg.Replay = cassette(o.Replay, c, 1)
		}
	}
	if t, ok := m.toolset(); ok {
		sets := map[string]tenon.Toolset{mockServer: t}
		for name, t := range o.Host.Toolsets {
			sets[name] = t
		}
		cfg.Toolsets = sets
	}
	cfg.Approve = o.approve(m)
	h, err := host.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := h.Close(); err == nil {
			err = cerr // such as a cassette that was not played to its end
		}
	}()
	q := host.Question{Text: c.Question, Agent: c.Agent, Model: c.Model, Mode: c.Mode, ToolChoice: c.ToolChoice}
	if o.Model != "" {
		q.Model = o.Model
	}
	run := ""
	for e, eerr := range h.Run(ctx, q) {
		if eerr != nil {
			err = eerr
			break
		}
		run = e.Run
	}
	if run == "" {
		return nil, err
	}
	if err != nil || ctx.Err() != nil {
		_ = h.Cancel(context.WithoutCancel(ctx), run, "the eval has given up") // it may have ended by itself
	}
	if r, rerr := h.Report(context.WithoutCancel(ctx), run); rerr == nil {
		report = &r
	}
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return report, err
}

// approve allows what a mock answers, or what was allowed beforehand. Nobody is there
// to answer anything else.
func (o *Options) approve(m *mocks) func(context.Context, host.Approval) (agent.Ruling, error) {
	return func(_ context.Context, a host.Approval) (agent.Ruling, error) {
		if a.Kind != agent.AskApproval {
			return agent.Ruling{Verdict: tenon.Deny, By: "eval", Reason: "nobody is there to answer in an eval"}, nil
		}
		if _, ok := m.find(a.Server, a.Remote, a.Arguments, false); ok || o.Yes || m.only {
			return agent.Ruling{Verdict: tenon.Allow, By: "eval"}, nil
		}
		return agent.Ruling{}, errUnallowed{fmt.Sprintf("%s(%s) asks for approval: mock the tool, or allow it with --yes", a.Name, shorten(string(a.Arguments), 200))}
	}
}

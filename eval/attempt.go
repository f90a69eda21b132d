package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
)

// errUnallowed ends an attempt that waits for an approval.
type errUnallowed struct{ what string }

func (e errUnallowed) Error() string { return e.what }

// attempt runs a case once and checks the expectations.
func (o *Options) attempt(ctx context.Context, s *Suite, c *Case, n int, home string) Attempt {
	a := Attempt{Case: c.Name, Number: n, Calls: []CallSummary{}, Judged: c.judged()}
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, fmt.Errorf("it took longer than %s", s.Timeout))
	defer cancel()
	m := newMocks(c, s)
	report, problems, err := o.run(ctx, c, n, filepath.Join(home, folder(c, n)), m)
	took := time.Since(start)
	a.Problems = problems
	a.Millis = took.Milliseconds()
	if report != nil {
		a.fill(report)
		a.Context = o.retrieved(report)
		a.Failures = c.Expect.judge(report, a.Context, took)
	}
	for _, u := range m.unmocked {
		a.Failures = append(a.Failures, "no mock matches the call "+u)
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
	a.Passed = a.Judged && a.Whole()
	return a
}

func (a *Attempt) fill(r *view.Report) {
	a.Run, a.Model, a.Stop, a.Answer = r.Run, r.Model, r.Stop, r.Answer
	a.Turns, a.Usage, a.Cost = r.Turns, r.Tokens(), r.Cost
	for _, c := range r.ToolCalls {
		call := CallSummary{Name: c.Name, Server: c.Server, Args: c.Args, Outcome: c.Outcome, Error: c.Error}
		a.Calls = append(a.Calls, call)
	}
}

// retrieved returns the results of tools of servers with is_retrieval, in the order of the calls.
// Mocked calls count, too.
func (o *Options) retrieved(r *view.Report) (texts []string) {
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

// run asks the question on a separate host and returns the report, and a text for each server whose tools were
// missing. It may return both a report and an error.
func (o *Options) run(ctx context.Context, c *Case, n int, home string, m *mocks) (
	report *view.Report, problems []string, err error,
) {
	h, err := host.Open(ctx, o.hostConfig(c, n, home, m))
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		closeErr := h.Close() // reports, for example, unused recordings of a cassette
		if err == nil {
			err = closeErr
		}
	}()
	q := host.Question{Text: c.Question, Agent: c.Agent, Model: c.Model, Mode: c.Mode, ToolChoice: c.ToolChoice,
		Key: "eval"} // Stream finds the run that Start began
	if o.Model != "" {
		q.Model = o.Model
	}
	if q.Files, err = host.FileParts(c.Files); err != nil {
		return nil, nil, err
	}
	started, err := h.Start(ctx, q)
	for _, p := range started.Problems {
		problems = append(problems, p.String())
	}
	if err != nil {
		return nil, problems, err
	}
	for _, eerr := range h.Stream(ctx, q) {
		if eerr != nil {
			err = eerr
			break
		}
	}
	if err != nil || ctx.Err() != nil {
		// the run may have ended
		_ = h.Runs().Cancel(context.WithoutCancel(ctx), started.ID, "the eval was stopped")
	}
	if r, rerr := h.Runs().Open(started.ID).Report(context.WithoutCancel(ctx)); rerr == nil {
		report = &r
	}
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return report, problems, err
}

// hostConfig returns the configuration of the host of an attempt.
func (o *Options) hostConfig(c *Case, n int, home string, m *mocks) host.Config {
	cfg := o.Host
	cfg.Home, cfg.ShortLived, cfg.Wrap = home, false, m.wrap
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
	return cfg
}

// approve allows mocked calls and calls that Options.Yes allows. It denies everything else, because
// an eval has no user.
func (o *Options) approve(m *mocks) func(context.Context, host.Approval) (agent.Ruling, error) {
	return func(_ context.Context, a host.Approval) (agent.Ruling, error) {
		if a.Kind != agent.AskApproval {
			reason := "an eval has no user who could answer"
			return agent.Ruling{Verdict: tenon.Deny, By: "eval", Reason: reason}, nil
		}
		if _, ok := m.find(a.Server, a.Remote, a.Arguments, false); ok || o.Yes || m.only {
			return agent.Ruling{Verdict: tenon.Allow, By: "eval"}, nil
		}
		return agent.Ruling{}, errUnallowed{fmt.Sprintf("%s(%s) needs approval: mock the tool, or allow it with --yes",
			a.Name, shorten(string(a.Arguments), 200))}
	}
}

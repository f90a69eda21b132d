package eval

import (
	"cmp"
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// Options configure how a suite is run. Host configures the host of each attempt: its
// configuration, models and so on. Run sets the home folder, the cassettes, the wrappers of
// toolsets and the approvals for each attempt.
type Options struct {
	Host host.Config
	// Model, Repeat and Concurrency override the file, unless they are "" or 0.
	Model               string
	Repeat, Concurrency int
	// Cases contains glob patterns for names. Only matching cases are run. If empty, all cases are
	// run.
	Cases []string
	// Record and Replay are folders that contain one cassette for each attempt: FOLDER/CASE for the first attempt and
	// FOLDER/CASE-2 for the second. If a later attempt has no cassette, the cassette of the first attempt is replayed.
	Record, Replay string
	// Yes allows calls that need approval. Otherwise only mocked calls are made without approval.
	Yes bool
	// Keep is a folder for the stores of the attempts, in CASE-1 and so on. If empty, the stores
	// are removed.
	Keep string
	// Each is called after each attempt, never concurrently. It may be nil.
	Each func(Attempt)
}

// Result is the result of a suite.
type Result struct {
	Suite  string `json:"suite"`
	Passed int    `json:"passed"` // number of cases
	Failed int    `json:"failed"`
	// NotJudged is the number of cases that ran without a failure and expect nothing.
	NotJudged int          `json:"not_judged"`
	Cases     []CaseResult `json:"cases"`
	Usage     tenon.Usage  `json:"usage"`
	Cost      *tenon.USD   `json:"cost"` // nil if no price is known
	Millis    int64        `json:"duration_ms"`
}

// The states of a [CaseResult].
const (
	CasePassed    = "passed"
	CaseFailed    = "failed"
	CaseNotJudged = "not_judged" // the case expects nothing, so an answer is neither right nor wrong
)

// CaseResult is the result of a case.
type CaseResult struct {
	Name     string    `json:"name"`
	Question string    `json:"question"`
	State    string    `json:"state"` // CasePassed, CaseFailed or CaseNotJudged
	Passed   bool      `json:"passed"`
	Unused   []string  `json:"not_used,omitempty"` // keys of a HoloDeck agent that are not checked
	Share    float64   `json:"share"`              // share of the attempts without a failure
	Need     float64   `json:"need"`               // share that must pass
	Attempts []Attempt `json:"attempts"`
}

// Attempt is one run of a case.
type Attempt struct {
	Case     string           `json:"case"`
	Number   int              `json:"attempt"` // starts at 1
	Passed   bool             `json:"passed"`
	Judged   bool             `json:"judged"`             // whether the case expects something
	Failures []string         `json:"failures,omitempty"` // expectations that are not met
	Error    string           `json:"error,omitempty"`    // why the attempt could not be judged
	Problems []string         `json:"problems,omitempty"` // servers whose tools were missing
	Run      string           `json:"run,omitempty"`
	Model    string           `json:"model,omitempty"`
	Stop     tenon.StopReason `json:"stop_reason,omitempty"`
	Answer   string           `json:"answer"`
	Context  []string         `json:"context,omitempty"` // retrieved texts; see [servers.Config]
	Calls    []CallSummary    `json:"tool_calls"`
	Turns    int              `json:"turns"`
	Usage    tenon.Usage      `json:"usage"`
	Cost     *tenon.USD       `json:"cost"`
	Millis   int64            `json:"duration_ms"`
}

// CallSummary is a tool call of an attempt.
type CallSummary struct {
	Name    string `json:"name"`
	Server  string `json:"server,omitempty"`
	Args    any    `json:"args"`
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
}

// Run runs all attempts, some of them concurrently, and returns their results in the order of the
// file. Failed cases are not an error. Errors have code invalid, store, or cancelled; if cancelled,
// the result contains the finished attempts.
func Run(ctx context.Context, s *Suite, o Options) (*Result, error) {
	start := time.Now()
	if o.Repeat < 0 || o.Repeat > maxRepeat {
		return nil, tenon.Errorf(tenon.CodeInvalid,
			"eval: repeat is %d; it must be 1 to %d, or 0 for the file's value", o.Repeat, maxRepeat)
	}
	if o.Concurrency < 0 {
		return nil, tenon.Errorf(tenon.CodeInvalid,
			"eval: concurrency is %d; it must be positive, or 0 for the file's value", o.Concurrency)
	}
	cases, err := o.pick(s)
	if err != nil {
		return nil, err
	}
	attempts := 0
	for _, c := range cases {
		if attempts += max(cmp.Or(o.Repeat, c.Repeat), 0); attempts > maxAttempts {
			return nil, tenon.Errorf(tenon.CodeTooLarge, "eval: there are more than %d attempts in all; lower "+
				"repeat, or choose fewer cases", maxAttempts)
		}
	}
	home := o.Keep
	if home == "" {
		if home, err = os.MkdirTemp("", "tenon-eval-"); err != nil {
			return nil, tenon.Errorf(tenon.CodeStore, "eval: %w", err)
		}
		defer func() { _ = os.RemoveAll(home) }() // leftovers stay in the folder for temporary files
	}
	r := &Result{Suite: s.Name, Cases: make([]CaseResult, len(cases))}
	limit := make(chan struct{}, max(1, cmp.Or(o.Concurrency, s.Concurrency)))
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i, c := range cases {
		n := max(cmp.Or(o.Repeat, c.Repeat), 1)
		r.Cases[i] = CaseResult{Name: c.Name, Question: c.Question, Unused: c.unused, Need: 1,
			Attempts: make([]Attempt, n)}
		if c.Pass != nil {
			r.Cases[i].Need = *c.Pass
		}
		for k := range n {
			select {
			case limit <- struct{}{}:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				r.Cases[i].Attempts[k] = Attempt{Case: c.Name, Number: k + 1, Calls: []CallSummary{},
					Error: "not started: interrupted"}
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

// pick returns the cases to run.
func (o *Options) pick(s *Suite) ([]*Case, error) {
	var cases []*Case
	for i := range s.Cases {
		c := &s.Cases[i]
		matches := func(glob string) bool {
			ok, _ := path.Match(glob, c.Name)
			return ok
		}
		if len(o.Cases) == 0 || slices.ContainsFunc(o.Cases, matches) {
			cases = append(cases, c)
		}
	}
	for _, g := range o.Cases {
		if _, err := path.Match(g, ""); err != nil {
			return nil, tenon.Errorf(tenon.CodeInvalid, "eval: '%s' is not a valid glob pattern", g)
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
		return nil, tenon.Errorf(tenon.CodeInvalid, "eval: no case matches %s", strings.Join(o.Cases, ", "))
	}
	return cases, nil
}

// count computes the totals of the attempts.
func (r *Result) count() {
	for i := range r.Cases {
		c := &r.Cases[i]
		whole, judged := 0, false
		for _, a := range c.Attempts {
			if a.Whole() {
				whole++
			}
			judged = judged || a.Judged
			r.Usage.Add(&a.Usage)
			if a.Cost != nil {
				if r.Cost == nil {
					r.Cost = new(tenon.USD)
				}
				*r.Cost += *a.Cost
			}
		}
		c.Share = float64(whole) / float64(len(c.Attempts))
		switch {
		case c.Share < c.Need:
			c.State = CaseFailed
			r.Failed++
		case !judged:
			c.State = CaseNotJudged
			r.NotJudged++
		default:
			c.State, c.Passed = CasePassed, true
			r.Passed++
		}
	}
}

// Whole reports whether the attempt ran without an error and met all expectations, if there are any.
func (a *Attempt) Whole() bool { return a.Error == "" && len(a.Failures) == 0 }

// folder returns the folder name of an attempt.
func folder(c *Case, n int) string { return slug(c.Name) + "-" + strconv.Itoa(n) }

// cassette returns the folder of an attempt's cassette.
func cassette(dir string, c *Case, n int) string {
	if n == 1 {
		return filepath.Join(dir, slug(c.Name))
	}
	return filepath.Join(dir, folder(c, n))
}

// slug converts the name of a case to a folder name.
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
	s = strings.Trim(s, "-.")
	return cmp.Or(s, "case")
}
